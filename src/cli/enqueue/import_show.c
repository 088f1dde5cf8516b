/*
 * leat import: its output.
 */
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/enqueue/import.h"
#include "cli/lib/output.h"
#include "cli/lib/text.h"
#include "view/moment.h"
#include "view/reply_fields.h"

/* An item of a preview: its first bytes, its size, and when it is due. */
struct item {
    struct bytes shown;
    int64_t size, due_ms;
};

/* The number of items in a reply of leat_preview. */
static size_t item_count(const struct redisReply *preview)
{
    return preview->elements > 2 ? (preview->elements - 2) / 3 : 0;
}

static struct item item_at(const struct redisReply *preview, size_t index)
{
    struct redisReply *const *parts = preview->element + 2 + index * 3;

    return (struct item){.shown = fields_value(parts[0]),
                         .size = fields_integer(parts[1], 0),
                         .due_ms = fields_integer(parts[2], 0)};
}

/* ---- for people */

/* A failed append marks the buffer. */
static void add_item(struct buffer *out, const struct item *item)
{
    char moment[MOMENT_SIZE];

    (void)buffer_append_text(out, "  ");
    if (item->size == 0) {
        (void)buffer_append_text(out, "(empty)");
    }
    (void)text_append(out, item->shown.data, item->shown.size);
    if ((int64_t)item->shown.size < item->size) {
        (void)buffer_printf(out, "... (%lld bytes)", (long long)item->size);
    }
    if (item->due_ms > 0) {
        moment_local(item->due_ms, moment, sizeof moment);
        (void)buffer_printf(out, "  (not before %s)", moment);
    }
    (void)buffer_append_text(out, "\n");
}

static void add_source(struct buffer *out, const struct source *source)
{
    size_t shown = item_count(source->preview);

    (void)text_append(out, source->key.data, source->key.size);
    (void)buffer_printf(out, ": %s, %llu item%s\n",
                        strcmp(source->kind, "zset") == 0 ? "sorted set" : source->kind,
                        (unsigned long long)source->count, source->count == 1 ? "" : "s");
    for (size_t i = 0; i < shown; i++) {
        struct item item = item_at(source->preview, i);
        add_item(out, &item);
    }
    if (source->count > shown) {
        (void)buffer_printf(out, "  and %llu more\n", (unsigned long long)source->count - shown);
    }
}

static void add_result(struct buffer *out, const struct source *source)
{
    (void)buffer_printf(out, "imported %llu item%s of ", (unsigned long long)source->taken,
                        source->taken == 1 ? "" : "s");
    (void)text_append(out, source->key.data, source->key.size);
    if (source->added < source->taken) {
        (void)buffer_printf(out, ", %llu of them already in the queue",
                            (unsigned long long)(source->taken - source->added));
    }
    if (source->left > 0) {
        (void)buffer_printf(out, "; %llu left", (unsigned long long)source->left);
    }
    (void)buffer_append_text(out, "\n");
}

static int print(const struct import *import,
                 void (*add)(struct buffer *out, const struct source *source))
{
    struct buffer out = BUFFER_INIT;
    int status;

    for (size_t i = 0; i < import->count; i++) {
        if (import->sources[i].kind) {
            add(&out, &import->sources[i]);
        }
    }
    status = output_write(&out);
    buffer_free(&out);
    return status;
}

/* ---- JSON; NULL, without memory, is passed on to output_json */

static json_t *items_json(const struct redisReply *preview)
{
    json_t *list = json_array();

    for (size_t i = 0; i < item_count(preview); i++) {
        struct item item = item_at(preview, i);
        json_t *object = json_pack("{s:I, s:I}", "bytes", (json_int_t)item.size, "due_ms",
                                   (json_int_t)item.due_ms);
        output_put_bytes(&object, "item", item.shown);
        output_push(&list, object);
    }
    return list;
}

static json_t *source_json(const struct import *import, const struct source *source)
{
    json_t *object = json_pack("{s:s?}", "type", source->kind);

    if (source->kind && import->dry_run) {
        output_put(&object, "items", json_integer((json_int_t)source->count));
        output_put(&object, "first", items_json(source->preview));
    } else {
        output_put(&object, "taken", json_integer((json_int_t)source->taken));
        output_put(&object, "added", json_integer((json_int_t)source->added));
        output_put(&object, "left", json_integer((json_int_t)source->left));
    }
    output_put_bytes(&object, "key", source->key);
    return object;
}

static int print_json(const struct import *import)
{
    json_t *keys = json_array();

    for (size_t i = 0; i < import->count; i++) {
        output_push(&keys, source_json(import, &import->sources[i]));
    }
    return output_json(json_pack("{s:b, s:I, s:o}", "dry_run", (int)import->dry_run, "taken",
                                 (json_int_t)import->taken, "keys", keys),
                       true);
}

int import_show(const struct import *import)
{
    return import->json ? print_json(import) : print(import, add_source);
}

int import_report(const struct import *import)
{
    return import->json ? print_json(import) : print(import, add_result);
}
