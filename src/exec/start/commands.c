/*
 * Looks up listed commands, and fills a task's fields into their arguments.
 */
#include "exec/start/commands.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/escape.h"
#include "config/types/arguments.h"
#include "config/types/commands.h"
#include "queue/arguments_fit.h"

struct command_line {
    char *name, *program;
    struct arguments arguments;
};

struct commands {
    struct command_line *lines;
    size_t count;
};

/* ---- read the config ---- */

static int make_line(struct command_line *line, const struct config_command *config,
                     const char *entry)
{
    const char *program = strchr(entry, '=') + 1;
    struct buffer why = BUFFER_INIT;
    line->name = strndup(entry, (size_t)(program - 1 - entry));
    line->program = strdup(program);
    if (!line->name || !line->program) {
        return -1;
    }
    /* the config's check has parsed it before, so this fails only without memory */
    const char *arguments = config_command_value(config->arguments, line->name);
    int result = arguments ? arguments_parse(arguments, &line->arguments, &why) : 0;
    buffer_free(&why);
    return result;
}

struct commands *commands_new(const struct config_command *config)
{
    struct commands *commands = calloc(1, sizeof *commands);
    size_t count = 0;
    while (config->program && config->program[count]) {
        count++;
    }
    if (!commands) {
        return NULL;
    }
    commands->lines = calloc(count > 0 ? count : 1, sizeof *commands->lines);
    for (size_t i = 0; commands->lines && i < count; i++) {
        commands->count++;
        if (make_line(&commands->lines[i], config, config->program[i])) {
            commands_free(commands);
            return NULL;
        }
    }
    if (!commands->lines) {
        commands_free(commands);
        return NULL;
    }
    return commands;
}

void commands_free(struct commands *commands)
{
    if (!commands) {
        return;
    }
    for (size_t i = 0; i < commands->count; i++) {
        free(commands->lines[i].name);
        free(commands->lines[i].program);
        arguments_free(&commands->lines[i].arguments);
    }
    free(commands->lines);
    free(commands);
}

const char *commands_program(const struct commands *commands, size_t index)
{
    return index < commands->count ? commands->lines[index].program : NULL;
}

int commands_look(const char *program, const char *path)
{
    char candidate[PATH_MAX];
    if (*program == '/') {
        return access(program, X_OK) == 0 ? 0 : errno;
    }
    for (const char *next = path; *next; next += *next == ':') {
        int size = (int)strcspn(next, ":");
        int length = snprintf(candidate, sizeof candidate, "%.*s/%s", size, next, program);
        if (length > 0 && length < (int)sizeof candidate && access(candidate, X_OK) == 0) {
            return 0;
        }
        next += size;
    }
    return ENOENT;
}

/* ---- apply to a task ---- */

static const struct command_line *find_line(const struct commands *commands,
                                            const struct task *task)
{
    for (size_t i = 0; task->command && i < commands->count; i++) {
        if (bytes_equal(*task->command, commands->lines[i].name)) {
            return &commands->lines[i];
        }
    }
    return NULL;
}

/* An unlisted name may hold any bytes: it is escaped, and a long one is cut. */
static bool refuse_command(const struct task *task, char *reason, size_t size)
{
    enum { SHOWN = 60 };
    struct buffer shown = BUFFER_INIT;
    bool cut = task->command && task->command->size > SHOWN;
    if (!task->command ||
        escape_append(&shown, task->command->data, cut ? SHOWN : task->command->size)) {
        buffer_clear(&shown);
    }
    (void)snprintf(reason, size, "command %.*s%s is not listed", (int)shown.size,
                   shown.data ? shown.data : "", cut ? "..." : "");
    buffer_free(&shown);
    return false;
}

bool commands_fit(const struct commands *commands, const struct task *task, char *reason,
                  size_t reason_size)
{
    const struct command_line *line = find_line(commands, task);
    if (!line) {
        return refuse_command(task, reason, reason_size);
    }
    if (task->directory) {
        (void)snprintf(reason, reason_size, COMMANDS_NO_DIRECTORY);
        return false;
    }
    return arguments_fit(&line->arguments, task->fields, task->field_count, reason, reason_size);
}

static struct bytes value_of(const struct argument_piece *piece, const struct task *task)
{
    return arguments_value(piece, task->fields, task->field_count);
}

char **commands_words(const struct commands *commands, const struct task *task)
{
    char reason[160];
    const struct command_line *line = find_line(commands, task);
    if (!line || !commands_fit(commands, task, reason, sizeof reason)) {
        return NULL;
    }
    const struct arguments *arguments = &line->arguments;
    size_t size = (arguments->count + 2) * sizeof(char *) + strlen(line->program) + 1;
    for (size_t i = 0; i < arguments->count; i++) {
        for (size_t j = 0; j < arguments->words[i].count; j++) {
            size += value_of(&arguments->words[i].pieces[j], task).size;
        }
        size++;
    }

    /* the pointers, then the text */
    char **words = malloc(size);
    if (!words) {
        return NULL;
    }
    char *at = (char *)(words + arguments->count + 2);
    words[0] = at;
    at = stpcpy(at, line->program) + 1;
    for (size_t i = 0; i < arguments->count; i++) {
        words[i + 1] = at;
        for (size_t j = 0; j < arguments->words[i].count; j++) {
            struct bytes value = value_of(&arguments->words[i].pieces[j], task);
            at =
                value.data ? mempcpy(at, value.data, value.size) : at; /* commands_fit checked it */
        }
        *at++ = '\0';
    }
    words[arguments->count + 1] = NULL;
    return words;
}
