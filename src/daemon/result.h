/*
 * One thing that is still to be told to Redis, lists of them, and how it is told.
 */
#ifndef LEAT_DAEMON_RESULT_H
#define LEAT_DAEMON_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/runner.h"
#include "queue/queue.h"

struct result {
    struct result *next, *previous;
    struct attempt *attempt; /* NULL: only a token goes back */
    char *token;             /* owned; NULL where the attempt has it */
    struct outcome outcome;
    int64_t ttl_ms; /* for how long Redis keeps it; 0: not */
    bool again;
    bool refused;               /* Redis has refused it once */
    enum queue_settled settled; /* while it waits for replicas */
};

/* A list with a sentinel. */
struct result_list {
    struct result head;
    size_t count;
};

/* An empty one, or NULL without memory. */
struct result *result_new(void);

/* With its attempt; NULL does nothing. */
void result_free(struct result *result);

/* NULL for a result without attempt. */
const struct attempt *result_attempt(const struct result *result);
const char *result_token(const struct result *result);
enum verdict result_verdict(const struct result *result);

/* True once it was sent and no reply came: Redis may have settled it then. */
bool result_sent_before(const struct result *result);

/* Adds it to a leat_finish. */
void result_add_to(struct command *command, const struct result *result);

void result_list_init(struct result_list *list);
void result_list_append(struct result_list *list, struct result *result);
void result_list_remove(struct result_list *list, struct result *result);

/* In front, in their order: what was sent first goes first again. */
void result_list_put_back(struct result_list *to, struct result_list *from);

/* With what is in it. */
void result_list_free(struct result_list *list);

#endif
