/*
 * Tasks in a file, one per line: commands or payloads that end with a newline or a NUL byte, or
 * JSON objects.
 */
#ifndef LEAT_CLI_ENQUEUE_INPUT_H
#define LEAT_CLI_ENQUEUE_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/enqueue/draft.h"
#include "cli/enqueue/enqueue.h"

struct input;

/* Opens the file; "-" is stdin. line_field: the field that a line becomes if it is not JSON.
 * Returns NULL with errno. */
struct input *input_open(const char *path, enum enqueue_input form, const char *line_field);

/* Adds the fields of the next line to the draft. They are valid until the next call. Returns 1, 0
 * at the end of the input, or −1 with a message. */
int input_next(struct input *input, struct draft *draft, char *why, size_t why_size);

/* True if input_next would have to wait for the writer of the input. */
bool input_would_block(struct input *input);

/* The number of the last line that was read, from 1. */
uint64_t input_line(const struct input *input);

/* The bytes read so far, and the size of the file: 0 if it is not known. */
uint64_t input_bytes(const struct input *input);
uint64_t input_size(const struct input *input);

void input_close(struct input *input);

#endif
