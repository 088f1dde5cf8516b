/*
 * Cuts a byte stream into lines, and keeps its tail.
 */
#include "exec/attempt/output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/process/descriptor.h"

void output_open(struct output *output, int fd)
{
    *output =
        (struct output){.fd = fd, .line = BUFFER_INIT, .tail = BUFFER_INIT, .rest = BUFFER_INIT};
}

static void output_close(struct output *output)
{
    descriptor_close(&output->fd);
}

/* Passes on a line, which is the kept beginning plus these bytes. Returns false if it was refused;
 * then nothing has changed. */
static bool pass_on(struct output *output, const struct output_lines *lines, const char *data,
                    size_t size, bool ends)
{
    size_t begun = output->line.size;
    bool taken;
    if (begun == 0) {
        return lines->line(lines->context, data, size, ends);
    }

    /* without memory the line comes in two pieces */
    if (buffer_append(&output->line, data, size)) {
        output->line.failed = false;
        if (!lines->line(lines->context, output->line.data, begun, false)) {
            return false;
        }
        buffer_clear(&output->line);
        return lines->line(lines->context, data, size, ends);
    }
    taken = lines->line(lines->context, output->line.data, output->line.size, ends);
    output->line.size = taken ? 0 : begun;
    return taken;
}

size_t output_cut(struct output *output, const void *bytes, size_t size,
                  const struct output_lines *lines)
{
    const char *data = bytes;
    size_t done = 0;
    while (done < size) {
        /* a newline right after a line of the greatest length still belongs to it */
        const char *at = data + done;
        size_t left = size - done, taken;
        size_t room = output->line.size < lines->max ? lines->max - output->line.size : 0;
        const char *newline = memchr(at, '\n', left <= room ? left : room + 1);
        if (newline) {
            taken = (size_t)(newline - at) + 1;
            if (!pass_on(output, lines, at, taken - 1, true)) {
                return done;
            }
        } else if (left > room) {
            taken = room;
            if (!pass_on(output, lines, at, taken, false)) {
                return done;
            }
        } else {
            taken = left;
            if (buffer_append(&output->line, at, taken)) {
                output->line.failed = false;
                if (!pass_on(output, lines, at, taken, false)) {
                    return done;
                }
            }
        }
        done += taken;
    }
    return done;
}

/* Keeps the tail. It grows to twice the limit before its front is dropped, so that each byte is
 * moved at most once. Without memory the tail misses these bytes. */
static void keep_tail(struct output *output, const char *data, size_t size, size_t limit)
{
    struct buffer *tail = &output->tail;
    if (size >= limit) {
        buffer_clear(tail);
        data += size - limit;
        size = limit;
    } else if (tail->size + size > 2 * limit) {
        buffer_consume(tail, tail->size + size - limit);
    }
    if (buffer_append(tail, data, size)) {
        tail->failed = false;
    }
}

bool output_read(struct output *output, void *scratch, size_t scratch_size, size_t tail_limit)
{
    output->got = 0;
    if (output->fd < 0) {
        return false;
    }
    ssize_t size = read(output->fd, scratch, scratch_size);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return errno == EINTR;
    }

    /* a pipe that cannot be read is at its end */
    if (size <= 0) {
        output_close(output);
        return false;
    }
    output->got = (size_t)size;
    output->total += size;
    keep_tail(output, scratch, (size_t)size, tail_limit);
    return true;
}

bool output_end(struct output *output, const struct output_lines *lines)
{
    if (lines && output->line.size > 0 &&
        !lines->line(lines->context, output->line.data, output->line.size, true)) {
        return false;
    }
    buffer_free(&output->line);
    return true;
}

void output_finish(struct output *output, const struct output_lines *lines)
{
    output_close(output);
    (void)output_end(output, lines); /* a line that is refused now is lost */
    buffer_free(&output->line);
}

struct bytes output_take_tail(struct output *output, size_t limit)
{
    struct buffer *tail = &output->tail;
    if (tail->size > limit) {
        buffer_consume(tail, tail->size - limit);
    }
    struct bytes taken = {.data = tail->data, .size = tail->size};
    *tail = BUFFER_INIT;
    return taken;
}

void output_free(struct output *output)
{
    output_close(output);
    buffer_free(&output->line);
    buffer_free(&output->rest);
    buffer_free(&output->tail);
}
