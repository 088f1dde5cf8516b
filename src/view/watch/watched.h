/*
 * One queue that the board or leat top watches: its state, what runs and waits, and what it was
 * like before. Its Redis is asked once a second at most, and only for those who look.
 */
#ifndef LEAT_VIEW_WATCH_WATCHED_H
#define LEAT_VIEW_WATCH_WATCHED_H

#include <stdbool.h>

#include <jansson.h>

#include "redis/command.h"
#include "redis/connection/connection.h"

struct config;
struct ev_loop;
struct lanes;
struct queue;
struct status;
struct watched;

/* The parts that a refresh asks Redis for. */
enum watched_part {
    WATCHED_STATUS,
    WATCHED_LANES, /* a page of lanes */
    WATCHED_LISTS, /* the beginnings of lists of tasks */
    WATCHED_ENDED, /* the tasks that ended last, if the status tells of other ends than before */
    WATCHED_PARTS
};

/* A refresh has ended, well or not. */
typedef void watched_refreshed(void *context);

struct watched_settings {
    const char *name;      /* of the queue */
    struct config *config; /* taken over, also after a failure. NULL: that of /etc/leat/NAME.ini; if
                              the file is wrong, the state says so */
    const char *watcher;   /* the end of the client name, such as "board" */
    bool read_only;        /* as in struct queue */
};

/* Returns NULL without memory. */
struct watched *watched_new(struct ev_loop *loop, const struct watched_settings *settings,
                            watched_refreshed *refreshed, void *context);

/* NULL does nothing. Callbacks of watched_send are called with NULL. */
void watched_free(struct watched *watched);

const char *watched_name(const struct watched *watched);

/* Its keys, for calls; NULL if its file has an error. */
const struct queue *watched_queue(const struct watched *watched);

/* Asks Redis for the status and all parts up to this one, each if that was not done in the last
 * second, or for a longer time if it takes Redis long. Does nothing if it is being done, or if
 * Redis is away. */
void watched_refresh(struct watched *watched, enum watched_part part);

/* True while an answer is awaited that watched_refresh has asked for, or the first connection. */
bool watched_is_refreshing(const struct watched *watched);

/* Asks for the status, and adds it to the rings when it comes. */
void watched_sample(struct watched *watched);

/* The last status, and the longest lanes; NULL: not known. They are valid until control returns to
 * the event loop. */
const struct status *watched_status(const struct watched *watched);
const struct lanes *watched_lanes(const struct watched *watched);

/* {"queue", "state", "reason", "age_ms", "status": as leat status --json, or null}. These return
 * NULL without memory. */
json_t *watched_summary(const struct watched *watched);

/* The same with "running", "ready", "delayed", "dead", "ended" and "lanes"; null: not known. Rows
 * are those of view/shown.h. */
json_t *watched_page(const struct watched *watched);

/* The ring of the last hour or of the last day. */
json_t *watched_series(const struct watched *watched, bool day);

/* Sends one more command to the queue's Redis; see connection_send. Frees the command. */
int watched_send(struct watched *watched, struct command *command, connection_callback *callback,
                 void *context);

#endif
