/*
 * Reads stdout or stderr of a task, cuts it into lines and keeps the last bytes. A task that writes
 * nothing costs no memory here.
 */
#ifndef LEAT_EXEC_ATTEMPT_OUTPUT_H
#define LEAT_EXEC_ATTEMPT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "queue/task.h"

struct output {
    int fd;             /* owned; -1 at the end of the stream */
    struct buffer line; /* the beginning of a line that is not complete yet */
    struct buffer tail; /* the last bytes, at least tail_limit of them */
    struct buffer rest; /* for the caller: what was read and not passed on yet */
    size_t got;         /* how many bytes of the scratch buffer the last read has filled */
    int64_t total; /* bytes that were read, since output_open or since the caller set it to 0 */
};

/* The receiver of lines. */
struct output_lines {
    size_t max; /* > 0; longer lines come in pieces */
    /* ends is false if the line goes on in the next piece. Returns false to refuse the piece for
     * now: it comes again. */
    bool (*line)(void *context, const void *data, size_t size, bool ends);
    void *context;
};

/* Takes ownership of the descriptor, which must not block. */
void output_open(struct output *output, int fd);

/* Reads once, at most scratch_size bytes, into `scratch`, and keeps the last tail_limit bytes.
 * Returns true if there may be more at once. At the end of the stream fd becomes -1. */
bool output_read(struct output *output, void *scratch, size_t scratch_size, size_t tail_limit);

/* Passes on the lines that end in these bytes, and keeps the beginning of the next. Returns how
 * many bytes are done: all, or those before the line that was refused. */
size_t output_cut(struct output *output, const void *bytes, size_t size,
                  const struct output_lines *lines);

/* Passes on a last line without a newline at the end of the stream. Returns false if it was
 * refused; the caller then calls again. */
bool output_end(struct output *output, const struct output_lines *lines);

/* Closes the descriptor if it is open, and passes on a last line without a newline, which is lost
 * if it is refused. */
void output_finish(struct output *output, const struct output_lines *lines);

/* Returns the last bytes, at most `limit`. The caller frees data, which is NULL if there are none.
 */
struct bytes output_take_tail(struct output *output, size_t limit);

/* Closes and frees. */
void output_free(struct output *output);

#endif
