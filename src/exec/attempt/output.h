/*
 * What a task writes to stdout or stderr: cut into lines, and the last bytes kept. A silent task
 * costs no memory here.
 */
#ifndef LEAT_EXEC_ATTEMPT_OUTPUT_H
#define LEAT_EXEC_ATTEMPT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "queue/task.h"

struct output {
    int fd;             /* owned; -1 when at its end */
    struct buffer line; /* the beginning of a line whose end has not come yet */
    struct buffer tail; /* the last bytes, at least as many as are asked for */
    struct buffer rest; /* what was read and not taken yet; the user's */
    size_t got;         /* how many the last read has brought: they stand in its scratch */
};

/* Where lines go. */
struct output_lines {
    size_t max; /* longer ones come in pieces; > 0 */
    /* ends: false where it goes on with the next piece. Returns false where it cannot be taken now:
     * it comes again. */
    bool (*line)(void *context, const void *data, size_t size, bool ends);
    void *context;
};

/* Takes the descriptor, which must not block. */
void output_open(struct output *output, int fd);

/* One read of at most that many bytes into `scratch`, whose end is kept. Returns true while there
 * may be more at once; at the end of the stream fd is -1. */
bool output_read(struct output *output, void *scratch, size_t scratch_size, size_t tail_limit);

/* Passes on the lines that end in the next bytes, and keeps what begins one. Returns how many bytes
 * it is done with: all, or those before the line that was not taken. */
size_t output_cut(struct output *output, const void *bytes, size_t size,
                  const struct output_lines *lines);

/* At the end of the stream: passes on what a last line without end holds. Returns false where it
 * was not taken: to be called again. */
bool output_end(struct output *output, const struct output_lines *lines);

/* Closes where that has not happened, and passes on what a last line without end holds; it is lost
 * where it is not taken. */
void output_finish(struct output *output, const struct output_lines *lines);

/* The last bytes, at most `limit`; the caller frees data (NULL where there are none). */
struct bytes output_take_tail(struct output *output, size_t limit);

/* Closes and frees. */
void output_free(struct output *output);

#endif
