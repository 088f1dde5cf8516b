/*
 * The tasks that somebody follows: those that run here, and others that may start here soon. Their
 * number is bounded.
 */
#ifndef LEAT_DAEMON_REPORT_FOLLOWED_H
#define LEAT_DAEMON_REPORT_FOLLOWED_H

#include <stdint.h>

enum { FOLLOWED_MOST = 64, FOLLOWED_TID_SIZE = 48 };

/* Zeroed at first. */
struct followed {
    struct followed_task {
        char tid[FOLLOWED_TID_SIZE];
        int64_t until_ns; /* CLOCK_BOOTTIME; 0: a free place */
    } tasks[FOLLOWED_MOST];
};

/* Somebody follows the task until then. If there are too many, the one that ends first gives way. A
 * tid that is too long is ignored: leat makes none. */
void followed_add(struct followed *followed, const char *tid, int64_t until_ns);

/* Returns until when somebody follows the task, which may be over; 0: nobody did. */
int64_t followed_until(const struct followed *followed, const char *tid);

#endif
