/*
 * Tasks in a file, read line by line.
 */
#include "cli/enqueue/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/base64.h"
#include "base/buffer.h"
#include "cli/lib/interrupt.h"

#define BASE64_SUFFIX "_base64"
#define CHUNK ((size_t)64 * 1024)

struct input {
    int descriptor;
    bool ended;
    enum enqueue_input form;
    const char *line_field;
    struct buffer text; /* what was read; lines before `at` were returned */
    size_t at;
    size_t searched; /* bytes from `at` on that have no end of a line */
    uint64_t line, bytes, size;
    json_t *object;        /* of the last line; the draft refers to its strings */
    struct buffer decoded; /* of the last payload_base64 */
};

struct input *input_open(const char *path, enum enqueue_input form, const char *line_field)
{
    struct input *input = calloc(1, sizeof *input);
    struct stat status;

    if (!input) {
        return NULL;
    }
    input->form = form;
    input->line_field = line_field;
    input->descriptor = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (input->descriptor < 0) {
        free(input);
        return NULL;
    }
    if (fstat(input->descriptor, &status) != 0) {
        return input;
    }
    if (S_ISDIR(status.st_mode)) {
        input_close(input);
        errno = EISDIR;
        return NULL;
    }
    if (S_ISREG(status.st_mode)) {
        input->size = (uint64_t)status.st_size;
    }
    return input;
}

uint64_t input_line(const struct input *input)
{
    return input->line;
}

uint64_t input_bytes(const struct input *input)
{
    return input->bytes;
}

uint64_t input_size(const struct input *input)
{
    return input->size;
}

void input_close(struct input *input)
{
    if (!input) {
        return;
    }
    /* closing a descriptor that was only read loses nothing */
    if (input->descriptor != STDIN_FILENO) {
        (void)close(input->descriptor);
    }
    json_decref(input->object);
    buffer_free(&input->decoded);
    buffer_free(&input->text);
    free(input);
}

/* Adds payload_base64, decoded, as the payload. */
static int add_decoded(struct input *input, const char *text, size_t size, struct draft *draft,
                       char *why, size_t why_size)
{
    buffer_clear(&input->decoded);
    if (base64_decode(text, size, &input->decoded) != 0) {
        (void)snprintf(why, why_size, "payload" BASE64_SUFFIX " is not base64");
        return -1;
    }
    return draft_add(draft, (struct bytes){"payload", 7},
                     (struct bytes){input->decoded.data, input->decoded.size});
}

static int add_member(struct input *input, const char *name, json_t *value, struct draft *draft,
                      char *why, size_t why_size)
{
    struct bytes bytes;

    if (!json_is_string(value)) {
        /* the name may be cut */
        (void)snprintf(why, why_size, "%s is not a string", name);
        return -1;
    }
    bytes = (struct bytes){json_string_value(value), json_string_length(value)};
    if (strcmp(name, "payload" BASE64_SUFFIX) == 0) {
        return add_decoded(input, bytes.data, bytes.size, draft, why, why_size);
    }
    return draft_add(draft, bytes_of(name), bytes);
}

static int parse_object(struct input *input, struct bytes line, struct draft *draft, char *why,
                        size_t why_size)
{
    json_error_t error;
    const char *name;
    json_t *value;

    json_decref(input->object);
    input->object =
        json_loadb(line.data, line.size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!input->object) {
        /* the message may be cut */
        (void)snprintf(why, why_size, "column %d: %s", error.column, error.text);
        return -1;
    }
    if (!json_is_object(input->object)) {
        (void)snprintf(why, why_size, "not a JSON object");
        return -1;
    }
    json_object_foreach(input->object, name, value) {
        if (add_member(input, name, value, draft, why, why_size) != 0) {
            return -1;
        }
    }
    return 1;
}

/* No byte is looked at twice, so that a long line takes linear time. */
static char *find_end(struct input *input)
{
    size_t left = input->text.size - input->at - input->searched;
    char *end = left > 0 ? memchr(input->text.data + input->at + input->searched,
                                  input->form == ENQUEUE_NULL ? '\0' : '\n', left)
                         : NULL;

    input->searched =
        end ? (size_t)(end - input->text.data) - input->at : input->text.size - input->at;
    return end;
}

/* Drops lines that were returned, and reads more. Returns 0, or −1 with errno. */
static int read_more(struct input *input)
{
    ssize_t got;

    if (input->text.size - input->at > ENQUEUE_MOST_BYTES) {
        errno = EMSGSIZE;
        return -1;
    }
    if (interrupt_came()) {
        errno = EINTR;
        return -1;
    }
    buffer_consume(&input->text, input->at);
    input->at = 0;
    /* one byte more for the NUL after a last line without an end */
    if (buffer_reserve(&input->text, CHUNK + 1) != 0) {
        errno = ENOMEM;
        return -1;
    }
    got = read(input->descriptor, input->text.data + input->text.size, CHUNK);
    if (got < 0) {
        return -1;
    }
    /* a signal to the whole pipeline ends the writer, too, maybe within a line */
    if (got == 0 && interrupt_came()) {
        errno = EINTR;
        return -1;
    }
    input->text.size += (size_t)got;
    input->bytes += (uint64_t)got;
    input->ended = got == 0;
    return 0;
}

bool input_would_block(struct input *input)
{
    struct pollfd source = {.fd = input->descriptor, .events = POLLIN};

    return !input->ended && !find_end(input) && poll(&source, 1, 0) == 0;
}

/* Reads the next line that is not empty, and replaces its end by a NUL byte. Returns 1, 0 at the
 * end of the input, or −1 with errno. */
static int read_line(struct input *input, struct bytes *line)
{
    char *end, *start;

    do {
        while (!(end = find_end(input)) && !input->ended) {
            if (read_more(input) != 0) {
                input->line += errno == EMSGSIZE;
                return -1;
            }
        }
        if (!end && input->at == input->text.size) {
            return 0;
        }
        start = input->text.data + input->at;
        if (!end) {
            end = input->text.data + input->text.size;
        }
        *end = '\0';
        *line = (struct bytes){start, (size_t)(end - start)};
        input->at += line->size + (input->at + line->size < input->text.size);
        input->searched = 0;
        input->line++;
    } while (line->size == 0);
    return 1;
}

int input_next(struct input *input, struct draft *draft, char *why, size_t why_size)
{
    struct bytes name = {input->line_field, strlen(input->line_field)}, line;
    int got = read_line(input, &line);

    /* the message if a function below fails and does not write another one */
    (void)snprintf(why, why_size, "out of memory");
    if (got < 0 && errno == EMSGSIZE) {
        (void)snprintf(why, why_size, ENQUEUE_TOO_LONG);
    } else if (got < 0) {
        (void)snprintf(why, why_size, "cannot read: %s", strerror(errno));
    }
    if (got <= 0) {
        return got;
    }
    if (input->form == ENQUEUE_JSON) {
        return parse_object(input, line, draft, why, why_size);
    }
    return draft_add(draft, name, line) == 0 ? 1 : -1;
}
