/*
 * Builds the environment of tasks.
 */
#include "exec/start/environment.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/units.h"

struct environment {
    char **entries; /* NAME=VALUE, each owned */
    size_t count;
    char *home; /* owned */
};

void environment_free(struct environment *environment)
{
    if (!environment) {
        return;
    }
    for (size_t i = 0; i < environment->count; i++) {
        free(environment->entries[i]);
    }
    free(environment->entries);
    free(environment->home);
    free(environment);
}

/* Returns the index of the entry with the same name, or of a new one. */
static size_t find_entry(const struct environment *environment, const char *entry)
{
    size_t size = strcspn(entry, "=") + 1;
    size_t i = 0;
    while (i < environment->count && strncmp(environment->entries[i], entry, size) != 0) {
        i++;
    }
    return i;
}

/* Takes ownership of the entry, which replaces one of the same name. Returns 0, or -1 without
 * memory; entry may be NULL for that. */
static int put_entry(struct environment *environment, char *entry)
{
    if (!entry) {
        return -1;
    }
    size_t at = find_entry(environment, entry);
    if (at < environment->count) {
        free(environment->entries[at]);
        environment->entries[at] = entry;
        return 0;
    }

    char **entries = array_grow(environment->entries, environment->count, sizeof *entries);
    if (!entries) {
        free(entry);
        return -1;
    }
    environment->entries = entries;
    environment->entries[environment->count++] = entry;
    return 0;
}

/* Adds NAME=VALUE; a value of NULL adds nothing. Returns 0, or -1 without memory. */
static int put(struct environment *environment, const char *name, const char *value)
{
    char *entry;
    if (!value) {
        return 0;
    }
    if (asprintf(&entry, "%s=%s", name, value) < 0) {
        return -1;
    }
    return put_entry(environment, entry);
}

/* Returns the home that the service manager or a shell has set for leatd, or NULL. */
static const char *own_home(void)
{
    const char *home = getenv("HOME");
    return home && *home ? home : NULL;
}

/* Sets HOME; a home of NULL means "/". Returns 0, or -1 without memory. */
static int put_home(struct environment *environment, const char *home)
{
    environment->home = strdup(home ? home : "/");
    return environment->home ? put(environment, "HOME", environment->home) : -1;
}

/* Adds the daemon's user from its own environment, or else from the user database. */
static int put_user(struct environment *environment)
{
    const char *home = own_home();
    const char *user = getenv("USER");
    const char *logname = getenv("LOGNAME");
    struct passwd entry, *found;
    char text[4096];
    if (!home || !user) {
        int error = getpwuid_r(geteuid(), &entry, text, sizeof text, &found);
        if (error == ENOMEM) {
            return -1; /* the variables would be missing in all tasks */
        }
        bool known = error == 0 && found;
        home = !home && known ? entry.pw_dir : home;
        user = !user && known ? entry.pw_name : user;
    }
    if (put_home(environment, home) || put(environment, "USER", user)) {
        return -1;
    }
    return put(environment, "LOGNAME", logname ? logname : user);
}

/* Adds the configured user, or the daemon's. */
static int put_identity(struct environment *environment, const struct identity *identity)
{
    if (!identity || !identity->user) {
        return put_user(environment);
    }
    return put_home(environment, identity->home) || put(environment, "USER", identity->user)
               ? -1
               : put(environment, "LOGNAME", identity->user);
}

static int put_configured(struct environment *environment, const struct config *config)
{
    char **entries = config->task.environment;
    for (size_t i = 0; entries && entries[i]; i++) {
        if (strncmp(entries[i], "TASK_", 5) == 0 || strncmp(entries[i], "LEAT_", 5) == 0 ||
            !strchr(entries[i], '=')) {
            continue;
        }
        if (put_entry(environment, strdup(entries[i]))) {
            return -1;
        }
    }
    return 0;
}

const char *environment_home(const struct environment *environment)
{
    return environment->home;
}

/* Sets PWD as a shell does, so that tasks see the same with and without a shell. */
static int put_directory(struct environment *environment, const struct config *config)
{
    const char *directory = config->task.directory;
    return put(environment, "PWD", directory ? directory : environment->home);
}

struct environment *environment_new(const struct config *config, const struct identity *identity,
                                    const char *worker)
{
    struct environment *environment = calloc(1, sizeof *environment);
    if (!environment) {
        return NULL;
    }

    if (put(environment, "PATH", config->task.path) ||
        put(environment, "SHELL", config->task.shell) || put_identity(environment, identity) ||
        put_directory(environment, config) || put(environment, "LANG", getenv("LANG")) ||
        put_configured(environment, config) || put(environment, "LEAT_QUEUE", config->queue.name) ||
        put(environment, "LEAT_WORKER", worker)) {
        environment_free(environment);
        return NULL;
    }
    return environment;
}

/* ---- the block of one task ---- */

/* Room for each of the numbers and times below, with name and NUL. */
enum { NUMBER_SIZE = 64 };

/* The next free places of a block: for a pointer, and for text. */
struct writer {
    char **next;
    char *text;
};

static void write_text(struct writer *writer, const char *name, struct bytes value)
{
    size_t name_size = strlen(name);
    *writer->next++ = writer->text;
    writer->text = mempcpy(writer->text, name, name_size);
    writer->text = mempcpy(writer->text, value.data, value.size);
    *writer->text++ = '\0';
}

static void write_number(struct writer *writer, const char *name, int64_t value)
{
    char digits[UNITS_INTEGER_SIZE];
    size_t size = units_format_integer(value, digits);
    write_text(writer, name, (struct bytes){digits, size});
}

/* Writes seconds with three decimals. */
static void write_time(struct writer *writer, const char *name, int64_t ms)
{
    char digits[UNITS_SECONDS_SIZE];
    size_t size = units_format_seconds(ms, digits);
    write_text(writer, name, (struct bytes){digits, size});
}

static void write_variables(struct writer *writer, const struct task *task)
{
    for (size_t i = 0; i < task->field_count; i++) {
        const struct task_field *field = &task->fields[i];
        if (!task_field_is_variable(field)) {
            continue;
        }
        *writer->next++ = writer->text;
        writer->text = mempcpy(writer->text, "TASK_", 5);
        writer->text = mempcpy(writer->text, field->name.data, field->name.size);
        *writer->text++ = '=';
        writer->text = mempcpy(writer->text, field->value.data, field->value.size);
        *writer->text++ = '\0';
    }
}

/* The greatest number of variables that leat adds, and the bytes of their names. */
enum { OWN_COUNT = 12 + TRACE_PARTS, OWN_NAMES = 300 };

/* Returns the size of the values of a dead letter's variables. */
static size_t measure_end(const struct task *task)
{
    const struct task_end *end = task->end;
    return end->cause.size + end->status.size + end->reason.size + end->attempts.size +
           end->worker.size + (task->command ? task->command->size : 0);
}

static void write_end(struct writer *writer, const struct task *task)
{
    const struct task_end *end = task->end;
    write_text(writer, "LEAT_CAUSE=", end->cause);
    write_text(writer, "LEAT_STATUS=", end->status);
    write_text(writer, "LEAT_REASON=", end->reason);
    write_text(writer, "LEAT_ATTEMPTS=", end->attempts);
    write_text(writer, "LEAT_WORKER=", end->worker);
    if (task->command) {
        write_text(writer, "LEAT_COMMAND=", *task->command);
    }
}

static size_t measure_trace(const struct trace *trace)
{
    size_t size = 0;
    for (enum trace_part part = 0; part < TRACE_PARTS; part++) {
        size += trace->parts[part].size;
    }
    return size;
}

/* Returns an upper bound of the block's size, and sets *count to that of its pointers, with the
 * NULL.
 */
static size_t measure(const struct environment *environment, const struct task *task, size_t *count)
{
    size_t size = OWN_NAMES + OWN_COUNT * (size_t)NUMBER_SIZE;
    *count = environment->count + OWN_COUNT + 1;
    if (task) {
        size += strlen(task->tid) + (task->label ? task->label->size : 0) +
                (task->directory ? task->directory->size : 0) +
                (task->end ? measure_end(task) : 0) + measure_trace(&task->trace);
    }
    for (size_t i = 0; task && i < task->field_count; i++) {
        const struct task_field *field = &task->fields[i];
        if (task_field_is_variable(field)) {
            size += sizeof "TASK_=" + field->name.size + field->value.size;
            ++*count;
        }
    }
    return size + *count * sizeof(char *);
}

static void write_task(struct writer *writer, const struct task *task, int64_t max_attempts)
{
    write_text(writer, "LEAT_TASK=", (struct bytes){task->tid, strlen(task->tid)});
    if (task->label) {
        write_text(writer, "LEAT_ID=", *task->label);
    }
    if (task->end) {
        write_end(writer, task);
    } else {
        write_number(writer, "LEAT_ATTEMPT=", task->attempt);
        write_number(writer, "LEAT_MAX_ATTEMPTS=", max_attempts);
    }
    write_number(writer, "LEAT_FENCE=", task->fence);
    write_time(writer, "LEAT_ENQUEUED_AT=", task->enqueued_ms);
    write_variables(writer, task);
}

/* Writes a variable of the task in place of one that is the same for all tasks. block: the pointers
 * of these. */
static void write_over(struct writer *writer, const struct environment *environment, char **block,
                       const char *name, struct bytes value)
{
    size_t at = find_entry(environment, name);
    struct writer entry = {.next = &block[at], .text = writer->text};
    if (at == environment->count) {
        write_text(writer, name, value);
        return;
    }
    write_text(&entry, name, value);
    writer->text = entry.text;
}

/* Programs that trace look for these names. */
static void write_trace(struct writer *writer, const struct environment *environment, char **block,
                        const struct trace *trace)
{
    for (enum trace_part part = 0; part < TRACE_PARTS; part++) {
        struct bytes value = trace_part(trace, part);
        char name[16];
        (void)snprintf(name, sizeof name, "%s=", trace_variable(part)); /* all of them fit */
        if (value.data) {
            write_over(writer, environment, block, name, value);
        }
    }
}

char **environment_block(const struct environment *environment, const struct task *task,
                         const struct environment_limits *limits)
{
    size_t count;
    char **block = malloc(measure(environment, task, &count));
    if (!block) {
        return NULL;
    }

    struct writer writer = {.next = block, .text = (char *)(block + count)};
    writer.next = mempcpy(writer.next, environment->entries,
                          environment->count * sizeof *environment->entries);
    if (task && task->directory) {
        write_over(&writer, environment, block, "PWD=", *task->directory);
    }
    if (limits->batch > 0) {
        write_number(&writer, "LEAT_BATCH=", (int64_t)limits->batch);
    }
    if (limits->deadline_wall_ms > 0) {
        write_time(&writer, "LEAT_DEADLINE=", limits->deadline_wall_ms);
    }
    if (task) {
        write_task(&writer, task, limits->max_attempts);
        write_trace(&writer, environment, block, &task->trace);
    }
    *writer.next = NULL;
    return block;
}
