/*
 * The connections of clients. microhttpd closes those that are silent; a client that sends or reads
 * a byte now and then would keep its connection, and others out, so connections have a time for
 * each request, too. If all connections are in use, the one that has waited longest without the
 * token is closed, so that who has no token cannot keep others out. A limit for each address would
 * not do: behind a web server, all clients have the same one.
 */
#ifndef LEAT_BOARD_VISITORS_H
#define LEAT_BOARD_VISITORS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct visitor;

struct visitors {
    LIST_HEAD(, visitor) list;
    size_t most;     /* connections at a time; set by the caller */
    size_t open;     /* how many there are */
    uint64_t closed; /* how many connections have been closed so far */
};

/* For MHD_OPTION_NOTIFY_CONNECTION, with a struct visitors as context. */
void visitors_notify(void *context, struct MHD_Connection *connection, void **own,
                     enum MHD_ConnectionNotificationCode code);

/* Notes whether the request that begins on this connection has the token. */
void visitors_trust(struct MHD_Connection *connection, bool has_token);

/* A request of this connection is over. */
void visitors_served(struct MHD_Connection *connection);

/* Sends this answer, the bytes of a whole response, and ends the connection. For a request for
 * which microhttpd can make no response. */
void visitors_refuse(struct MHD_Connection *connection, const char *answer);

/* Ends the connections whose request has taken too long. */
void visitors_end_slow(struct visitors *visitors);

#endif
