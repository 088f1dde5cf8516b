/*
 * Dead letters for the dead-letter hook: what leat_tell returns, as tasks that do not run but give
 * their environment to the hook.
 */
#ifndef LEAT_QUEUE_DEAD_LETTER_H
#define LEAT_QUEUE_DEAD_LETTER_H

#include "queue/keys.h"
#include "queue/task.h"
#include "redis/command.h"

/* Decodes one dead letter of leat_tell's reply. The task's token is the entry id of the dead
 * letter, its payload is the end of the stderr of the dead task, and `end` is set. It has the
 * fields that can be variables, each once; what no environment can hold is left out. Returns a task
 * owned by the caller, or NULL: errno is EPROTO if the reply has another form, else ENOMEM. */
struct task *dead_letter_decode(const struct redisReply *row);

struct dead_letter_reply {
    struct task **letters; /* the receiver takes them: it sets to NULL those that it took */
    size_t count;
    const struct redisReply *given_up; /* in the reply: tids of dead letters that were given up */
};
/* Returns 0; the caller then calls dead_letter_reply_free, which frees the dead letters that are
 * left. −1 (errno is EPROTO or ENOMEM) leaves nothing to free. */
int dead_letter_read(const struct redisReply *reply, struct dead_letter_reply *out);
void dead_letter_reply_free(struct dead_letter_reply *out);

#endif
