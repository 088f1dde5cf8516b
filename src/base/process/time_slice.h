/*
 * How long this process may be made to wait for a processor when it has something to do.
 */
#ifndef LEAT_BASE_PROCESS_TIME_SLICE_H
#define LEAT_BASE_PROCESS_TIME_SLICE_H

/* Asks the kernel for short time slices, so that among busy processes this one runs soon after it
 * has woken: about a quarter of the wait on two busy processors. It gets no more time than others
 * for it, and what it starts is not affected. Where that cannot be had (Linux before 6.12, another
 * scheduling policy, a nice value below zero, which those it starts would lose) all stays as it is.
 */
void slice_shorten(void);

#endif
