/*
 * The connections of clients.
 */
#include "board/visitors.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

#define LONGEST_NS (20 * CLOCK_NS_PER_S) /* for a request, with what was before it */

struct visitor {
    int fd;
    int64_t since_ns; /* the beginning of the connection, or the end of its last request */
    bool has_token;   /* its last request had it */
    bool is_ended;
    LIST_ENTRY(visitor) entries;
};

/* microhttpd then reads the end of the stream, and closes the connection. */
static void end(struct visitor *visitor)
{
    visitor->is_ended = true;
    (void)shutdown(visitor->fd, SHUT_RDWR); /* it fails if the client has gone */
}

static void make_room(struct visitors *visitors)
{
    struct visitor *visitor, *oldest = NULL;

    LIST_FOREACH(visitor, &visitors->list, entries) {
        if (!visitor->has_token && !visitor->is_ended &&
            (!oldest || visitor->since_ns < oldest->since_ns)) {
            oldest = visitor;
        }
    }
    if (oldest) {
        end(oldest);
    }
}

/* Without memory, the connection has no limit but that of microhttpd. */
void visitors_notify(void *context, struct MHD_Connection *connection, void **own,
                     enum MHD_ConnectionNotificationCode code)
{
    struct visitors *visitors = context;
    struct visitor *visitor = *own;
    const union MHD_ConnectionInfo *info;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        visitors->closed++;
        visitors->open--;
        if (visitor) {
            LIST_REMOVE(visitor, entries);
            free(visitor);
        }
        return;
    }
    if (++visitors->open >= visitors->most) {
        make_room(visitors);
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

static struct visitor *visitor_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

void visitors_trust(struct MHD_Connection *connection, bool has_token)
{
    struct visitor *visitor = visitor_of(connection);

    if (visitor) {
        visitor->has_token = has_token;
    }
}

void visitors_served(struct MHD_Connection *connection)
{
    struct visitor *visitor = visitor_of(connection);

    if (visitor) {
        visitor->since_ns = clock_boot_ns();
    }
}

void visitors_refuse(struct MHD_Connection *connection, const char *answer)
{
    struct visitor *visitor = visitor_of(connection);

    if (visitor) {
        /* the client has not read former answers if it fails */
        (void)!send(visitor->fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
        end(visitor);
    }
}

void visitors_end_slow(struct visitors *visitors)
{
    int64_t now_ns = clock_boot_ns();
    struct visitor *visitor;

    LIST_FOREACH(visitor, &visitors->list, entries) {
        if (now_ns - visitor->since_ns > LONGEST_NS) {
            end(visitor);
        }
    }
}
