/*
 * Tasks in a file, one a line: as commands or payloads, ended by newline or NUL, or as JSON.
 */
#ifndef LEAT_CLI_ENQUEUE_INPUT_H
#define LEAT_CLI_ENQUEUE_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/enqueue/draft.h"
#include "cli/enqueue/enqueue.h"

struct input;

/* path "-" is stdin. line_field is the field that a line without JSON becomes. Returns NULL with
 * errno. */
struct input *input_open(const char *path, enum enqueue_input form, const char *line_field);

/* Adds the next line's fields to the draft; they are valid until the next call. Returns 1, 0 at the
 * end, or −1 with a message. */
int input_next(struct input *input, struct draft *draft, char *why, size_t why_size);

/* True where input_next would wait for whoever writes the input. */
bool input_would_block(const struct input *input);

/* Number of the line that input_next read last, from 1. */
uint64_t input_line(const struct input *input);

/* Bytes read so far, and of all of the file: 0 where that is not known. */
uint64_t input_bytes(const struct input *input);
uint64_t input_size(const struct input *input);

void input_close(struct input *input);

#endif
