/* Reads the dead letters that leat_tell returns for the dead-letter hook. */
#include "queue/dead_letter.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "queue/calls.h"
#include "queue/replies.h"
#include "redis/value.h"

/* Positions in a dead letter, and in its description of the task's end. */
enum { ID, TID, FENCE, ENQUEUED, END, FIELDS, PARTS };
enum { CAUSE, STATUS, REASON, ATTEMPTS, WORKER, STDERR, END_PARTS };

/* the longest name of a variable of leat's own, with '=' */
enum { OWN_NAME = 20 };

static bool has_form(const redisReply *row)
{
    if (row->type != REDIS_REPLY_ARRAY || row->elements != PARTS) {
        return false;
    }
    redisReply *const *part = row->element;
    return task_is_id(part[ID]) && value_is_text(part[TID]) &&
           part[FENCE]->type == REDIS_REPLY_INTEGER && part[FENCE]->integer >= 0 &&
           value_is_text(part[ENQUEUED]) && value_are_strings(part[END]) &&
           part[END]->elements == END_PARTS && value_are_strings(part[FIELDS]) &&
           part[FIELDS]->elements % 2 == 0;
}

/* ---- one allocation for everything ---- */

struct dead_letter {
    struct task task; /* first, so that task_free frees the dead letter */
    struct task_end end;
    struct bytes payload, command, label;
};

static size_t size_of_texts(const redisReply *list)
{
    size_t size = 0;
    for (size_t i = 0; i < list->elements; i++) {
        size += list->element[i]->len +
                1; /* the strings are in memory already, so their sizes cannot overflow */
    }
    return size;
}

static size_t size_needed(const redisReply *row)
{
    redisReply *const *part = row->element;
    return sizeof(struct dead_letter) + part[FIELDS]->elements / 2 * sizeof(struct task_field) +
           part[ID]->len + 1 + part[TID]->len + 1 + size_of_texts(part[END]) +
           size_of_texts(part[FIELDS]);
}

/* Whether the value can be one of leat's own variables. */
static bool fits(const redisReply *value)
{
    return value->len < TASK_MAX_STRING - OWN_NAME && !memchr(value->str, '\0', value->len);
}

/* Copies the value, or nothing if it does not fit. */
static struct bytes put_fitting(char **at, const redisReply *value)
{
    return fits(value) ? value_put(at, value) : (struct bytes){"", 0};
}

static bool has_field(const struct task *task, const redisReply *name)
{
    for (size_t i = 0; i < task->field_count; i++) {
        struct bytes known = task->fields[i].name;
        if (known.size == name->len && memcmp(known.data, name->str, name->len) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds a field of the task if an environment can hold it. */
static void add_field(struct dead_letter *letter, struct task_field *fields, size_t *total,
                      char **at, const redisReply *name, const redisReply *value)
{
    struct task *task = &letter->task;
    const struct task_field field = {{name->str, name->len}, {value->str, value->len}};
    if (bytes_equal(field.name, "command") && !task->command && fits(value)) {
        letter->command = value_put(at, value);
        task->command = &letter->command;
    } else if (bytes_equal(field.name, "id") && !task->label && fits(value)) {
        letter->label = value_put(at, value);
        task->label = &letter->label;
    } else if (task_field_fits(&field, total) && !has_field(task, name)) {
        struct task_field *added = &fields[task->field_count++];
        added->name = value_put(at, name);
        added->value = value_put(at, value);
        trace_take(&task->trace, added->name, added->value);
    }
}

struct task *dead_letter_decode(const redisReply *row)
{
    int64_t enqueued_ms = 0;
    if (!row || !has_form(row) ||
        units_parse_integer(row->element[ENQUEUED]->str, 0, INT64_MAX, &enqueued_ms)) {
        errno = EPROTO;
        return NULL;
    }
    struct dead_letter *letter = malloc(size_needed(row));
    if (!letter) {
        errno = ENOMEM;
        return NULL;
    }

    /* The struct comes first, then the fields, then the strings. */
    redisReply *const *part = row->element, *const *end = part[END]->element;
    struct task_field *fields = (struct task_field *)(letter + 1);
    char *at = (char *)(fields + part[FIELDS]->elements / 2);
    *letter = (struct dead_letter){
        .task = {.token = value_put(&at, part[ID]).data,
                 .tid = value_put(&at, part[TID]).data,
                 .fence = part[FENCE]->integer,
                 .enqueued_ms = enqueued_ms,
                 .fields = fields,
                 .timeout_ms = -1},
        .end = {.cause = put_fitting(&at, end[CAUSE]),
                .status = put_fitting(&at, end[STATUS]),
                .reason = put_fitting(&at, end[REASON]),
                .attempts = put_fitting(&at, end[ATTEMPTS]),
                .worker = put_fitting(&at, end[WORKER])},
        .payload = value_put(&at, end[STDERR]),
    };
    letter->task.end = &letter->end;
    letter->task.payload = &letter->payload;
    size_t total = 0;
    for (size_t i = 0; i < part[FIELDS]->elements; i += 2) {
        add_field(letter, fields, &total, &at, part[FIELDS]->element[i],
                  part[FIELDS]->element[i + 1]);
    }
    return &letter->task;
}

/* ---- the reply ---- */

static int read_letters(const redisReply *list, struct dead_letter_reply *out)
{
    out->letters = calloc(list->elements + 1, sizeof(struct task *));
    if (!out->letters) {
        return -1;
    }
    for (size_t i = 0; i < list->elements; i++) {
        out->letters[i] = dead_letter_decode(list->element[i]);
        if (!out->letters[i]) {
            return -1;
        }
        out->count++;
    }
    return 0;
}

int dead_letter_read(const redisReply *reply, struct dead_letter_reply *out)
{
    *out = (struct dead_letter_reply){0};
    const redisReply *letters = value_at(reply, 1);
    out->given_up = value_at(reply, 2);
    if (!queue_speaks_protocol(reply) || !letters || letters->type != REDIS_REPLY_ARRAY ||
        !value_are_strings(out->given_up)) {
        return value_malformed();
    }
    if (read_letters(letters, out)) {
        int error = errno;
        dead_letter_reply_free(out);
        errno = error;
        return -1;
    }
    return 0;
}

void dead_letter_reply_free(struct dead_letter_reply *out)
{
    for (size_t i = 0; i < out->count; i++) {
        task_free(out->letters[i]);
    }
    free(out->letters);
    *out = (struct dead_letter_reply){0};
}
