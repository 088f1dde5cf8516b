/* floor PARALLEL TASKS PROGRAM [ARGUMENT …]: the cost of starting and reaping processes alone.
 * Keeps PARALLEL of them running. Prints seconds and CPU seconds (its own and theirs). */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "start.h"

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double cpu_s(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void reap(void)
{
    int status;
    if (wait(&status) < 0) {
        err(1, "wait");
    }
    if (status != 0) {
        errx(1, "the program failed: status %#x", (unsigned)status);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        errx(2, "usage: floor PARALLEL TASKS PROGRAM [ARGUMENT ...]");
    }
    long parallel = strtol(argv[1], NULL, 10);
    long tasks = strtol(argv[2], NULL, 10);

    double begun = now_s();
    double cpu_begun = cpu_s(RUSAGE_SELF);
    long running = 0;
    for (long started = 0; started < tasks; started++) {
        if (running == parallel) {
            reap();
            running--;
        }
        bench_start(argv + 3);
        running++;
    }
    while (running-- > 0) {
        reap();
    }

    double cpu = cpu_s(RUSAGE_SELF) - cpu_begun + cpu_s(RUSAGE_CHILDREN);
    printf("%.6f %.6f\n", now_s() - begun, cpu);
    return 0;
}
