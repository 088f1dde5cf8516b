/*
 * What became of a task: read from its result or from its dead letter, and shown.
 */
#ifndef LEAT_CLI_SHOW_RESULT_H
#define LEAT_CLI_SHOW_RESULT_H

#include <stdint.h>

#include "queue/task.h"

struct redisReply;

enum ended_state {
    ENDED_SUCCEEDED,
    ENDED_DEAD,
    ENDED_CANCELLED,
    ENDED_UNKNOWN, /* it lives no more, and nothing tells what became of it */
};

/* Bytes are within the reply; −1
 * where a number is not known. */
struct ended {
    enum ended_state state;
    struct bytes cause, status, reason, worker, stdout_tail, stderr_tail, usage;
    int64_t attempt, begun_ms, ended_ms, duration_us;
};

/* fields: of the entry in the task's result stream. row: of leat_find. */
void ended_read_result(const struct redisReply *fields, struct ended *ended);
void ended_read_letter(const struct redisReply *row, struct ended *ended);

void ended_set_unknown(struct ended *ended);

/* "exit:0", "signal:SIGTERM", "timeout", …, "-" for nothing. */
void ended_why(const struct ended *ended, char *text, size_t size);

/* A line on stdout: id, state, why, attempts, duration, and the name by which it was asked for
 * where that is another one. Failures show when stdout is flushed. */
void ended_print(const char *tid, const char *asked, const struct ended *ended);

/* The same as a JSON object in a line, with all there is. Returns 0 or an exit status. */
int ended_print_json(const char *tid, const char *asked, const struct ended *ended);

#endif
