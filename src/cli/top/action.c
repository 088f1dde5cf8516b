/*
 * Runs the commands of leat by which leat top changes a queue.
 */
#include "cli/top/action.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/text.h"

#define MOST_OUTPUT 16384

static void forget(struct action *action)
{
    buffer_clear(&action->question);
    for (size_t i = 0; i < CHILD_WORDS; i++) {
        free(action->words[i]);
        action->words[i] = NULL;
    }
}

void action_tell(struct action *action, bool failed, const char *text)
{
    action->failed = failed;
    buffer_clear(&action->told);
    /* without memory the text is missing */
    (void)text_append(&action->told, text, strlen(text));
}

/* Keeps the last line that is not empty, without the name of this program. */
static void read_line(struct action *action)
{
    static const char name[] = "leat: ";
    struct bytes text = buffer_bytes(&action->output);
    const char *newline;

    while (text.size > 0 && text.data[text.size - 1] == '\n') {
        text.size--;
    }
    newline = text.size > 0 ? memrchr(text.data, '\n', text.size) : NULL;
    if (newline) {
        text.size -= (size_t)(newline + 1 - text.data);
        text.data = newline + 1;
    }
    if (text.size >= sizeof name && memcmp(text.data, name, sizeof name - 1) == 0) {
        text.size -= sizeof name - 1;
        text.data += sizeof name - 1;
    }
    buffer_clear(&action->told);
    /* without memory the text is missing */
    (void)text_append(&action->told, text.data, text.size);
}

static void on_output(void *context, struct bytes bytes)
{
    struct action *action = context;

    /* the same */
    if (action->output.size + bytes.size <= MOST_OUTPUT) {
        (void)buffer_append(&action->output, bytes.data, bytes.size);
    }
}

static void on_ended(void *context, int status)
{
    struct action *action = context;

    child_free(action->child);
    action->child = NULL;
    action->failed = status != EX_OK;
    read_line(action);
    action->changed(action->context);
}

void action_ask(struct action *action, const struct config_source *source,
                const struct subcommand *command, const char *const *words, const char *format, ...)
{
    char question[512];
    va_list args;

    if (action->child) {
        return;
    }
    forget(action);
    action->source = *source;
    action->command = command;
    for (size_t i = 0; i < CHILD_WORDS && words[i]; i++) {
        action->words[i] = strdup(words[i]);
        if (!action->words[i]) {
            forget(action);
            return;
        }
    }
    va_start(args, format);
    (void)vsnprintf(question, sizeof question, format, args);
    va_end(args);
    /* without memory nothing is asked, and nothing happens */
    (void)text_append(&action->question, question, strlen(question));
}

void action_answer(struct action *action, bool yes)
{
    const struct child_events events = {on_output, on_ended, action};

    if (yes) {
        buffer_clear(&action->output);
        action->child = child_start(action->loop, &action->source, action->command,
                                    (const char *const *)action->words, &events);
        action_tell(action, !action->child, action->child ? "..." : "cannot start a process");
    } else {
        action_tell(action, false, "nothing was changed");
    }
    forget(action);
}

void action_free(struct action *action)
{
    forget(action);
    child_free(action->child);
    buffer_free(&action->question);
    buffer_free(&action->told);
    buffer_free(&action->output);
}
