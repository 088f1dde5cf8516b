/*
 * A task as the worker runs it: fields decoded from what Redis answered, checked against what the
 * config allows. Everything in it lives in one allocation and is bytes: NUL-terminated for
 * convenience, but the size counts.
 */
#ifndef LEAT_QUEUE_TASK_H
#define LEAT_QUEUE_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "queue/task_bounds.h"

struct redisReply;

/* One argument or environment string holds at most 131,071 bytes (MAX_ARG_STRLEN − 1 of Linux). */
#define TASK_MAX_STRING 131071
/* All fields that go to the environment together; more is refused (the kernel's bound is about 2
 * MiB). */
#define TASK_MAX_ENVIRONMENT (1024 * 1024)

struct task_field {
    struct bytes name;
    struct bytes value;
};

/* The longest working directory that a task may ask for (PATH_MAX − 1 of Linux). */
#define TASK_MAX_DIRECTORY 4095

/* What a dead letter says of its task's end; see queue/dead_letter.h. */
struct task_end {
    struct bytes cause, status, reason, attempts, worker;
};

struct task {
    const char *token;   /* names this attempt's entry: 's' or 'g' and the entry id */
    const char *tid;     /* the task's id over all its attempts */
    int64_t attempt;     /* 1 for the first */
    int64_t crashes;     /* workers lost while it ran; more than 0: it runs alone */
    int64_t fence;       /* grows with every requeue */
    int64_t enqueued_ms; /* unix time */
    size_t field_count;
    const struct task_field *fields; /* in the producer's order */
    /* Set by task_check from the fields; NULL or 0 where the task does not say. */
    const struct bytes *command;
    const struct bytes *payload;
    const struct bytes *label;     /* the field id */
    const struct bytes *signature; /* not verified: see queue/keyring.h */
    const struct bytes *not_after;
    const struct bytes *directory; /* an absolute path without NUL, followed by one */
    int64_t timeout_ms;            /* −1: the task does not say; 0: none */
    int64_t max_attempts;
    int64_t bounds[TASK_BOUNDS]; /* see task_bounds.h; 0: the task does not say */
    int64_t max_output;          /* bytes; 0: the task does not say */
    bool live;                   /* what it writes goes to its live output */
    int64_t result_ttl_ms;       /* −1: the task does not say; 0: its result is not kept */
    const struct task_end *end;  /* of a dead letter that is told of; NULL where it is to run */
};

/* Decodes one task of leat_claim's reply. Returns a task owned by the caller, or NULL: errno is
 * EPROTO where the reply has another form, else ENOMEM. */
struct task *task_decode(const struct redisReply *reply);

/* Its process has a copy of the payload: the memory of a large one is given back. What it says is
 * lost, its size is not. */
void task_drop_payload(struct task *task);

/* Finds the known fields and refuses what must not run: reserved, unsupported or doubled names,
 * names that cannot become a variable, values with NUL or too long for one, no command, or a
 * command where own_command says that the config has one. Returns true, or false with the reason in
 * `reason`. */
bool task_check(struct task *task, bool own_command, char *reason, size_t reason_size);

/* True for the fields that reach the task as TASK_NAME (all but the known ones). */
bool task_field_is_variable(const struct task_field *field);

/* True for those of them that task_check would let pass. *total counts the bytes that they take
 * together, and begins with 0. */
bool task_field_fits(const struct task_field *field, size_t *total);

void task_free(struct task *task);

#endif
