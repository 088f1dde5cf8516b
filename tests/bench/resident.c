/* resident [FIFO]: a resident process that does nothing: reports each record as done. With a FIFO,
 * it first writes the CLOCK_MONOTONIC time at which it has the record, in ns, as one line. */
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void stamp(int fifo)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    dprintf(fifo, "%" PRId64 "\n", (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t capacity = 0;
    int fifo = argc > 1 ? open(argv[1], O_WRONLY | O_CLOEXEC) : -1;
    if (argc > 1 && fifo < 0) {
        err(1, "%s", argv[1]);
    }
    dprintf(3, "ready\n");
    for (unsigned long number = 1; getline(&line, &capacity, stdin) >= 0; number++) {
        if (fifo >= 0) {
            stamp(fifo);
        }
        dprintf(3, "%lu ok\n", number);
    }
    free(line);
    return 0;
}
