/*
 * The screen of a task: what leat show and leat explain tell about it, and its output as leat logs
 * follows it.
 */
#ifndef LEAT_CLI_TOP_TASK_H
#define LEAT_CLI_TOP_TASK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "config/file/source.h"

struct ev_loop;
struct child;

enum task_pane { TASK_DETAILS, TASK_OUTPUT, TASK_WHY, TASK_PANES };

/* Set loop, changed and context once. */
struct task_screen {
    struct ev_loop *loop;
    void (*changed)(void *context); /* the text has changed */
    void *context;

    /* the rest is read only */
    struct config_source source;
    char *id;       /* NULL: closed; owned */
    bool has_ended; /* nothing about it changes, so it is read once */
    enum task_pane pane;
    struct child *child; /* NULL: none runs */
    struct buffer text;  /* of the pane, as it came */
    struct buffer next;  /* of the pane, while it is read again */
    bool ended;          /* the output has come to its end */
};

/* Shows the details of a task. source names the queue; has_ended: the task is in the history.
 * Returns 0, or -1 without memory. */
int task_open(struct task_screen *task, const struct config_source *source, const char *id,
              bool has_ended);
void task_close(struct task_screen *task);

void task_select(struct task_screen *task, enum task_pane pane);

/* Reads the pane again, unless it is being read or cannot change, or it is the output, which comes
 * by itself. */
void task_refresh(struct task_screen *task);

/* Appends all lines of the pane, escaped and wrapped. A failed append marks the buffer. */
void task_render(const struct task_screen *task, size_t width, struct buffer *out);

const char *task_pane_title(enum task_pane pane);

#endif
