/*
 * Reads what a process writes to its pipes: stdout and stderr, whose lines are logged and whose
 * tails are kept, and descriptor 3, on which the process of a batch writes verdicts on single
 * tasks.
 */
#ifndef LEAT_EXEC_ATTEMPT_STREAM_H
#define LEAT_EXEC_ATTEMPT_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "exec/attempt/child_state.h"

/* Sets up the child's streams without descriptors. events must outlive the child. */
void streams_init(struct child *child, const struct stream_events *events);

/* Reads what the streams have now, with a limited number of reads. */
void streams_drain(struct child *child);

/* Begins to watch the streams, and calls was_read after each read. */
void streams_watch(struct child *child);

/* Reads streams again that a follower had paused. */
void streams_resume(struct child *child);

/* Returns true if output was read that the log has not accepted yet. */
bool streams_are_blocked(const struct child *child);

/* Returns true if all streams are at their ends and the log has accepted everything. */
bool streams_are_done(const struct child *child);

/* Stops reading, passes on last lines without a newline, and gives the tails to the attempts. */
void streams_finish(struct child *child);

/* Stops watching, closes and frees the streams. */
void streams_free(struct child *child);

#endif
