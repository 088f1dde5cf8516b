/*
 * Handles the keys of leat top.
 */
#include "cli/top/keys.h"

#include <stdio.h>
#include <string.h>

#include "cli/top/draw.h"
#include "cli/top/screen.h"
#include "view/output_json.h"
#include "view/watch/watched.h"

#define CTRL(letter) ((letter)&0x1f)
#define FAR INT64_C(1000000)

/* ---- actions */

/* The task for which a key is meant: the one that is shown, or the selected one. */
static const char *task_of(struct top *top)
{
    return top->place == TOP_TASK ? top->task.id
                                  : json_string_value(json_object_get(top_row(top), "tid"));
}

static void ask_cancel(struct top *top)
{
    const char *id = task_of(top);
    const char *words[] = {"cancel", "--now", "--", id, NULL};
    struct config_source source;
    bool is_dead = top->place == TOP_TASK ? top->letter[0] != '\0' : top->tab == LIST_DEAD;
    bool has_ended = top->place == TOP_TASK ? top->task.has_ended : top->tab == LIST_ENDED;

    if (has_ended) {
        action_tell(&top->action, true, "the task has ended");
    } else if (is_dead) {
        action_tell(&top->action, true, "a dead letter cannot be cancelled; r retries it");
    } else if (id && top_queue(top, &source)) {
        action_ask(&top->action, &source, &cancel_command, words, "cancel task %s?", id);
    }
}

static void ask_retry(struct top *top)
{
    const char *id = task_of(top);
    const char *letter = top->place == TOP_TASK
                             ? top->letter
                             : json_string_value(json_object_get(top_row(top), "dead_id"));
    /* not `letter`, which means an entry only after a 'd' */
    const char *words[] = {"dead", "retry", "--", id, NULL};
    struct config_source source;

    if (id && letter && *letter && top_queue(top, &source)) {
        action_ask(&top->action, &source, &dead_command, words, "retry dead letter %s?", id);
    }
}

/* Pauses the queue, or resumes it if it is paused. */
static void ask_pause(struct top *top)
{
    struct config_source source;
    const struct watched *queue = top_queue(top, &source);
    json_t *summary = queue ? watched_summary(queue) : NULL;
    bool paused = json_is_true(json_object_get(json_object_get(summary, "status"), "paused"));
    const char *words[] = {paused ? "resume" : "pause", NULL};

    if (queue) {
        action_ask(&top->action, &source, paused ? &resume_command : &pause_command, words,
                   paused ? "resume queue %s?" : "pause queue %s, so that no task starts?",
                   watched_name(queue));
    }
    json_decref(summary);
}

/* Drains the host of the worker, or undrains it. */
static void ask_drain(struct top *top)
{
    const json_t *row = top->place == TOP_QUEUE && top->tab == LIST_WORKERS ? top_row(top) : NULL;
    const char *host = json_string_value(json_object_get(row, "host"));
    bool drained = json_is_true(json_object_get(row, "drained"));
    const char *words[] = {drained ? "undrain" : "drain", "--", host, NULL};
    struct config_source source;

    if (host && top_queue(top, &source)) {
        action_ask(&top->action, &source, drained ? &undrain_command : &drain_command, words,
                   drained ? "let workers on %s start tasks again?"
                           : "drain %s, so that no task starts there?",
                   host);
    }
}

/* Returns false for other keys. */
static bool press_action(struct top *top, int key)
{
    switch (key) {
    case 'c':
        ask_cancel(top);
        return true;
    case 'r':
        ask_retry(top);
        return true;
    case 'p':
        ask_pause(top);
        return true;
    case 'd':
        ask_drain(top);
        return true;
    default:
        return false;
    }
}

/* ---- moving */

/* How far a key moves; 0: it does not. */
static int64_t distance(const struct top *top, int key)
{
    int64_t page = (int64_t)draw_page_rows(top);

    switch (key) {
    case SCREEN_UP:
    case 'k':
        return -1;
    case SCREEN_DOWN:
    case 'j':
        return 1;
    case SCREEN_PAGE_UP:
    case CTRL('b'):
        return -page;
    case SCREEN_PAGE_DOWN:
    case CTRL('f'):
    case ' ':
        return page;
    case SCREEN_HOME:
    case 'g':
        return -FAR;
    case SCREEN_END:
    case 'G':
        return FAR;
    default:
        return 0;
    }
}

/* draw bounds the first line below, and then follows the end of output. */
static void scroll_task(struct top *top, int64_t by)
{
    int64_t first = (int64_t)top->first + by;

    top->first = first > 0 ? (size_t)first : 0;
    top->follows = false;
}

/* Returns the index of the tab that a key shows, or `count` if there is none. */
static size_t tab_of(int key, size_t now, size_t count)
{
    switch (key) {
    case '\t':
    case SCREEN_RIGHT:
    case 'l':
        return (now + 1) % count;
    case SCREEN_LEFT:
    case 'h':
        return (now + count - 1) % count;
    default:
        return key > '0' && key <= '0' + (int)count ? (size_t)(key - '1') : count;
    }
}

static void press_tab(struct top *top, int key)
{
    if (top->place == TOP_QUEUE) {
        size_t tab = tab_of(key, top->tab, LIST_TABS);
        if (tab < LIST_TABS) {
            top_show_tab(top, (enum list_kind)tab);
        }
    } else if (top->place == TOP_TASK) {
        size_t pane = tab_of(key, top->task.pane, TASK_PANES);
        if (pane < TASK_PANES) {
            task_select(&top->task, (enum task_pane)pane);
            top->first = 0;
            top->follows = pane == TASK_OUTPUT;
        }
    }
}

/* ---- the list */

static void sort(struct top *top, int key)
{
    struct top_list *list = top_list(top);

    if (!list) {
        return;
    }
    if (key == 's') {
        list->column = list_next_column(top_list_kind(top), list->column);
        list->reverse = false;
    } else {
        list->reverse = !list->reverse;
    }
}

static void press_filter(struct top *top, int key)
{
    struct buffer *filter = &top_list(top)->filter;

    switch (key) {
    case SCREEN_ESCAPE:
        buffer_clear(filter);
        top->input = TOP_KEYS;
        break;
    case '\n':
        top->input = TOP_KEYS;
        break;
    case SCREEN_BACKSPACE:
        /* with all bytes of a character */
        while (filter->size > 0 && (filter->data[--filter->size] & 0xc0) == 0x80) {
        }
        break;
    case CTRL('u'):
        buffer_clear(filter);
        break;
    default:
        if (key >= ' ' && key < 0x100) {
            const char byte = (char)key;
            /* without memory the key does nothing */
            (void)buffer_append(filter, &byte, 1);
        }
        break;
    }
}

/* ---- */

/* Esc first takes the filter away. Returns false if leat top is to end. */
static bool go_back(struct top *top, int key)
{
    struct top_list *list = top_list(top);

    if (key == SCREEN_ESCAPE && list && list->filter.size > 0) {
        buffer_clear(&list->filter);
        return true;
    }
    return top_back(top) || key == SCREEN_ESCAPE;
}

static void press_other(struct top *top, int key)
{
    int64_t by = distance(top, key);

    if (by != 0 && top->place == TOP_TASK) {
        scroll_task(top, by);
    } else if (by != 0) {
        top_move(top, by);
    } else if (!press_action(top, key)) {
        press_tab(top, key);
    }
}

static bool press(struct top *top, int key)
{
    switch (key) {
    case 'q':
    case SCREEN_ESCAPE:
        return go_back(top, key);
    case '\n':
        top_open(top);
        break;
    case '?':
        top->input = TOP_HELP;
        break;
    case '/':
        top->input = top_list(top) ? TOP_FILTER : TOP_KEYS;
        break;
    case 's':
    case 'S':
        sort(top, key);
        break;
    case CTRL('l'):
        screen_repaint(top->screen);
        break;
    default:
        press_other(top, key);
        break;
    }
    return true;
}

bool keys_press(struct top *top, int key)
{
    bool goes_on = true;

    buffer_clear(&top->action.told);
    if (top->action.question.size > 0) {
        action_answer(&top->action, key == 'y' || key == 'Y');
    } else if (top->input == TOP_HELP) {
        top->input = TOP_KEYS;
    } else if (top->input == TOP_FILTER) {
        press_filter(top, key);
    } else {
        goes_on = press(top, key);
    }
    top_changed(top);
    return goes_on;
}
