/*
 * A task as the worker runs it: its fields, decoded from a reply of Redis and checked against what
 * the config allows. All of it is in one allocation. Values are bytes: they end in a NUL for
 * convenience, but the size counts.
 */
#ifndef LEAT_QUEUE_TASK_H
#define LEAT_QUEUE_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "config/config.h"
#include "queue/task_bounds.h"
#include "queue/trace.h"

struct redisReply;

/* One argument or environment string has at most 131,071 bytes (MAX_ARG_STRLEN − 1 of Linux). */
#define TASK_MAX_STRING 131071
/* More bytes of fields for the environment are refused (the limit of the kernel is about 2 MiB). */
#define TASK_MAX_ENVIRONMENT (1024 * 1024)

struct task_field {
    struct bytes name;
    struct bytes value;
};

#define TASK_MAX_ATTEMPTS 1000000 /* that a task may ask for */

/* The longest working directory that a task may ask for (PATH_MAX − 1 of Linux). */
#define TASK_MAX_DIRECTORY 4095

/* How the task of a dead letter ended; see queue/dead_letter.h. */
struct task_end {
    struct bytes cause, status, reason, attempts, worker;
};

struct task {
    const char *token;   /* names this attempt's entry: 's' or 'g' and the entry id */
    const char *tid;     /* the task's id over all its attempts */
    int64_t attempt;     /* 1 for the first */
    int64_t crashes;     /* workers lost while it ran */
    bool alone;          /* it runs alone on its worker */
    int64_t fence;       /* greater with every claim */
    unsigned ends;       /* how earlier attempts ended: bits of enum config_check_after */
    int64_t enqueued_ms; /* unix time */
    int64_t waited_ms;   /* from when it could start until it was claimed */
    size_t field_count;
    const struct task_field *fields; /* in the producer's order */
    /* task_check sets these from the fields; NULL or 0 if the task does not say. */
    const struct bytes *command;
    const struct bytes *payload;
    const struct bytes *label;     /* the field id */
    const struct bytes *signature; /* not verified: see queue/keyring.h */
    const struct bytes *not_after;
    const struct bytes *directory; /* an absolute path without NUL, followed by one */
    int64_t timeout_ms;            /* −1: the task does not say; 0: none */
    int64_t max_attempts;
    struct trace trace;          /* fields that are variables, too */
    int64_t bounds[TASK_BOUNDS]; /* see task_bounds.h; 0: the task does not say */
    int64_t max_output;          /* bytes; 0: the task does not say */
    bool live;                   /* its output goes to its live output */
    bool damaged;                /* see task_decode_damaged */
    int64_t signed_until_ms;     /* when its verified signature ends; 0: none was required */
    bool unlaned;                /* it names a lane that is none in this queue */
    int64_t result_ttl_ms;       /* −1: the task does not say; 0: its result is not kept */
    const struct task_end *end;  /* of a dead letter for the hook; NULL for a task that runs */
};

/* Whether it is the id of an entry, or the token of one. The functions refuse a call that names
 * anything else, so a worker that took it for one could not register any more. */
bool task_is_id(const struct redisReply *value);
bool task_is_token(const struct redisReply *value);

/* Decodes one task of leat_claim's reply. Returns a task owned by the caller, or NULL: errno is
 * EPROTO if the reply has another form, else ENOMEM. */
struct task *task_decode(const struct redisReply *reply);

/* For a task that task_decode cannot decode: a task without fields that can only be refused.
 * Returns a task owned by the caller, or NULL: errno is EPROTO if the reply has no token, else
 * ENOMEM. */
struct task *task_decode_damaged(const struct redisReply *reply);

/* The bytes of its fields. */
size_t task_bytes(const struct task *task);

/* Notes how the task's earlier attempts ended: names of causes, separated by spaces. */
void task_note_ends(struct task *task, const char *causes);

/* Gives back the memory of a large payload, once the task's process has a copy. The bytes are lost,
 * the size is not. */
void task_drop_payload(struct task *task);

/* Finds the known fields and refuses what must not run: reserved, unsupported or repeated names,
 * names that cannot become a variable, values that contain NUL or are too long for one, a missing
 * command, or a command if own_command says that the config has one. Returns true, or false with
 * the reason in `reason`. */
bool task_check(struct task *task, bool own_command, char *reason, size_t reason_size);

/* Why a task must not start that had a valid signature when it was claimed. */
#define TASK_TOO_LATE "its signature expired before it could start"

/* Returns true if its verified signature has ended. Does not read the clock if there was none. */
bool task_is_too_late(const struct task *task);

/* Compares the names of two elements of an array of pointers to fields, for qsort. */
int task_field_compare(const void *a, const void *b);

/* True for fields that reach the task as TASK_NAME (all except the known ones). */
bool task_field_is_variable(const struct task_field *field);

/* True for those of them that task_check accepts. *total counts the bytes of all of them, and
 * starts with 0. */
bool task_field_fits(const struct task_field *field, size_t *total);

void task_free(struct task *task);

#endif
