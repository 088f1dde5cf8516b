/*
 * The keys with which tasks are signed, and what is to be said of a task's signature. A key is kept
 * as libcrypto's context, which is wiped when it is freed; what it was made from is the caller's to
 * wipe.
 */
#ifndef LEAT_QUEUE_KEYRING_H
#define LEAT_QUEUE_KEYRING_H

#include <stddef.h>
#include <stdint.h>

#include "queue/signature.h"
#include "queue/task.h"

struct keyring;

/* secrets: NAME:KEY each, NULL-terminated (config->security.secrets); NULL: no keys. Returns NULL
 * where libcrypto fails or there is no memory. */
struct keyring *keyring_new(char *const *secrets);
void keyring_free(struct keyring *keyring);

enum keyring_verdict {
    KEYRING_GOOD,
    KEYRING_REFUSED, /* the task must not run */
    KEYRING_FAILED,  /* it could not be found out: libcrypto failed */
};

/* What is remembered of a good signature, so that it is good but once. */
struct keyring_mark {
    unsigned char mark[16]; /* the beginning of its MAC */
    int64_t not_after_ms;
};

/* Verifies a task that task_check has let pass; not whether it is late. The reason is for
 * KEYRING_REFUSED. */
enum keyring_verdict keyring_verify(const struct keyring *keyring, const char *stream,
                                    const struct task *task, struct keyring_mark *mark,
                                    char *reason, size_t reason_size);

/* Signs with the key of that name (NULL: the first), and a nonce of its own. Returns 0, or -1:
 * there is no such key, too many fields, or libcrypto failed. */
int keyring_sign(const struct keyring *keyring, const char *name, const char *stream,
                 const struct task_field *fields, size_t count, char text[SIGNATURE_TEXT_SIZE]);

#endif
