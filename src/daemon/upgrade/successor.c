/*
 * Starts the process that replaces this one, and listens to it.
 */
#include "daemon/upgrade/successor.h"

#include <errno.h>
#include <ev.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd_watch.h"
#include "base/process/descriptor.h"
#include "base/process/proc.h"
#include "base/timer.h"

#define READY_MS 30000 /* how long it may take until it is ready, or has ended after a refusal */

enum { ABOVE = 16 }; /* numbers of descriptors that are not HAND_OVER_FD */

enum successor_state {
    SUCCESSOR_STARTING,
    SUCCESSOR_READY,
    SUCCESSOR_FAILING, /* it has refused, or was killed; its end is awaited */
    SUCCESSOR_ENDED,
    SUCCESSOR_IN_CHARGE,
};

struct successor {
    struct ev_loop *loop;
    struct successor_events events;
    enum successor_state state;
    int socket, pidfd; /* owned */
    pid_t pid;
    char why[256];
    struct fd_watch packets;
    struct timer late;
};

pid_t successor_pid(const struct successor *successor)
{
    return successor->pid;
}

static void set_failing(struct successor *successor, const char *why)
{
    if (successor->state != SUCCESSOR_FAILING) {
        successor->state = SUCCESSOR_FAILING;
        (void)snprintf(successor->why, sizeof successor->why, "%s", why); /* may be cut */
    }
}

/* While its end of the socket is open, it is alive and the pid is its own. */
static void end(const struct successor *successor)
{
    if (successor->state != SUCCESSOR_ENDED && successor->state != SUCCESSOR_IN_CHARGE) {
        proc_send(successor->pidfd, successor->pid, SIGKILL);
    }
}

/* It has not said in time what becomes of it, or has not ended. */
static void on_late(void *context)
{
    struct successor *successor = context;
    set_failing(successor, "it was not ready in time");
    end(successor);
}

static void hear(struct successor *successor, const struct hand_over *packet)
{
    void *context = successor->events.context;
    if (packet->word == HAND_OVER_READY && successor->state == SUCCESSOR_STARTING) {
        timer_stop(&successor->late);
        successor->state = SUCCESSOR_READY;
        successor->events.ready(context, packet->version);
    } else if (packet->word == HAND_OVER_REFUSED && successor->state == SUCCESSOR_STARTING) {
        set_failing(successor, packet->text);
    } else if (packet->word == HAND_OVER_RELOAD && successor->state == SUCCESSOR_IN_CHARGE) {
        successor->events.reload(context);
    } else if (packet->word == HAND_OVER_STOP && successor->state == SUCCESSOR_IN_CHARGE) {
        successor->events.stop(context);
    }
}

/* Its socket is closed: it has ended. */
static void on_end(struct successor *successor)
{
    fd_watch_stop(&successor->packets, successor->loop);
    timer_stop(&successor->late);
    if (successor->state != SUCCESSOR_IN_CHARGE) {
        set_failing(successor, "it ended before it was ready; its own log may say why");
        successor->state = SUCCESSOR_ENDED;
        successor->events.failed(successor->events.context, successor->why);
    } else {
        successor->events.gone(successor->events.context);
    }
}

static void on_packets(void *context)
{
    struct successor *successor = context;
    struct hand_over packet;
    int fds[HAND_OVER_ELDERS];
    /* one at a time, since an event may free the successor; the loop calls again */
    int got = hand_over_receive(successor->socket, &packet, fds);
    if (got < 0) {
        on_end(successor);
    } else if (got > 0) {
        hand_over_close(fds);
        hear(successor, &packet);
    }
}

/* Makes the sockets, and starts the program with the offer in one of them. Returns 0, or -1 with
 * errno. */
static int start(struct successor *successor, const struct program *program,
                 const struct hand_over *offer, const char *server)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
        return -1;
    }
    successor->socket = descriptor_above(descriptor_out_of_the_way(ends[0]), ABOVE);
    ends[1] = descriptor_above(ends[1], ABOVE);
    if (successor->socket >= 0 && ends[1] >= 0 &&
        (!server || hand_over_send_server(successor->socket, server) == 0) &&
        hand_over_send(successor->socket, offer, NULL) == 0) {
        successor->pid = program_start(program, ends[1], &successor->pidfd);
    }
    descriptor_close(&ends[1]);
    return successor->pid > 0 ? 0 : -1;
}

struct successor *successor_new(struct ev_loop *loop, const struct program *program,
                                const struct hand_over *offer, const char *server,
                                const struct successor_events *events)
{
    struct successor *successor = calloc(1, sizeof *successor);
    if (!successor) {
        return NULL;
    }
    *successor =
        (struct successor){.loop = loop, .events = *events, .socket = -1, .pidfd = -1, .pid = -1};
    if (start(successor, program, offer, server)) {
        int error = errno;
        descriptor_close(&successor->socket);
        free(successor);
        errno = error;
        return NULL;
    }
    fd_watch_init(&successor->packets, on_packets, successor);
    timer_init(&successor->late, loop, on_late, successor);
    fd_watch_start(&successor->packets, loop, successor->socket, EV_READ);
    timer_start_ms(&successor->late, READY_MS);
    return successor;
}

int successor_hand_over(struct successor *successor, const struct hand_over *packet, const int *fds)
{
    if (hand_over_send(successor->socket, packet, fds)) {
        set_failing(successor, strerror(errno));
        end(successor);
        return -1;
    }
    successor->state = SUCCESSOR_IN_CHARGE;
    return 0;
}

int successor_tell(struct successor *successor, const struct hand_over *packet)
{
    return hand_over_send(successor->socket, packet, NULL);
}

void successor_free(struct successor *successor)
{
    if (successor) {
        end(successor);
        fd_watch_stop(&successor->packets, successor->loop);
        timer_stop(&successor->late);
        if (successor->state != SUCCESSOR_IN_CHARGE) {
            descriptor_close(&successor->socket);
        }
        descriptor_close(&successor->pidfd);
        free(successor);
    }
}
