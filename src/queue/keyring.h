/*
 * The keys that sign tasks, and the check of a task's signature. A key is kept in a context of
 * libcrypto, which wipes it when it is freed. The caller wipes what the key was made from.
 */
#ifndef LEAT_QUEUE_KEYRING_H
#define LEAT_QUEUE_KEYRING_H

#include <stddef.h>
#include <stdint.h>

#include "queue/signature.h"
#include "queue/task.h"

struct keyring;

/* secrets: NAME:KEY each, NULL-terminated (config->security.secrets); NULL: no keys. Returns NULL
 * if libcrypto fails or there is no memory. */
struct keyring *keyring_new(char *const *secrets);
void keyring_free(struct keyring *keyring);

enum keyring_verdict {
    KEYRING_GOOD,
    KEYRING_REFUSED, /* the task must not run */
    KEYRING_FAILED,  /* unknown, because libcrypto failed */
};

/* Redis remembers this of a valid signature, so that it is valid for one task only. */
struct keyring_mark {
    unsigned char mark[16]; /* the beginning of its MAC */
    int64_t not_after_ms;
};

/* Verifies the signature of a task that task_check has accepted, but not whether it is late. The
 * reason is for KEYRING_REFUSED. */
enum keyring_verdict keyring_verify(const struct keyring *keyring, const char *stream,
                                    const struct task *task, struct keyring_mark *mark,
                                    char *reason, size_t reason_size);

/* Signs with the key of that name (NULL: the first) and a new nonce. Returns 0, or -1 if there is
 * no such key, there are too many fields, or libcrypto failed. */
int keyring_sign(const struct keyring *keyring, const char *name, const char *stream,
                 const struct task_field *fields, size_t count, char text[SIGNATURE_TEXT_SIZE]);

#endif
