/*
 * The web server of the board: which request gets what, and when.
 */
#ifndef LEAT_BOARD_SERVER_H
#define LEAT_BOARD_SERVER_H

#include <stdbool.h>
#include <stddef.h>

struct ev_loop;
struct server;

struct server_settings {
    const char *const *queues; /* their names */
    size_t queue_count;
    const char *token; /* NULL: everybody may read */
    bool checks_host;  /* the socket is not a unix socket, so browsers reach it */
};

/* Takes ownership of the listening socket. settings must outlive the server. Returns NULL with
 * errno. */
struct server *server_new(struct ev_loop *loop, int socket, const struct server_settings *settings);

/* Answers what waits, and closes everything; NULL does nothing. */
void server_free(struct server *server);

#endif
