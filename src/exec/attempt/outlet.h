/*
 * The outlet of a process's output: where it goes, how much of it, how fast, and the task's file.
 * stream.h reads the output.
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
    OUTLET_LINE_COST = 100, /* bytes that a record costs in addition to its text, about */
};

struct outlet {
    enum config_output_to to;
    bool kills;         /* stop the process if it exceeds the limit */
    bool over;          /* it has exceeded the limit */
    bool last;          /* output that the log refuses now is lost */
    int64_t limit;      /* bytes of both streams together; 0: none */
    int64_t taken;      /* bytes so far */
    int64_t rate;       /* bytes per second; 0: unlimited */
    int64_t credit;     /* bytes that may be read now; negative: wait */
    int64_t counted_ns; /* CLOCK_BOOTTIME at which credit was computed */
    int file;           /* owned; -1: not open */
};

/* Sets up the outlet of a process that starts now. task is NULL if several share the process.
 * followed says that somebody follows its output. A reload does not change the outlet of a running
 * process. */
void outlet_begin(struct outlet *outlet, const struct config *config, const struct task *task,
                  bool followed, int64_t now_ns);

enum start_ends outlet_ends(const struct outlet *outlet, const struct config *config,
                            bool followed);

/* Counts the next bytes. Returns how many are within the limit; sets `over` if some are not. */
size_t outlet_take(struct outlet *outlet, size_t size);

/* Subtracts the cost of what was read. Returns the seconds until more may be read; 0: now. */
double outlet_spend(struct outlet *outlet, size_t cost);

/* Appends to the task's file, which is created with the first bytes. logs is $LOGS_DIRECTORY or
 * NULL. Sets *written to the bytes that were written. Returns 0, or -1 with errno: a later call may
 * succeed.
 */
int outlet_write(struct outlet *outlet, const struct config *config, const char *logs,
                 const char *tid, const void *data, size_t size, size_t *written);

/* The same for another task of the batch, whose file is closed again. */
int outlet_copy(const struct config *config, const char *logs, const char *tid, const void *data,
                size_t size, size_t *written);

/* Closes the file. */
void outlet_end(struct outlet *outlet);

#endif
