/* Verifies and makes signatures of tasks with the keys of the config, by libcrypto. */
#include "queue/keyring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

enum { NONCE_BYTES = 16, SHOWN_NAME = 64 };

struct key {
    char *name;
    EVP_MAC_CTX *context; /* has the key, and is used for one message after the other */
};

struct keyring {
    EVP_MAC *hmac;
    struct key *keys;
    size_t count;
};

/* ---- keys ---- */

static int key_init(struct key *key, EVP_MAC *hmac, const char *entry)
{
    char digest[] = "SHA256";
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, sizeof digest - 1), OSSL_PARAM_END};
    const char *secret = strchr(entry, ':') + 1;
    key->name = strndup(entry, (size_t)(secret - 1 - entry));
    key->context = EVP_MAC_CTX_new(hmac);
    return key->name && key->context &&
                   EVP_MAC_init(key->context, (const unsigned char *)secret, strlen(secret),
                                parameters) == 1
               ? 0
               : -1;
}

struct keyring *keyring_new(char *const *secrets)
{
    struct keyring *keyring = calloc(1, sizeof *keyring);
    size_t count = 0;
    while (secrets && secrets[count]) {
        count++;
    }
    if (!keyring) {
        return NULL;
    }
    if (count == 0) {
        return keyring; /* Without keys, libcrypto is not loaded, which is slow. */
    }
    keyring->hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    keyring->keys = calloc(count, sizeof *keyring->keys);
    if (!keyring->hmac || !keyring->keys) {
        goto fail;
    }
    for (size_t i = 0; i < count; i++) {
        keyring->count++;
        if (key_init(&keyring->keys[i], keyring->hmac, secrets[i])) {
            goto fail;
        }
    }
    return keyring;

fail:
    keyring_free(keyring);
    return NULL;
}

void keyring_free(struct keyring *keyring)
{
    if (!keyring) {
        return;
    }
    for (size_t i = 0; i < keyring->count; i++) {
        EVP_MAC_CTX_free(keyring->keys[i].context); /* wipes libcrypto's copy of the key */
        free(keyring->keys[i].name);
    }
    free(keyring->keys);
    EVP_MAC_free(keyring->hmac);
    free(keyring);
}

static const struct key *find_key(const struct keyring *keyring, struct bytes name)
{
    for (size_t i = 0; i < keyring->count; i++) {
        const struct key *key = &keyring->keys[i];
        if (strlen(key->name) == name.size && memcmp(key->name, name.data, name.size) == 0) {
            return key;
        }
    }
    return NULL;
}

/* ---- the MAC ---- */

static int update(void *context, const void *data, size_t size)
{
    return EVP_MAC_update(context, data, size) == 1 ? 0 : -1;
}

static int make_mac(const struct key *key, const struct signature *signature, const char *stream,
                    const struct task_field *fields, size_t count,
                    unsigned char mac[SIGNATURE_MAC_SIZE])
{
    const struct bytes stream_bytes = {stream, strlen(stream)};
    size_t size = 0;

    /* No key is given, so libcrypto uses the key of the context. */
    return EVP_MAC_init(key->context, NULL, 0, NULL) == 1 &&
                   signature_canonical(signature, stream_bytes, fields, count, update,
                                       key->context) == 0 &&
                   EVP_MAC_final(key->context, mac, &size, SIGNATURE_MAC_SIZE) == 1 &&
                   size == SIGNATURE_MAC_SIZE
               ? 0
               : -1;
}

/* ---- verifying ---- */

static enum keyring_verdict refuse(char *reason, size_t size, const char *what)
{
    (void)snprintf(reason, size, "%s", what); /* a long text may be cut */
    return KEYRING_REFUSED;
}

static enum keyring_verdict refuse_key(char *reason, size_t size, struct bytes name)
{
    /* the name of a key is a short word, so only the end of the reason may be cut */
    (void)snprintf(reason, size, "it is signed with the key %.*s, which this worker does not have",
                   (int)(name.size < SHOWN_NAME ? name.size : SHOWN_NAME), name.data);
    return KEYRING_REFUSED;
}

static enum keyring_verdict check_time(const struct task *task, int64_t *until_ms, char *reason,
                                       size_t size)
{
    if (!task->not_after) {
        return refuse(reason, size, "it is signed, but has no not_after");
    }
    if (!signature_parse_time(*task->not_after, until_ms)) {
        return refuse(reason, size, "not_after is not a unix time in whole seconds");
    }
    return KEYRING_GOOD;
}

enum keyring_verdict keyring_verify(const struct keyring *keyring, const char *stream,
                                    const struct task *task, struct keyring_mark *mark,
                                    char *reason, size_t reason_size)
{
    struct signature signature;
    unsigned char mac[SIGNATURE_MAC_SIZE];
    if (!task->signature) {
        return refuse(reason, reason_size, "it is not signed");
    }
    if (!signature_parse(*task->signature, &signature)) {
        return refuse(reason, reason_size, "its signature is not leat1:KEY:NONCE:MAC");
    }
    const struct key *key = find_key(keyring, signature.key);
    if (!key) {
        return refuse_key(reason, reason_size, signature.key);
    }

    /* The MAC is checked before anything else in the task is believed. */
    if (make_mac(key, &signature, stream, task->fields, task->field_count, mac)) {
        return KEYRING_FAILED;
    }
    if (CRYPTO_memcmp(mac, signature.mac, sizeof mac) != 0) {
        /* with the right MAC, anyone could sign this task */
        explicit_bzero(mac, sizeof mac);
        return refuse(reason, reason_size,
                      "its signature does not match: the key, the stream or a field differs from "
                      "what was signed");
    }
    memcpy(mark->mark, mac, sizeof mark->mark);
    return check_time(task, &mark->not_after_ms, reason, reason_size);
}

/* ---- signing ---- */

int keyring_sign(const struct keyring *keyring, const char *name, const char *stream,
                 const struct task_field *fields, size_t count, char text[SIGNATURE_TEXT_SIZE])
{
    unsigned char random[NONCE_BYTES];
    char nonce[2 * NONCE_BYTES + 1];
    const struct key *key = keyring->count > 0 ? &keyring->keys[0] : NULL;
    if (name) {
        key = find_key(keyring, (struct bytes){name, strlen(name)});
    }
    if (!key || getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        return -1;
    }
    for (size_t i = 0; i < sizeof random; i++) {
        (void)snprintf(nonce + 2 * i, 3, "%02x", random[i]); /* two digits and a NUL */
    }
    struct signature signature = {.key = {key->name, strlen(key->name)},
                                  .nonce = {nonce, 2 * sizeof random}};
    if (make_mac(key, &signature, stream, fields, count, signature.mac)) {
        return -1;
    }
    signature_format(&signature, text);
    return 0;
}
