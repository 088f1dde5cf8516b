/*
 * Which requests the board answers: pure functions of what a client sent.
 */
#ifndef LEAT_BOARD_GATE_H
#define LEAT_BOARD_GATE_H

#include <stdbool.h>

/* Whether the header Host names an address, or localhost, with or without a port. A page elsewhere
 * that has its own name lead to this host (DNS rebinding) sends that name, so the board answers no
 * other names. host may be NULL. */
bool gate_allows_host(const char *host);

/* Whether the header Authorization is "Bearer TOKEN" with that token; takes the same time for each
 * wrong one of a length. authorization may be NULL. */
bool gate_allows_token(const char *authorization, const char *token);

#endif
