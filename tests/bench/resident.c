/* A resident process that does nothing: reports each record as done. */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    dprintf(3, "ready\n");
    for (unsigned long number = 1; getline(&line, &capacity, stdin) >= 0; number++) {
        dprintf(3, "%lu ok\n", number);
    }
    free(line);
    return 0;
}
