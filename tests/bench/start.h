/*
 * The cheapest way to start a program here: vfork with all signals blocked around it, then exec.
 */
#ifndef LEAT_BENCH_START_H
#define LEAT_BENCH_START_H

#include <sys/types.h>

/* Returns the process's id. Ends this program when there is no process to be had; a program that
 * cannot be run exits with 127. */
pid_t bench_start(char *const argv[]);

#endif
