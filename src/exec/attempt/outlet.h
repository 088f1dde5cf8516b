/*
 * What becomes of the bytes that a process writes, apart from their ends that are kept: where they
 * go, how many of them, how fast, and the task's file. The reading is the business of stream.h.
 */
#ifndef LEAT_EXEC_ATTEMPT_OUTLET_H
#define LEAT_EXEC_ATTEMPT_OUTLET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "exec/start/start.h"
#include "queue/task.h"

enum {
    OUTLET_LINE_COST = 100, /* bytes that a record costs beside its text, about */
};

struct outlet {
    enum config_output_to to;
    bool kills;         /* going over the limit ends the process */
    bool over;          /* it has */
    bool last;          /* what the log does not take now is lost */
    int64_t limit;      /* bytes, of both streams; 0: none */
    int64_t taken;      /* bytes */
    int64_t rate;       /* bytes a second; 0: any */
    int64_t credit;     /* bytes that may be taken now; less than 0: not yet */
    int64_t counted_ns; /* CLOCK_BOOTTIME at which credit was right */
    int file;           /* owned; -1: not open */
};

/* For a process that is about to start, now: of one task, or NULL for several. followed: what it
 * writes is wanted live. A reload changes nothing for those that run. */
void outlet_begin(struct outlet *outlet, const struct config *config, const struct task *task,
                  bool followed, int64_t now_ns);

enum start_ends outlet_ends(const struct outlet *outlet, const struct config *config,
                            bool followed);

/* Says how many of the next bytes are within the limit; with the first that is not, `over` is set.
 */
size_t outlet_take(struct outlet *outlet, size_t size);

/* What was taken has cost that. Returns after how many seconds more is to be taken; 0: now. */
double outlet_spend(struct outlet *outlet, size_t cost);

/* Appends to the task's file, which is made with the first bytes. logs is $LOGS_DIRECTORY, or NULL.
 * *written says how many got there. Returns 0, or -1 with errno: the next try may succeed. */
int outlet_write(struct outlet *outlet, const struct config *config, const char *logs,
                 const char *tid, const void *data, size_t size, size_t *written);

/* Closes the file. */
void outlet_end(struct outlet *outlet);

#endif
