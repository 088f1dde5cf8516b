/*
 * Reduces the time that this process waits for a CPU.
 */
#ifndef LEAT_BASE_PROCESS_TIME_SLICE_H
#define LEAT_BASE_PROCESS_TIME_SLICE_H

/* Asks the kernel for short time slices, so that this process runs soon after it wakes up, even
 * among busy processes. On two busy CPUs the wait is about a quarter. The process gets no more CPU
 * time than others, and its children are not affected. Nothing changes on Linux before 6.12, with
 * another scheduling policy, or with a nice value below zero, which children would lose. */
void time_slice_shorten(void);

#endif
