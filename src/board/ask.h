/*
 * Questions about single tasks of a queue: everything about one, or a search. A queue answers one
 * question at a time.
 */
#ifndef LEAT_BOARD_ASK_H
#define LEAT_BOARD_ASK_H

#include <stdbool.h>

#include <jansson.h>

#include "view/watch/watched.h"

/* Called once, never from within a function that asks. The answer is the receiver's. NULL: the
 * queue did not answer, or there was no memory. */
typedef void ask_answered(void *context, json_t *answer);

/* Asks for a task by its id, by its label while it lives, or by the id of its dead letter: the
 * answer is as leat show
 * --json, with long values cut; or {} if there is none. Returns 0, or -1 if the queue is away or
 * there is no memory. */
int ask_task(struct watched *watched, const char *id, ask_answered *answered, void *context);

/* Searches the beginnings of all lists, the tasks that ended last, and the lane of that name, for
 * tasks that have the text in their command, id, label, lane or unique key. The answer: {"tasks":
 * rows, "looked_at": number of tasks}. Returns as ask_task. */
int ask_search(struct watched *watched, const char *text, ask_answered *answered, void *context);

#endif
