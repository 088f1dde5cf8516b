/*
 * Draws leat top: a head, tabs, a list or a text, and below it a line of notes and one of keys.
 */
#include "cli/top/draw.h"

#include <string.h>

#include "cli/lib/text.h"
#include "cli/top/header.h"
#include "cli/top/screen.h"
#include "view/watch/watched.h"

#define BELOW 2         /* lines: notes, and keys or what is asked */
#define LIST_LEAST 3    /* rows of a list, whatever is above it */
#define HINT_COLUMNS 70 /* room for the last hint */

/* no longer and no wider than the smallest terminal */
static const char help[] = "Move      Up Down or k j, PgUp PgDn Space, Home End or g G\n"
                           "Open      Enter; back: Esc or q; end: q on the first screen\n"
                           "Lists     Tab, Left Right, or 1 to 6\n"
                           "Filter    /: only rows with this text; Esc shows all again\n"
                           "Sort      s: by the next column; S: in the other direction\n"
                           "Queue     p: pause it, or resume it\n"
                           "Task      c: cancel it; r: retry the dead letter\n"
                           "Worker    d: drain the worker's host, or undrain it\n"
                           "Question  y does what p, c, r or d asks; other keys do not\n"
                           "Repaint   Ctrl-L                    Press a key to go on.\n";

size_t draw_page_rows(const struct top *top)
{
    return top->rows / 2;
}

/* ---- lines */

static void draw_line(const struct top *top, size_t row, const struct buffer *line)
{
    screen_line(top->screen, row, buffer_bytes(line), false);
}

static size_t count_lines(const struct buffer *text)
{
    size_t count = 0;

    for (size_t i = 0; i < text->size; i++) {
        count += text->data[i] == '\n';
    }
    return count;
}

/* Draws lines of the text, from `first` on, onto rows from `row` up to `end`. selected: a line, or
 * SIZE_MAX. Returns the row after the last one. */
static size_t draw_lines(const struct top *top, const struct buffer *text, size_t first, size_t row,
                         size_t end, size_t selected)
{
    struct bytes all = buffer_bytes(text);
    const char *at = all.data, *stop = at + all.size;

    for (size_t line = 0; at < stop && row < end; line++) {
        const char *newline = memchr(at, '\n', (size_t)(stop - at));
        size_t size = (size_t)((newline ? newline : stop) - at);
        if (line >= first) {
            screen_line(top->screen, row++, (struct bytes){at, size}, line == selected);
        }
        at += size + 1;
    }
    return row;
}

/* ---- parts */

/* "[Running 12]" if it is the one that is shown, or " Running 12 ". count: -1 is left out. */
static void add_tab(const char *title, int64_t count, bool active, bool color, struct buffer *out)
{
    /* a failed append marks the buffer */
    (void)text_style(out, TEXT_BOLD, active && color);
    (void)buffer_printf(out, "%s%s", active ? "[" : " ", title);
    if (count >= 0) {
        (void)buffer_printf(out, " %lld", (long long)count);
    }
    (void)buffer_append_text(out, active ? "]" : " ");
    (void)text_style(out, TEXT_PLAIN, active && color);
}

static void add_tabs(const struct top *top, bool counts, bool color, struct buffer *out)
{
    static const char *const titles[LIST_TABS] = {
        [LIST_RUNNING] = "Running", [LIST_WAITING] = "Waiting", [LIST_WORKERS] = "Workers",
        [LIST_LANES] = "Lanes",     [LIST_DEAD] = "Dead",       [LIST_ENDED] = "Ended"};

    for (size_t i = 0; i < LIST_TABS; i++) {
        enum list_kind kind = (enum list_kind)i;
        add_tab(titles[i], counts ? list_total(kind, top->page) : -1, kind == top->tab, color, out);
    }
}

/* Without the numbers if the line would be too long with them. */
static void draw_tabs(const struct top *top, size_t row)
{
    struct buffer line = BUFFER_INIT;
    bool counts = json_is_object(json_object_get(top->page, "status"));

    /* a failed append marks the buffer */
    add_tabs(top, counts, false, &line);
    counts = counts && text_width(buffer_bytes(&line).data, line.size) <= top->columns;
    buffer_clear(&line);
    add_tabs(top, counts, top->color, &line);
    draw_line(top, row, &line);
    buffer_free(&line);
}

/* Keeps the selected row within `room` rows. */
static void scroll(struct top_list *list, size_t room)
{
    size_t count = json_array_size(list->rows);

    if (list->first + room > count) {
        list->first = count > room ? count - room : 0;
    }
    if (list->selected < list->first) {
        list->first = list->selected;
    } else if (room > 0 && list->selected >= list->first + room) {
        list->first = list->selected - room + 1;
    }
}

static void draw_list(struct top *top, size_t row, size_t end)
{
    static const char *const nothing[LIST_KINDS] = {
        [LIST_RUNNING] = "no task runs", [LIST_WAITING] = "no task waits",
        [LIST_WORKERS] = "no workers",   [LIST_LANES] = "no lanes",
        [LIST_DEAD] = "no dead letters", [LIST_ENDED] = "no task has ended, or there is no history",
        [LIST_QUEUES] = "no queues"};
    struct top_list *list = top_list(top);
    enum list_kind kind = top_list_kind(top);
    struct buffer text = BUFFER_INIT;

    if (json_array_size(list->rows) == 0) {
        /* a failed append marks the buffer */
        (void)buffer_append_text(&text, list->read > 0 ? "no row has this text" : nothing[kind]);
        draw_line(top, row, &text);
    } else if (list_render(kind, list->rows, top->now_ms, top->columns, top->color, &text) == 0) {
        scroll(list, end > row + 1 ? end - row - 1 : 0);
        (void)draw_lines(top, &text, 0, row, row + 1, SIZE_MAX);
        (void)draw_lines(top, &text, list->first + 1, row + 1, end, list->selected + 1);
    }
    buffer_free(&text);
}

/* How the list is arranged, and what of it is missing; or a problem of the selected queue. */
static void draw_notes(struct top *top, size_t row)
{
    const struct top_list *list = top_list(top);
    const char *problem = json_string_value(json_object_get(top_row(top), "problem"));
    const char *name = json_string_value(json_object_get(top_row(top), "queue"));
    size_t shown = json_array_size(list->rows), empty;
    struct buffer line = BUFFER_INIT;

    /* a failed append marks the buffer */
    (void)text_style(&line, TEXT_DIM, top->color);
    empty = line.size;
    if (list->total > (int64_t)list->read) {
        (void)buffer_printf(&line, "the first %zu of %lld; leat list shows all  ", list->read,
                            (long long)list->total);
    }
    if (list->total == LIST_UNCOUNTED && list->read > 0) {
        (void)buffer_printf(&line, "the last %zu; leat list --state done shows all  ", list->read);
    }
    if (list->filter.size > 0) {
        (void)buffer_printf(&line, "%zu with \"", shown);
        (void)text_append(&line, list->filter.data, list->filter.size);
        (void)buffer_append_text(&line, "\"  ");
    }
    if (list->column != LIST_UNSORTED) {
        (void)buffer_printf(&line, "sorted by %s", list_title(top_list_kind(top), list->column));
    }
    (void)buffer_append_text(&line, list->reverse ? " in reverse" : "");
    if (line.size == empty && problem) {
        (void)buffer_append_text(&line, "! ");
        (void)text_append(&line, name ? name : "", name ? strlen(name) : 0);
        (void)buffer_append_text(&line, ": ");
        (void)text_append(&line, problem, strlen(problem));
    }
    (void)text_style(&line, TEXT_PLAIN, top->color);
    draw_line(top, row, &line);
    buffer_free(&line);
}

static const char *hints(const struct top *top)
{
    if (top->place == TOP_QUEUES) {
        return "Enter open  / filter  s sort  p pause  ? help  q quit";
    }
    if (top->place == TOP_TASK) {
        return top->letter[0]        ? "Tab next  r retry  ? help  Esc back"
               : top->task.has_ended ? "Tab next  ? help  Esc back"
                                     : "Tab next  c cancel  ? help  Esc back";
    }
    switch (top->tab) {
    case LIST_RUNNING:
    case LIST_WAITING:
        return "Enter open  Tab next  / filter  c cancel  p pause  ? help";
    case LIST_WORKERS:
        return "Tab next  / filter  d drain  p pause  ? help";
    case LIST_DEAD:
        return "Enter open  Tab next  / filter  r retry  ? help";
    case LIST_ENDED:
        return "Enter open  Tab next  / filter  s sort  ? help";
    case LIST_LANES:
    case LIST_QUEUES:
    case LIST_KINDS:
        break;
    }
    return "Tab next  / filter  s sort  p pause  ? help";
}

static void draw_keys(struct top *top, size_t row)
{
    const struct top_list *list = top_list(top);
    const struct action *action = &top->action;
    struct buffer line = BUFFER_INIT;
    size_t count;

    /* a failed append marks the buffer */
    if (action->question.size > 0) {
        (void)text_style(&line, TEXT_BOLD, top->color);
        (void)buffer_append(&line, action->question.data, action->question.size);
        (void)buffer_append_text(&line, " (y/n)");
    } else if (top->input == TOP_FILTER && list) {
        (void)buffer_append_text(&line, "filter: ");
        (void)text_append(&line, buffer_bytes(&list->filter).data, list->filter.size);
        (void)buffer_append_text(&line, "_");
    } else if (action->told.size > 0) {
        (void)text_style(&line, action->failed ? TEXT_RED : TEXT_GREEN, top->color);
        (void)buffer_append(&line, action->told.data, action->told.size);
    } else {
        (void)text_style(&line, TEXT_DIM, top->color);
        (void)buffer_append_text(&line, hints(top));
        if (top->place == TOP_QUEUE && top->columns >= HINT_COLUMNS) {
            (void)buffer_append_text(&line, top->named ? "  q quit" : "  q back");
        }
    }
    (void)text_style(&line, TEXT_PLAIN, top->color);
    (void)text_wrap(&line, 0, top->columns);
    count = count_lines(&line) + 1;
    /* a long message takes the line of notes, too */
    (void)draw_lines(top, &line, 0, count > 1 ? row - 1 : row, row + 1, SIZE_MAX);
    buffer_free(&line);
}

/* ---- screens */

static void draw_queues(struct top *top)
{
    struct buffer line = BUFFER_INIT;

    /* a failed append marks the buffer */
    (void)text_style(&line, TEXT_BOLD, top->color);
    (void)buffer_printf(&line, "leat top: %zu queue%s", top->queue_count,
                        top->queue_count == 1 ? "" : "s");
    (void)text_style(&line, TEXT_PLAIN, top->color);
    draw_line(top, 0, &line);
    buffer_free(&line);
    draw_list(top, 2, top->rows - BELOW);
    draw_notes(top, top->rows - BELOW);
}

/* A long head is cut, so that LIST_LEAST rows of the list fit below it, and half of the terminal is
 * left for them and for all lines around them. */
static size_t head_rows(const struct top *top)
{
    enum { BETWEEN = 3 }; /* lines: an empty one, tabs, titles */
    size_t least = BETWEEN + LIST_LEAST + BELOW, half = top->rows / 2;

    return top->rows < half + least ? top->rows - least : half;
}

static void draw_queue(struct top *top)
{
    struct buffer head = BUFFER_INIT;
    size_t row;

    header_render(top->page, top->columns, top->color, &head);
    row = draw_lines(top, &head, 0, 0, head_rows(top), SIZE_MAX);
    buffer_free(&head);
    draw_tabs(top, row + 1);
    draw_list(top, row + 2, top->rows - BELOW);
    draw_notes(top, top->rows - BELOW);
}

static void add_task_title(const struct top *top, struct buffer *out)
{
    const char *name = watched_name(top->queues[top->queue]);

    /* a failed append marks the buffer */
    (void)text_style(out, TEXT_BOLD, top->color);
    (void)text_append(out, name, strlen(name));
    (void)buffer_append_text(out, top->letter[0]        ? "  dead letter "
                                  : top->task.has_ended ? "  ended task "
                                                        : "  task ");
    (void)text_append(out, top->task.id, strlen(top->task.id));
    (void)text_style(out, TEXT_PLAIN, top->color);
    (void)buffer_append_text(out, "\n");
    for (size_t i = 0; i < TASK_PANES; i++) {
        enum task_pane pane = (enum task_pane)i;
        add_tab(task_pane_title(pane), -1, pane == top->task.pane, top->color, out);
    }
}

static void draw_task(struct top *top)
{
    struct buffer title = BUFFER_INIT, text = BUFFER_INIT;
    size_t end = top->rows - BELOW, room, count, row;

    add_task_title(top, &title);
    row = draw_lines(top, &title, 0, 0, end, SIZE_MAX) + 1;
    task_render(&top->task, top->columns, &text);
    room = end > row ? end - row : 0;
    count = count_lines(&text);
    if (top->follows || top->first + room > count) {
        top->first = count > room ? count - room : 0;
        top->follows = top->task.pane == TASK_OUTPUT;
    }
    (void)draw_lines(top, &text, top->first, row, end, SIZE_MAX);
    buffer_free(&title);
    buffer_free(&text);
}

static void draw_small(const struct top *top)
{
    struct buffer text = BUFFER_INIT;

    /* a failed append marks the buffer */
    (void)buffer_printf(&text, "leat top needs %d columns\nand %d rows; here: %zu x %zu",
                        DRAW_LEAST_COLUMNS, DRAW_LEAST_ROWS, top->columns, top->rows);
    (void)draw_lines(top, &text, 0, 0, top->rows, SIZE_MAX);
    buffer_free(&text);
}

static void draw_help(const struct top *top)
{
    struct buffer text = BUFFER_INIT;

    /* a failed append marks the buffer */
    (void)buffer_append_text(&text, help);
    (void)draw_lines(top, &text, 0, 0, top->rows, SIZE_MAX);
    buffer_free(&text);
}

void draw(struct top *top)
{
    top_read_rows(top);
    screen_clear(top->screen);
    if (top->columns < DRAW_LEAST_COLUMNS || top->rows < DRAW_LEAST_ROWS) {
        draw_small(top);
    } else if (top->input == TOP_HELP) {
        draw_help(top);
    } else if (top->place == TOP_TASK) {
        draw_task(top);
        draw_keys(top, top->rows - 1);
    } else {
        if (top->place == TOP_QUEUES) {
            draw_queues(top);
        } else {
            draw_queue(top);
        }
        draw_keys(top, top->rows - 1);
    }
    screen_show(top->screen);
}
