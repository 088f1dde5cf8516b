/*
 * The connections of clients. microhttpd closes those that are silent; a client that sends or reads
 * a byte now and then would keep its connection, and others out, so connections have a time for
 * each request, too.
 */
#ifndef LEAT_BOARD_VISITORS_H
#define LEAT_BOARD_VISITORS_H

#include <microhttpd.h>
#include <stdint.h>
#include <sys/queue.h>

struct visitor;

struct visitors {
    LIST_HEAD(, visitor) list;
    uint64_t closed; /* how many connections have been closed so far */
};

/* For MHD_OPTION_NOTIFY_CONNECTION, with a struct visitors as context. */
void visitors_notify(void *context, struct MHD_Connection *connection, void **own,
                     enum MHD_ConnectionNotificationCode code);

/* A request of this connection is over. */
void visitors_served(struct MHD_Connection *connection);

/* Ends the connections whose request has taken too long. */
void visitors_end_slow(struct visitors *visitors);

#endif
