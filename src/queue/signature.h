/*
 * Signed tasks: the canonical form that is signed, and the text of a signature. Pure functions. The
 * keys are in queue/keyring.h; leat-protocol(7) says what signatures protect.
 *
 * A signature is leat1:KEY:NONCE:MAC. MAC is HMAC-SHA256, in lower-case hex, of the canonical form:
 * netstrings (LENGTH:BYTES,) of leat1, KEY, NONCE, the key of the stream, and then the name and the
 * value of each field except `signature`, sorted by the bytes of their names.
 */
#ifndef LEAT_QUEUE_SIGNATURE_H
#define LEAT_QUEUE_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/shared/limits.h"
#include "queue/task.h"

#define SIGNATURE_MAC_SIZE ((size_t)32)
#define SIGNATURE_WORD_MOST ((size_t)64) /* bytes of a key's name, and of a nonce */
/* Bytes of the text, including its NUL. */
#define SIGNATURE_TEXT_SIZE (5 + 1 + SIGNATURE_WORD_MOST + 1 + SIGNATURE_WORD_MOST + 1 + 64 + 1)
#define SIGNATURE_FIELDS_MOST ((size_t)QUEUE_MAX_FIELDS)

struct signature {
    struct bytes key, nonce; /* point into the text */
    unsigned char mac[SIGNATURE_MAC_SIZE];
};

/* Splits the text. Returns false if it has another form. */
bool signature_parse(struct bytes text, struct signature *signature);

/* Writes the text, with a NUL. Key and nonce are words. */
void signature_format(const struct signature *signature, char text[SIGNATURE_TEXT_SIZE]);

/* Passes the canonical form to `put`, piece by piece. Returns 0, or -1 if there are more than
 * SIGNATURE_FIELDS_MOST fields, or if `put` returned something other than 0, which ends it. No name
 * may be there twice (see task_check). */
int signature_canonical(const struct signature *signature, struct bytes stream,
                        const struct task_field *fields, size_t count,
                        int (*put)(void *context, const void *data, size_t size), void *context);

/* Converts a not_after, whole seconds since 1970, to milliseconds. Returns false if it is none. */
bool signature_parse_time(struct bytes text, int64_t *ms);

#endif
