/*
 * A resident process for leat, to copy. RESIDENT PROCESSES in leatd(8) has the rules.
 *
 * [task]
 * command = exec /usr/local/bin/handler
 * resident = yes
 * batch_format = lines
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

/* Does one task. Returns 0, or an exit status, for which the rules of [retry] apply. */
static int work(const char *payload)
{
    if (payload[0] == '\n') {
        fputs("there is no payload\n", stderr);
        return 65;
    }
    printf("got %s", payload);
    return 0;
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    dprintf(3, "ready\n");
    for (unsigned long number = 1; getline(&line, &capacity, stdin) >= 0; number++) {
        int status = work(line);
        fflush(stdout); /* before the report, so that it is this task's */
        dprintf(3, "%lu exit %d\n", number, status);
    }
    free(line);
    return 0;
}
