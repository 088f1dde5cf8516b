/*
 * Resources that a task has used, as text and as JSON.
 */
#include "view/usage.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 32

/* Parses the next "NAME NUMBER" and moves *at past it. Returns false at the end, and if the text
 * has another form. The text is NUL-terminated. */
static bool next_pair(const char **at, char name[NAME_SIZE], int64_t *number)
{
    size_t size = strcspn(*at, " ");
    const char *digits = *at + size + 1;
    char *end;

    if (size == 0 || size >= NAME_SIZE || (*at)[size] == '\0' || *digits < '0' || *digits > '9') {
        return false;
    }
    memcpy(name, *at, size);
    name[size] = '\0';
    *number = strtoll(digits, &end, 10);
    *at = *end == ' ' ? end + 1 : end;
    return true;
}

json_t *usage_json(struct bytes usage)
{
    json_t *object = json_object();
    const char *at = usage.data;
    char name[NAME_SIZE];
    int64_t number;

    while (object && usage.size > 0 && next_pair(&at, name, &number)) {
        /* this fails for a name that is not UTF-8, and without memory: then the item is left out */
        (void)json_object_set_new(object, name, json_integer(number));
    }
    return object;
}

int64_t usage_item(struct bytes usage, const char *name)
{
    const char *at = usage.data;
    char found[NAME_SIZE];
    int64_t number;

    while (usage.size > 0 && next_pair(&at, found, &number)) {
        if (strcmp(found, name) == 0) {
            return number;
        }
    }
    return -1;
}

void usage_format_size(int64_t bytes, char *text, size_t text_size)
{
    static const char units[] = "KMGT";
    double size = (double)bytes / 1024;
    size_t unit = 0;

    while (size >= 1000 && units[unit + 1] != '\0') {
        size /= 1024;
        unit++;
    }
    (void)snprintf(text, text_size, "%.*f%c", size < 10 ? 1 : 0, size, units[unit]);
}

static void append_size(struct buffer *out, const char *title, int64_t bytes)
{
    char size[32];

    usage_format_size(bytes, size, sizeof size);
    /* a failed append marks the buffer */
    (void)buffer_printf(out, "%s%s %s", out->size > 0 ? ", " : "", title, size);
}

void usage_append(struct buffer *out, struct bytes usage)
{
    static const struct {
        const char *name, *title;
    } sizes[] = {
        {"memory_peak", "memory"},
        {"max_rss", "largest process"},
        {"io_read", "read"},
        {"io_written", "written"},
    };
    struct buffer text = BUFFER_INIT;
    const char *at = usage.data;
    char name[NAME_SIZE];
    int64_t number;

    /* a failed append marks the buffer */
    while (usage.size > 0 && next_pair(&at, name, &number)) {
        if (strcmp(name, "cpu_us") == 0) {
            (void)buffer_printf(&text, "cpu %.3f s", (double)number / 1e6);
        } else if (strcmp(name, "oom_kills") == 0 && number > 0) {
            (void)buffer_printf(&text, ", out of memory %lld times", (long long)number);
        }
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            if (strcmp(name, sizes[i].name) == 0) {
                append_size(&text, sizes[i].title, number);
            }
        }
    }
    if (text.failed) {
        out->failed = true;
    } else if (text.size > 0) {
        (void)buffer_append(out, text.data, text.size);
    }
    buffer_free(&text);
}
