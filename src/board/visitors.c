/*
 * The connections of clients.
 */
#include "board/visitors.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"

#define LONGEST_NS (20 * CLOCK_NS_PER_S) /* for a request, with what was before it */

struct visitor {
    int fd;
    int64_t since_ns; /* the beginning of the connection, or the end of its last request */
    LIST_ENTRY(visitor) entries;
};

/* Without memory, the connection has no limit but that of microhttpd. */
void visitors_notify(void *context, struct MHD_Connection *connection, void **own,
                     enum MHD_ConnectionNotificationCode code)
{
    struct visitors *visitors = context;
    struct visitor *visitor = *own;
    const union MHD_ConnectionInfo *info;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        visitors->closed++;
        if (visitor) {
            LIST_REMOVE(visitor, entries);
            free(visitor);
        }
        return;
    }
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    visitor = info ? calloc(1, sizeof *visitor) : NULL;
    if (visitor) {
        visitor->fd = info->connect_fd;
        visitor->since_ns = clock_boot_ns();
        LIST_INSERT_HEAD(&visitors->list, visitor, entries);
    }
    *own = visitor;
}

void visitors_served(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct visitor *visitor = info ? info->socket_context : NULL;

    if (visitor) {
        visitor->since_ns = clock_boot_ns();
    }
}

/* microhttpd then reads the end of the stream, and closes the connection. */
void visitors_end_slow(struct visitors *visitors)
{
    int64_t now_ns = clock_boot_ns();
    struct visitor *visitor;

    LIST_FOREACH(visitor, &visitors->list, entries) {
        if (now_ns - visitor->since_ns > LONGEST_NS) {
            (void)shutdown(visitor->fd, SHUT_RDWR); /* it fails if the client has gone */
        }
    }
}
