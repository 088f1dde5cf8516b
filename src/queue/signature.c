/* The text of signatures, and the canonical form that they sign. */
#include "queue/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION "leat1"
#define FIELD "signature"

enum { LENGTH_SIZE = 24, TIME_DIGITS = 12 };

/* Whether text is 1 to 64 of A-Z a-z 0-9 _ . - : the name of a key, or a nonce. */
static bool is_word(struct bytes text)
{
    return text.size >= 1 && text.size <= SIGNATURE_WORD_MOST && bytes_are_letters(text, "_.-");
}

/* Takes the part before the next colon off *text. Returns false if there is no colon. */
static bool take_part(struct bytes *text, struct bytes *part)
{
    const char *colon = memchr(text->data, ':', text->size);
    if (!colon) {
        return false;
    }
    *part = (struct bytes){text->data, (size_t)(colon - text->data)};
    text->data = colon + 1;
    text->size -= part->size + 1;
    return true;
}

/* Returns -1 if c is no digit. Capitals are none, so that a signature has only one text. */
static int digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_mac(struct bytes text, unsigned char mac[SIGNATURE_MAC_SIZE])
{
    if (text.size != 2 * SIGNATURE_MAC_SIZE) {
        return false;
    }
    for (size_t i = 0; i < SIGNATURE_MAC_SIZE; i++) {
        int high = digit(text.data[2 * i]), low = digit(text.data[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        mac[i] = (unsigned char)(high * 16 + low);
    }
    return true;
}

bool signature_parse(struct bytes text, struct signature *signature)
{
    struct bytes version;
    return take_part(&text, &version) && version.size == sizeof VERSION - 1 &&
           memcmp(version.data, VERSION, version.size) == 0 && take_part(&text, &signature->key) &&
           is_word(signature->key) && take_part(&text, &signature->nonce) &&
           is_word(signature->nonce) && take_mac(text, signature->mac);
}

void signature_format(const struct signature *signature, char text[SIGNATURE_TEXT_SIZE])
{
    /* words fit */
    int size = snprintf(text, SIGNATURE_TEXT_SIZE, VERSION ":%.*s:%.*s:", (int)signature->key.size,
                        signature->key.data, (int)signature->nonce.size, signature->nonce.data);
    char *at = text + size;
    for (size_t i = 0; i < SIGNATURE_MAC_SIZE; i++) {
        *at++ = "0123456789abcdef"[signature->mac[i] >> 4];
        *at++ = "0123456789abcdef"[signature->mac[i] & 15];
    }
    *at = '\0';
}

/* ---- the canonical form ---- */

struct output {
    int (*put)(void *context, const void *data, size_t size);
    void *context;
};

static int put_string(const struct output *output, struct bytes text)
{
    char length[LENGTH_SIZE], *begin = length + sizeof length;
    *--begin = ':';
    size_t rest = text.size;
    do {
        *--begin = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    return output->put(output->context, begin, (size_t)(length + sizeof length - begin)) ||
                   (text.size > 0 && output->put(output->context, text.data, text.size)) ||
                   output->put(output->context, ",", 1)
               ? -1
               : 0;
}

int signature_canonical(const struct signature *signature, struct bytes stream,
                        const struct task_field *fields, size_t count,
                        int (*put)(void *context, const void *data, size_t size), void *context)
{
    const struct output output = {put, context};
    const struct task_field *sorted[SIGNATURE_FIELDS_MOST];
    size_t many = 0;
    if (count > SIGNATURE_FIELDS_MOST) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (!bytes_equal(fields[i].name, FIELD)) {
            sorted[many++] = &fields[i];
        }
    }
    qsort((void *)sorted, many, sizeof sorted[0], task_field_compare);

    if (put_string(&output, (struct bytes){VERSION, sizeof VERSION - 1}) ||
        put_string(&output, signature->key) || put_string(&output, signature->nonce) ||
        put_string(&output, stream)) {
        return -1;
    }
    for (size_t i = 0; i < many; i++) {
        if (put_string(&output, sorted[i]->name) || put_string(&output, sorted[i]->value)) {
            return -1;
        }
    }
    return 0;
}

bool signature_parse_time(struct bytes text, int64_t *ms)
{
    int64_t seconds = 0;
    if (text.size < 1 || text.size > TIME_DIGITS) {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return false;
        }
        seconds = seconds * 10 + (text.data[i] - '0');
    }
    *ms = seconds * 1000;
    return true;
}
