/*
 * What a process writes to its pipes: stdout and stderr, whose lines go to the log and whose ends
 * are kept, and descriptor 3, on which the process of a batch says what becomes of single tasks.
 */
#ifndef LEAT_EXEC_ATTEMPT_STREAM_H
#define LEAT_EXEC_ATTEMPT_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "exec/attempt/child_state.h"

/* Makes the child's streams, each without a descriptor. events must outlive the child. */
void streams_init(struct child *child, const struct stream_events *events);

/* Reads of each stream what is there already, but not without end. */
void streams_drain(struct child *child);

/* From now on they are read as something comes: heard follows. */
void streams_watch(struct child *child);

/* Those that were held are read again. */
void streams_hear(struct child *child);

/* The log has not taken all that was read. */
bool streams_are_clogged(const struct child *child);

/* All are at their ends, and all of them was taken. */
bool streams_are_silent(const struct child *child);

/* What a last line without end holds is passed on, the tails go to the attempts, and nothing is
 * read any more. */
void streams_finish(struct child *child);

/* Stops watching, closes and frees. */
void streams_free(struct child *child);

#endif
