/*
 * The token that a browser or Prometheus shows to the board. It is made at the first start, and
 * kept in a file.
 */
#ifndef LEAT_BOARD_TOKEN_H
#define LEAT_BOARD_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#define TOKEN_SIZE 129 /* with the NUL */

/* Reads the token of the file, or makes one and writes it there if `make` is set and there is no
 * file. Returns 0, or -1 with the reason in why. */
int token_load(const char *path, bool make, char token[TOKEN_SIZE], char *why, size_t why_size);

#endif
