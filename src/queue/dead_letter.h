/*
 * Dead letters that a program is told of: what leat_tell hands out, as tasks that are not to run
 * but give their environment to that program.
 */
#ifndef LEAT_QUEUE_DEAD_LETTER_H
#define LEAT_QUEUE_DEAD_LETTER_H

#include "queue/queue.h"

/* Decodes one letter of leat_tell's reply. token is the letter's entry id, payload the end of the
 * task's stderr, `end` is set; of the fields there are those that can be variables, each once. What
 * no environment can hold is left out. Returns a task owned by the caller, or NULL: errno is EPROTO
 * where the reply has another form, else ENOMEM. */
struct task *dead_letter_decode(const struct redisReply *row);

struct dead_letter_reply {
    struct task **letters; /* each taken by the receiver: set to NULL what was taken */
    size_t count;
    const struct redisReply *given_up; /* in the reply: tids that nobody could be told of */
};
/* Returns 0; the caller then calls letter_reply_free, which frees the letters still in it. −1
 * (EPROTO or ENOMEM in errno) leaves nothing to free. */
int dead_letter_read(const struct redisReply *reply, struct dead_letter_reply *out);
void dead_letter_reply_free(struct dead_letter_reply *out);

#endif
