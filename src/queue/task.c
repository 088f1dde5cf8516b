/* Decodes tasks from replies of Redis, and checks their fields. */
#include "queue/task.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/escape.h"
#include "base/uninitialized.h"
#include "base/units.h"
#include "queue/entry_id.h"
#include "queue/shared/limits.h"
#include "queue/shared/task_fields.h"
#include "queue/task_bounds.h"
#include "redis/value.h"

/* ---- decoding ---- */

/* Positions in a task of leat_claim's reply. */
enum { TOKEN, TID, ATTEMPT, CRASHES, FENCE, ENQUEUED, FIELDS, PARTS };

bool task_is_id(const redisReply *value)
{
    struct entry_id id;
    return value_is_text(value) && entry_parse(value->str, &id);
}

bool task_is_token(const redisReply *value)
{
    struct entry_id id;
    return value_is_text(value) && (value->str[0] == 's' || value->str[0] == 'g') &&
           entry_parse(value->str + 1, &id);
}

static bool is_count(const redisReply *value)
{
    return value->type == REDIS_REPLY_INTEGER && value->integer >= 0;
}

static bool has_form(const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != PARTS) {
        return false;
    }
    redisReply *const *part = reply->element;
    if (!task_is_token(part[TOKEN]) || !value_is_text(part[TID]) || !is_count(part[ATTEMPT]) ||
        !is_count(part[CRASHES]) || !is_count(part[FENCE]) || !value_is_text(part[ENQUEUED])) {
        return false;
    }
    return value_are_strings(part[FIELDS]) && part[FIELDS]->elements % 2 == 0;
}

/* The bytes of the struct, the fields and all strings, each with a NUL; 0 if that overflows. */
static size_t size_needed(const redisReply *reply)
{
    const redisReply *fields = reply->element[FIELDS];
    size_t size = sizeof(struct task) + fields->elements / 2 * sizeof(struct task_field);
    bool overflow = __builtin_add_overflow(size, reply->element[TOKEN]->len + 1, &size) ||
                    __builtin_add_overflow(size, reply->element[TID]->len + 1, &size);
    for (size_t i = 0; i < fields->elements; i++) {
        overflow = overflow || __builtin_add_overflow(size, fields->element[i]->len + 1, &size);
    }
    return overflow ? 0 : size;
}

struct task *task_decode(const redisReply *reply)
{
    int64_t enqueued_ms = 0;
    if (!reply || !has_form(reply) ||
        units_parse_integer(reply->element[ENQUEUED]->str, 0, INT64_MAX, &enqueued_ms)) {
        errno = EPROTO;
        return NULL;
    }
    size_t size = size_needed(reply);
    struct task *task = size > 0 ? malloc(size) : NULL;
    if (!task) {
        errno = ENOMEM;
        return NULL;
    }

    /* The struct comes first, then the fields, then the strings. */
    redisReply *const *part = reply->element;
    size_t field_count = part[FIELDS]->elements / 2;
    struct task_field *fields = (struct task_field *)(task + 1);
    char *at = (char *)(fields + field_count);
    for (size_t i = 0; i < field_count; i++) {
        fields[i].name = value_put(&at, part[FIELDS]->element[2 * i]);
        fields[i].value = value_put(&at, part[FIELDS]->element[2 * i + 1]);
    }
    *task = (struct task){
        .token = value_put(&at, part[TOKEN]).data,
        .tid = value_put(&at, part[TID]).data,
        .attempt = part[ATTEMPT]->integer,
        .crashes = part[CRASHES]->integer,
        .alone = part[CRASHES]->integer > 0,
        .ends = part[CRASHES]->integer > 0 ? CONFIG_CHECK_AFTER_LOST : 0,
        .fence = part[FENCE]->integer,
        .enqueued_ms = enqueued_ms,
        .field_count = field_count,
        .fields = fields,
        .timeout_ms = -1,
        .result_ttl_ms = -1,
    };
    return task;
}

struct task *task_decode_damaged(const redisReply *reply)
{
    const redisReply *token = value_at(reply, TOKEN), *tid = value_at(reply, TID);
    if (!task_is_token(token)) {
        errno = EPROTO;
        return NULL;
    }
    tid = value_is_text(tid) ? tid : token;
    struct task *task = malloc(sizeof *task + token->len + 1 + tid->len + 1);
    if (!task) {
        errno = ENOMEM;
        return NULL;
    }
    char *at = (char *)(task + 1);
    *task = (struct task){
        .token = value_put(&at, token).data,
        .tid = value_put(&at, tid).data,
        .attempt = 1,
        .fence = 1,
        .timeout_ms = -1,
        .result_ttl_ms = -1,
        .damaged = true,
    };
    return task;
}

size_t task_bytes(const struct task *task)
{
    size_t bytes = 0;
    for (size_t i = 0; i < task->field_count; i++) {
        bytes += task->fields[i].name.size + task->fields[i].value.size;
    }
    return bytes;
}

bool task_is_too_late(const struct task *task)
{
    return task->signed_until_ms > 0 && clock_wall_ms() >= task->signed_until_ms;
}

void task_note_ends(struct task *task, const char *causes)
{
    static const struct {
        const char *cause;
        unsigned end;
    } ends[] = {{"timeout", CONFIG_CHECK_AFTER_TIMEOUT},
                {"killed", CONFIG_CHECK_AFTER_KILLED},
                {"oom", CONFIG_CHECK_AFTER_KILLED}};

    while (*causes != '\0') {
        struct bytes cause = {causes, strcspn(causes, " ")};
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            task->ends |= bytes_equal(cause, ends[i].cause) ? ends[i].end : 0;
        }
        causes += cause.size + strspn(causes + cause.size, " ");
    }
}

void task_free(struct task *task)
{
    free(task);
}

void task_drop_payload(struct task *task)
{
    if (!task->payload) {
        return;
    }
    /* Only whole pages can be given back. */
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = task->payload->size;
    size_t before = (page - (uintptr_t)task->payload->data % page) % page;
    size_t within = size > before ? (size - before) / page * page : 0;
    if (within > 0) {
        /* if it fails, the memory stays until the task is freed */
        (void)madvise((void *)(uintptr_t)(task->payload->data + before), within, MADV_DONTNEED);
    }
}

/* ---- checking ---- */

enum {
    MAX_NAME = 200,
    SHOWN_NAME = 40,
    PREFIX_SIZE = sizeof "TASK_" - 1,
};

/* Where a refusal is written. */
struct reason {
    char *text;
    size_t size;
};

static bool refuse(const struct reason *reason, const char *what)
{
    (void)snprintf(reason->text, reason->size, "%s", what); /* a long text is cut */
    return false;
}

/* Names come from strangers: they are escaped, and long ones are cut. */
static bool refuse_field(const struct reason *reason, struct bytes name, const char *what)
{
    struct buffer shown = BUFFER_INIT;
    bool cut = name.size > SHOWN_NAME;
    if (escape_append(&shown, name.data, cut ? SHOWN_NAME : name.size)) {
        buffer_free(&shown);
        return refuse(reason, what);
    }
    /* a long text is cut */
    (void)snprintf(reason->text, reason->size, "field %.*s%s %s", (int)shown.size,
                   shown.data ? shown.data : "", cut ? "..." : "", what);
    buffer_free(&shown);
    return false;
}

static bool has_nul(struct bytes bytes)
{
    return memchr(bytes.data, '\0', bytes.size);
}

/* ---- the known fields; each returns true, or false with the reason ---- */

static bool take_command(struct task *task, const struct bytes *value, const struct reason *reason)
{
    if (value->size == 0) {
        return refuse(reason, "the command is empty");
    }
    if (has_nul(*value)) {
        return refuse(reason, "the command holds a NUL byte");
    }
    if (value->size > TASK_MAX_STRING) {
        return refuse(reason, "the command is longer than 131071 bytes: put data into payload");
    }
    task->command = value;
    return true;
}

static bool take_payload(struct task *task, const struct bytes *value, const struct reason *reason)
{
    (void)reason; /* a payload can be any bytes */
    task->payload = value;
    return true;
}

static bool take_id(struct task *task, const struct bytes *value, const struct reason *reason)
{
    (void)reason; /* leat_claim has checked it; any bytes */
    task->label = value;
    return true;
}

static bool take_signature(struct task *task, const struct bytes *value,
                           const struct reason *reason)
{
    (void)reason; /* the keyring checks it */
    task->signature = value;
    return true;
}

static bool take_not_after(struct task *task, const struct bytes *value,
                           const struct reason *reason)
{
    (void)reason; /* as for a signature */
    task->not_after = value;
    return true;
}

static bool take_directory(struct task *task, const struct bytes *value,
                           const struct reason *reason)
{
    if (value->size == 0) {
        return true;
    }
    if (has_nul(*value)) {
        return refuse(reason, "directory holds a NUL byte: remove it");
    }
    if (value->data[0] != '/') {
        return refuse(reason, "directory is not an absolute path: begin it with /");
    }
    if (value->size > TASK_MAX_DIRECTORY) {
        return refuse(reason, "directory is longer than 4095 bytes");
    }
    task->directory = value;
    return true;
}

static bool take_timeout(struct task *task, const struct bytes *value, const struct reason *reason)
{
    bool wrong = has_nul(*value) || units_parse_duration(value->data, &task->timeout_ms);
    return !wrong || refuse(reason, "timeout is not a duration such as 30s or 5m");
}

static bool take_max_attempts(struct task *task, const struct bytes *value,
                              const struct reason *reason)
{
    bool wrong = has_nul(*value) ||
                 units_parse_integer(value->data, 1, TASK_MAX_ATTEMPTS, &task->max_attempts);
    return !wrong || refuse(reason, "max_attempts is not a number from 1 to 1000000");
}

static bool take_lane(struct task *task, const struct bytes *value, const struct reason *reason)
{
    (void)task; /* leat_claim has used it */
    bool wrong = value->size > QUEUE_MAX_LANE || has_nul(*value);
    return !wrong || refuse(reason, "lane is more than 200 bytes, or holds a NUL byte");
}

static bool take_unique(struct task *task, const struct bytes *value, const struct reason *reason)
{
    (void)task; /* leat_claim has used it */
    (void)value;
    (void)reason; /* a key can be any bytes */
    return true;
}

static bool take_unique_for(struct task *task, const struct bytes *value,
                            const struct reason *reason)
{
    (void)task; /* leat_finish uses it */
    int64_t ms = 0;
    bool wrong = value->size > 0 && (has_nul(*value) || units_parse_duration(value->data, &ms));
    return !wrong || refuse(reason, "unique_for is not a duration such as 30s or 5m");
}

static bool take_result_ttl(struct task *task, const struct bytes *value,
                            const struct reason *reason)
{
    bool wrong = value->size > 0 &&
                 (has_nul(*value) || units_parse_duration(value->data, &task->result_ttl_ms));
    return !wrong || refuse(reason, "result_ttl is not a duration such as 30s or 5m");
}

static bool take_max_output(struct task *task, const struct bytes *value,
                            const struct reason *reason)
{
    bool wrong =
        value->size > 0 && (has_nul(*value) || units_parse_size(value->data, &task->max_output) ||
                            task->max_output == 0);
    return !wrong || refuse(reason, "max_output is not a size such as 64K or 10M");
}

static bool take_live(struct task *task, const struct bytes *value, const struct reason *reason)
{
    task->live = bytes_equal(*value, "1");
    bool wrong = value->size > 0 && !task->live && !bytes_equal(*value, "0");
    return !wrong || refuse(reason, "live is neither 0 nor 1");
}

static bool take_unique_next(struct task *task, const struct bytes *value,
                             const struct reason *reason)
{
    (void)task; /* leat_enqueue has used it */
    bool wrong = value->size > 0 && !bytes_equal(*value, "0") && !bytes_equal(*value, "1");
    return !wrong || refuse(reason, "unique_next is neither 0 nor 1");
}

/* leat_claim compares it with the clock of Redis; here it only has to be a number. */
static bool take_expires(struct task *task, const struct bytes *value, const struct reason *reason)
{
    (void)task; /* nothing is kept */
    char *end = NULL;
    double seconds = has_nul(*value) ? NAN : strtod(value->data, &end);
    bool wrong =
        !isfinite(seconds) || seconds < 0 || end != value->data + value->size || end == value->data;
    return !wrong || refuse(reason, "expires is not a unix time in seconds");
}

static bool take_bound(struct task *task, size_t bound, const struct bytes *value,
                       const struct reason *reason)
{
    const char *form = task_bound_take(task->bounds, bound, value);
    if (form) {
        (void)snprintf(reason->text, reason->size, "%s is not %s", task_bound_name(bound),
                       form); /* a long text is cut */
    }
    return !form;
}

#define KNOWN(name) {#name, take_##name},
static const struct known {
    const char *name;
    bool (*take)(struct task *task, const struct bytes *value, const struct reason *reason);
} known[] = {TASK_FIELDS(KNOWN)};

static const struct known *find_known(struct bytes name)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (bytes_equal(name, known[i].name)) {
            return &known[i];
        }
    }
    return NULL;
}

bool task_field_is_variable(const struct task_field *field)
{
    return !find_known(field->name) && task_bound_named(field->name) == TASK_BOUNDS;
}

/* ---- variables ---- */

static bool is_variable_name(struct bytes name)
{
    return name.size > 0 && name.size <= MAX_NAME && bytes_are_letters(name, "_");
}

/* Checks a field that becomes TASK_NAME=VALUE. *total counts the bytes of all such fields. */
static bool check_variable(const struct task_field *field, size_t *total,
                           const struct reason *reason)
{
    if (!is_variable_name(field->name)) {
        return refuse_field(reason, field->name,
                            "cannot be a variable: names are 1 to 200 of A-Z a-z 0-9 _");
    }
    if (has_nul(field->value)) {
        return refuse_field(reason, field->name, "holds a NUL byte: put it into payload");
    }
    size_t size = PREFIX_SIZE + field->name.size + 1;
    if (field->value.size > TASK_MAX_STRING - size) {
        return refuse_field(reason, field->name,
                            "is longer than a variable can be: put it into payload");
    }
    *total += size + field->value.size + 1;
    if (*total > TASK_MAX_ENVIRONMENT) {
        return refuse(reason, "the fields together are longer than 1 MiB: put data into payload");
    }
    return true;
}

bool task_field_fits(const struct task_field *field, size_t *total)
{
    char ignored[1];
    const struct reason reason = {.text = ignored, .size = sizeof ignored};
    return task_field_is_variable(field) && check_variable(field, total, &reason);
}

/* ---- doubled names ---- */

int task_field_compare(const void *a, const void *b)
{
    return bytes_compare((*(const struct task_field *const *)a)->name,
                         (*(const struct task_field *const *)b)->name);
}

/* Redis, leat and the task might each use a different one of the two. */
static bool check_doubled(const struct task *task, const struct reason *reason)
{
    UNINITIALIZED const struct task_field *sorted[QUEUE_MAX_FIELDS];
    for (size_t i = 0; i < task->field_count; i++) {
        sorted[i] = &task->fields[i];
    }
    qsort((void *)sorted, task->field_count, sizeof sorted[0], task_field_compare);
    for (size_t i = 1; i < task->field_count; i++) {
        if (task_field_compare((const void *)&sorted[i - 1], (const void *)&sorted[i]) == 0) {
            return refuse_field(reason, sorted[i]->name, "is given twice");
        }
    }
    return true;
}

static bool check_field(struct task *task, const struct task_field *field, size_t *total,
                        const struct reason *reason)
{
    const struct known *found = find_known(field->name);
    if (found) {
        return found->take(task, &field->value, reason);
    }
    size_t bound = task_bound_named(field->name);
    if (bound < TASK_BOUNDS) {
        return take_bound(task, bound, &field->value, reason);
    }
    if (field->name.size >= 5 && memcmp(field->name.data, "leat.", 5) == 0) {
        return refuse_field(reason, field->name, "is reserved: leat.* names are leat's own");
    }
    trace_take(&task->trace, field->name, field->value);
    return check_variable(field, total, reason);
}

bool task_check(struct task *task, bool own_command, char *reason_text, size_t reason_size)
{
    struct reason reason = {.text = reason_text, .size = reason_size};

    if (task->damaged) {
        return refuse(&reason, "Redis answered it in a form that cannot be read");
    }
    if (task->field_count > QUEUE_MAX_FIELDS) {
        return refuse(&reason, "more than 1000 fields");
    }
    if (!check_doubled(task, &reason)) {
        return false;
    }
    size_t total = 0;
    for (size_t i = 0; i < task->field_count; i++) {
        if (!check_field(task, &task->fields[i], &total, &reason)) {
            return false;
        }
    }

    if (own_command && task->command) {
        return refuse(&reason,
                      "the task brings a command, but the config runs its own for every task");
    }
    if (!own_command && !task->command) {
        return refuse(&reason, "the task has no command");
    }
    return true;
}
