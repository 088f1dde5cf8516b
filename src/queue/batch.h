/*
 * Batches: the form of several tasks in the standard input of one process, and of the verdicts that
 * the process may write on descriptor 3. Pure functions.
 */
#ifndef LEAT_QUEUE_BATCH_H
#define LEAT_QUEUE_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "config/config.h"
#include "queue/task.h"
#include "queue/verdict.h"

/* Returns false, with the reason, if a process could not find the end of the task's payload: if the
 * format is lines and a newline is not the last byte, or if the format is nul and there is a NUL
 * byte.
 */
bool batch_fits(enum config_format format, const struct task *task, char *reason,
                size_t reason_size);

/* Returns true if the task may share a process: it is a first attempt that another may follow, has
 * no crashes, no directory and no limits of its own, and nobody follows its output. task_check must
 * have accepted the task. */
bool batch_may_share(const struct config *config, const struct task *task);

/* Returns true if the task may be handed to a resident process: no worker was lost with it, no
 * check has to look first, and it has no directory and no limits of its own. With [task] batch,
 * nobody follows its output, and it is not its last attempt, because another task may cost it that.
 * pipes: leatd reads the output of resident processes; otherwise tasks whose output is followed or
 * limited need their own. */
bool batch_may_reside(const struct config *config, const struct task *task, bool pipes);

/* The part of the record of a resident process that is not the task. */
struct batch_record {
    uint64_t number; /* from 1 on */
    int64_t max_attempts;
    int64_t deadline_wall_ms; /* 0: none */
};

/* Appends the task in the form of the batch's standard input:
 *  - lines: the payload, and a newline unless it ends with one;
 *  - nul: the payload and a NUL byte;
 *  - json: {"tid", "attempt", "id" (if it is UTF-8), "fields": {NAME: text, …}} and a newline.
 *    Fields that are not UTF-8 are in "base64": {NAME: base64, …} instead. With a record also
 *    "index", "max_attempts", "fence", "enqueued_at" and, if there is one, "deadline".
 * record is NULL for a batch. Returns 0, or -1 without memory. */
int batch_append(struct buffer *input, enum config_format format, const struct task *task,
                 const struct batch_record *record);

/* A line of descriptor 3: "INDEX ok|retry|dead [REASON]", with blanks between; or "INDEX exit CODE
 * [REASON]", which only resident processes may write. */
struct batch_verdict {
    size_t index; /* of the task, from 1 on */
    enum verdict verdict;
    int code;            /* after "exit": 0 to 255; -1: not given */
    struct bytes reason; /* points into the line; may be empty */
};

/* The longest line of a verdict. */
#define BATCH_LINE_MOST 4096

/* Reads a verdict. count is the highest index; with_code allows "exit". Returns false for any other
 * line. */
bool batch_read(const char *line, size_t size, size_t count, bool with_code,
                struct batch_verdict *verdict);

#endif
