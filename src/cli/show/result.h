/*
 * The result of a task, read from its result stream or its dead letter, and printed.
 */
#ifndef LEAT_CLI_SHOW_RESULT_H
#define LEAT_CLI_SHOW_RESULT_H

#include <stdint.h>

#include "queue/task.h"

struct redisReply;

enum result_state {
    RESULT_SUCCEEDED,
    RESULT_DEAD,
    RESULT_CANCELLED,
    RESULT_UNKNOWN, /* no longer queued, and no result was kept */
};

/* The bytes point into the reply. A number is −1 if it is not known. */
struct result {
    enum result_state state;
    struct bytes cause, status, reason, worker, stdout_tail, stderr_tail, usage;
    int64_t attempt, begun_ms, ended_ms, duration_us;
};

/* Read the fields of an entry of the task's result stream, or a row of leat_find. */
void result_read(const struct redisReply *fields, struct result *result);
void result_read_letter(const struct redisReply *row, struct result *result);

void result_set_unknown(struct result *result);

/* Writes the cause: "exit:0", "signal:SIGTERM", "timeout", …; "-" for none. */
void result_why(const struct result *result, char *text, size_t size);

/* Prints a line: id, state, cause, attempts, duration, and `asked` if it is not the id. cli_flush
 * reports failures. */
void result_print(const char *tid, const char *asked, const struct result *result);

/* Prints the whole result as a JSON object on one line. Returns 0, or an exit status after printing
 * the error. */
int result_print_json(const char *tid, const char *asked, const struct result *result);

#endif
