/*
 * The screen of a task.
 */
#include "cli/top/task.h"

#include <stdlib.h>
#include <string.h>

#include "cli/lib/cli.h"
#include "cli/lib/text.h"
#include "cli/top/child.h"

#define MOST_TEXT ((size_t)1 << 16) /* bytes of a pane that are kept: of output the last ones */
#define LINES "1000"                /* of output that was there before */

static void drop_child(struct task_screen *task)
{
    child_free(task->child);
    task->child = NULL;
}

/* Forgets whole lines of the beginning. */
static void keep_end(struct buffer *text)
{
    size_t excess = text->size > MOST_TEXT ? text->size - MOST_TEXT : 0;
    const char *newline = excess > 0 ? memchr(text->data + excess, '\n', MOST_TEXT) : NULL;

    if (excess > 0) {
        buffer_consume(text, newline ? (size_t)(newline - text->data) + 1 : excess);
    }
}

static void on_output(void *context, struct bytes bytes)
{
    struct task_screen *task = context;

    /* without memory a part is missing */
    if (task->pane == TASK_OUTPUT) {
        (void)buffer_append(&task->text, bytes.data, bytes.size);
        keep_end(&task->text);
        task->changed(task->context);
    } else if (task->next.size + bytes.size <= MOST_TEXT) {
        (void)buffer_append(&task->next, bytes.data, bytes.size);
    }
}

static void on_ended(void *context, int status)
{
    struct task_screen *task = context;

    (void)status; /* a command that fails says why */
    drop_child(task);
    if (task->pane == TASK_OUTPUT) {
        task->ended = true;
    } else {
        struct buffer old = task->text;
        task->text = task->next;
        task->next = old;
        buffer_clear(&task->next);
    }
    task->changed(task->context);
}

static void start(struct task_screen *task)
{
    static const struct {
        const struct subcommand *command;
        const char *words[CHILD_WORDS];
    } commands[TASK_PANES] = {
        [TASK_DETAILS] = {&show_command, {"show"}},
        [TASK_OUTPUT] = {&logs_command, {"logs", "-f", "-n", LINES}},
        [TASK_WHY] = {&explain_command, {"explain"}},
    };
    const struct child_events events = {on_output, on_ended, task};
    const char *words[CHILD_WORDS + 1] = {NULL};
    size_t count = 0;

    for (; commands[task->pane].words[count]; count++) {
        words[count] = commands[task->pane].words[count];
    }
    words[count++] = "--";
    words[count] = task->id;
    task->child =
        child_start(task->loop, &task->source, commands[task->pane].command, words, &events);
}

int task_open(struct task_screen *task, const struct config_source *source, const char *id,
              bool has_ended)
{
    task_close(task);
    task->id = strdup(id);
    if (!task->id) {
        return -1;
    }
    task->source = *source;
    task->has_ended = has_ended;
    task_select(task, TASK_DETAILS);
    return 0;
}

void task_close(struct task_screen *task)
{
    drop_child(task);
    free(task->id);
    task->id = NULL;
    buffer_free(&task->text);
    buffer_free(&task->next);
}

void task_select(struct task_screen *task, enum task_pane pane)
{
    drop_child(task);
    buffer_clear(&task->text);
    buffer_clear(&task->next);
    task->pane = pane;
    task->ended = false;
    start(task);
}

void task_refresh(struct task_screen *task)
{
    bool is_read = task->has_ended && task->text.size > 0;

    if (task->id && !task->child && !task->ended && !is_read) {
        start(task);
    }
}

void task_render(const struct task_screen *task, size_t width, struct buffer *out)
{
    size_t start = out->size;

    if (task->text.size == 0) {
        (void)buffer_append_text(out, task->pane != TASK_OUTPUT ? "reading ..."
                                      : task->ended             ? "no output"
                                                                : "no output yet");
        (void)buffer_append_text(out, "\n");
    }
    (void)text_append_lines(out, buffer_bytes(&task->text).data, task->text.size, "");
    if (task->ended && task->text.size > 0) {
        (void)buffer_append_text(out, "-- end --\n");
    }
    (void)text_wrap(out, start, width);
}

const char *task_pane_title(enum task_pane pane)
{
    static const char *const titles[TASK_PANES] = {
        [TASK_DETAILS] = "Details", [TASK_OUTPUT] = "Output", [TASK_WHY] = "Why"};

    return titles[pane];
}
