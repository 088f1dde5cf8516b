/*
 * Batches: how several tasks stand in the standard input of one process, and what that process may
 * say of each on descriptor 3. Pure functions.
 */
#ifndef LEAT_EXEC_ATTEMPT_BATCH_H
#define LEAT_EXEC_ATTEMPT_BATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "config/config.h"
#include "exec/job/outcome.h"
#include "queue/task.h"

/* False, with the reason, where a process could not tell where the task's payload ends: with lines
 * a newline that is not its last byte, with nul a NUL byte. */
bool batch_fits(enum config_format format, const struct task *task, char *reason,
                size_t reason_size);

/* Whether the task may share a process: a first attempt that another may follow, by the config's
 * time limit, without crashes behind it, and nobody follows its output. Only for tasks that
 * task_check has passed. */
bool batch_may_share(const struct config *config, const struct task *task);

/* Appends the task as a batch's standard input has it:
 *  - lines: the payload, and a newline unless that is its last byte already;
 *  - nul: the payload and a NUL;
 *  - json: {"tid", "attempt", "id" (where it is text), "fields": {NAME: text, …}} and a newline.
 *    Fields that are not UTF-8 are in "base64": {NAME: base64, …} instead.
 * Returns 0, or -1 without memory. */
int batch_append(struct buffer *input, enum config_format format, const struct task *task);

/* A line of descriptor 3: "INDEX ok|retry|dead [REASON]", with blanks between. */
struct batch_verdict {
    size_t index; /* of the task: 1 is the first */
    enum verdict verdict;
    struct bytes reason; /* points into the line; may be empty */
};

/* Longer lines are no verdicts. */
#define BATCH_LINE_MOST 4096

/* count: how many tasks the batch has. Returns false for a line of another form. */
bool batch_read(const char *line, size_t size, size_t count, struct batch_verdict *verdict);

#endif
