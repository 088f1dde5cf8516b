/*
 * A task before it is sent: its fields, and the checks that leatd would make.
 */
#include "cli/enqueue/draft.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "config/types/arguments.h"
#include "config/types/commands.h"
#include "queue/arguments_fit.h"
#include "queue/batch.h"
#include "queue/calls.h"

int draft_add(struct draft *draft, struct bytes name, struct bytes value)
{
    struct task_field *fields = array_grow(draft->fields, draft->count, sizeof *fields);

    if (!fields) {
        return -1;
    }
    draft->fields = fields;
    draft->fields[draft->count++] = (struct task_field){name, value};
    return 0;
}

int draft_add_text(struct draft *draft, const char *name, const char *value)
{
    return draft_add(draft, bytes_of(name), bytes_of(value));
}

bool draft_has(const struct draft *draft, const char *name)
{
    for (size_t i = 0; i < draft->count; i++) {
        if (bytes_equal(draft->fields[i].name, name)) {
            return true;
        }
    }
    return false;
}

struct bytes draft_label(const struct draft *draft)
{
    for (size_t i = 0; i < draft->count; i++) {
        if (bytes_equal(draft->fields[i].name, "id")) {
            return draft->fields[i].value;
        }
    }
    return (struct bytes){"", 0};
}

void draft_remove(struct draft *draft, const char *name)
{
    size_t kept = 0;

    for (size_t i = 0; i < draft->count; i++) {
        if (!bytes_equal(draft->fields[i].name, name)) {
            draft->fields[kept++] = draft->fields[i];
        }
    }
    draft->count = kept;
}

bool draft_check(const struct draft *draft, const struct config_task *config, char *reason,
                 size_t reason_size)
{
    struct task task = {
        .token = "", .tid = "", .field_count = draft->count, .fields = draft->fields};
    bool shares = config->batch > 1 || config->resident;

    return task_check(&task, config->command, reason, reason_size) &&
           (!shares || batch_fits(config->batch_format, &task, reason, reason_size));
}

static bool has_directory(const struct draft *draft)
{
    for (size_t i = 0; i < draft->count; i++) {
        if (bytes_equal(draft->fields[i].name, "directory")) {
            return draft->fields[i].value.size > 0;
        }
    }
    return false;
}

static bool fits_arguments(const struct draft *draft, const struct config *config, const char *name,
                           char *reason, size_t reason_size)
{
    const char *text = config_command_value(config->command.arguments, name);
    struct arguments arguments = {0};
    struct buffer why = BUFFER_INIT;
    /* the config was parsed with these arguments: a failure now is one of memory, and the worker
     * checks again */
    bool fine = !text || arguments_parse(text, &arguments, &why) != 0 ||
                arguments_fit(&arguments, draft->fields, draft->count, reason, reason_size);

    arguments_free(&arguments);
    buffer_free(&why);
    return fine;
}

bool draft_is_listed(const struct draft *draft, const struct config *config, char *reason,
                     size_t reason_size)
{
    if (config->security.commands != CONFIG_COMMANDS_LISTED) {
        return true;
    }
    if (has_directory(draft)) {
        (void)snprintf(reason, reason_size, COMMANDS_NO_DIRECTORY);
        return false;
    }
    for (size_t i = 0; i < draft->count; i++) {
        struct bytes command = draft->fields[i].value;
        char name[COMMANDS_NAME_MOST + 2];

        if (!bytes_equal(draft->fields[i].name, "command")) {
            continue;
        }
        bytes_copy(command, name, sizeof name); /* a name that is cut is too long to be listed */
        if (command.size < sizeof name && config_command_value(config->command.program, name)) {
            return fits_arguments(draft, config, name, reason, reason_size);
        }
        (void)snprintf(reason, reason_size, "the configuration has no [command.%s%s]", name,
                       command.size < sizeof name ? "" : "...");
    }
    return false;
}

void draft_append(const struct draft *draft, const char *due, struct command *command)
{
    queue_enqueue_task(command, due, draft->count);
    for (size_t i = 0; i < draft->count; i++) {
        queue_enqueue_field(command, draft->fields[i].name, draft->fields[i].value);
    }
}

void draft_free(struct draft *draft)
{
    free(draft->fields);
    *draft = (struct draft){0};
}
