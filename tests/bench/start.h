/* The cheapest way to start a program here: vfork with all signals blocked around it, then exec. */
#ifndef LEAT_BENCH_START_H
#define LEAT_BENCH_START_H

#include <sys/types.h>

/* Returns the process's id. Exits if no process can be started; if the program cannot be run,
 * the child exits with 127. */
pid_t bench_start(char *const argv[]);

#endif
