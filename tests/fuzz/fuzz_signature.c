/* Goal: no invalid text passes for a signature, none is read in two ways, and two tasks have the
 * same canonical form only if their fields are the same. Input: a signature's text, a newline,
 * then the values of two tasks in turn, each a length byte and that many bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "queue/keyring.h"
#include "queue/signature.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS = 16 };

static int put(void *context, const void *data, size_t size)
{
    return buffer_append(context, data, size);
}

static bool same(struct bytes a, struct bytes b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

/* A text that is accepted is formatted as the same text. */
static bool try_text(struct bytes text, struct signature *signature)
{
    char again[SIGNATURE_TEXT_SIZE];
    if (!signature_parse(text, signature)) {
        return false;
    }
    signature_format(signature, again);
    if (!same(text, (struct bytes){again, strlen(again)})) {
        abort();
    }
    return true;
}

static const struct task_field *find(const struct task_field *fields, size_t count,
                                     struct bytes name)
{
    for (size_t i = 0; i < count; i++) {
        if (same(fields[i].name, name)) {
            return &fields[i];
        }
    }
    return NULL;
}

/* Whether each field of one, except the signature, is in other. */
static bool holds(const struct task_field *one, size_t count, const struct task_field *other,
                  size_t other_count)
{
    for (size_t i = 0; i < count; i++) {
        const struct task_field *found = find(other, other_count, one[i].name);
        bool counts = !same(one[i].name, (struct bytes){"signature", 9});
        if (counts && (!found || !same(found->value, one[i].value))) {
            return false;
        }
    }
    return true;
}

static void compare(const struct signature *signature, struct task_field fields[2][FIELDS],
                    const size_t counts[2])
{
    struct buffer forms[2] = {BUFFER_INIT, BUFFER_INIT};
    for (int i = 0; i < 2; i++) {
        if (signature_canonical(signature, (struct bytes){"q", 1}, fields[i], counts[i], put,
                                &forms[i])) {
            abort();
        }
    }
    bool same_form = same((struct bytes){forms[0].data, forms[0].size},
                          (struct bytes){forms[1].data, forms[1].size});
    bool same_task = holds(fields[0], counts[0], fields[1], counts[1]) &&
                     holds(fields[1], counts[1], fields[0], counts[0]);
    if (same_form != same_task) {
        abort();
    }
    buffer_free(&forms[0]);
    buffer_free(&forms[1]);
}

/* The task is refused in any case, because it is not signed. */
static void verify(struct task_field *fields, size_t count)
{
    static struct keyring *keyring;
    struct task task = {.fields = fields, .field_count = count};
    struct keyring_mark mark;
    char reason[160];
    if (!keyring) {
        keyring = keyring_new((char *[]){(char *)"k:0123456789abcdef0123456789abcdef", NULL});
    }
    if (task_check(&task, true, reason, sizeof reason) &&
        keyring_verify(keyring, "q", &task, &mark, reason, sizeof reason) != KEYRING_REFUSED) {
        abort();
    }
}

/* A copy with a final NUL, as tasks have them. */
static struct bytes copy(char **arena, const void *data, size_t size)
{
    struct bytes bytes = {*arena, size};
    *arena = mempcpy(*arena, data, size);
    *(*arena)++ = '\0';
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = size > 0 ? memchr(data, '\n', size) : NULL;
    struct signature signature;
    struct task_field fields[2][FIELDS];
    size_t counts[2] = {0, 0};
    struct bytes text = {(const char *)data, line ? (size_t)(line - data) : size};
    if (!try_text(text, &signature)) {
        signature = (struct signature){.key = {"k", 1}, .nonce = {"n", 1}};
    }
    if (!line) {
        return 0;
    }
    /* a value has at least a length byte; the last one may be without */
    char *const arena = malloc(2 * size + 4), *at_arena = arena;
    if (!arena) {
        return 0;
    }
    fields[0][counts[0]++] =
        (struct task_field){{"signature", 9}, copy(&at_arena, text.data, text.size)};

    size -= text.size + 1;
    data = line + 1;
    for (int at = 0; size > 0; at ^= 1) {
        struct bytes pair[2];
        for (int i = 0; i < 2; i++) {
            size_t length = size > 0 && data[0] < size ? data[0] : 0;
            pair[i] = copy(&at_arena, size > 0 ? (const char *)data + 1 : "", length);
            data += size > 0 ? length + 1 : 0;
            size -= size > 0 ? length + 1 : 0;
        }
        if (counts[at] < FIELDS && !find(fields[at], counts[at], pair[0])) {
            fields[at][counts[at]++] = (struct task_field){pair[0], pair[1]};
        }
    }
    compare(&signature, fields, counts);
    verify(fields[0], counts[0]);
    free(arena);
    return 0;
}
