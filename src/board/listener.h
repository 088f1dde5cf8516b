/*
 * The socket that the board listens at.
 */
#ifndef LEAT_BOARD_LISTENER_H
#define LEAT_BOARD_LISTENER_H

#include <stddef.h>
#include <sys/socket.h>

struct listener_address {
    char text[256]; /* as it was given */
    char path[108]; /* of a unix socket; "": TCP */
    struct sockaddr_storage address;
    socklen_t size;
};

/* Parses "ADDRESS:PORT", "[ADDRESS]:PORT" or "unix:PATH"; names of hosts are not looked up. Returns
 * 0 or -1. */
int listener_parse(const char *text, struct listener_address *address);

/* Replaces a unix socket that nobody listens at. If the port is 0, the text gets the one that was
 * chosen. Returns a descriptor, or -1 with the reason in why. */
int listener_open(struct listener_address *address, char *why, size_t why_size);

/* Removes a unix socket; the descriptor is closed by its owner. */
void listener_remove(const struct listener_address *address);

#endif
