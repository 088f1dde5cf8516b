/*
 * The process that replaces this one: the installed program, started by this process. Until it has
 * taken over, this process may kill it, and nothing has changed. Afterwards it is the main process,
 * and this one only listens to it.
 */
#ifndef LEAT_DAEMON_UPGRADE_SUCCESSOR_H
#define LEAT_DAEMON_UPGRADE_SUCCESSOR_H

#include <sys/types.h>

#include "daemon/upgrade/hand_over.h"
#include "daemon/upgrade/program.h"

struct ev_loop;
struct successor;

struct successor_events {
    /* It is ready to take over. Called once. */
    void (*ready)(void *context, const char *version);
    /* It has ended before it has taken over; free it. */
    void (*failed)(void *context, const char *why);
    /* It is the main process now, and asks for this. */
    void (*reload)(void *context);
    void (*stop)(void *context);
    /* It was the main process, and has ended. */
    void (*gone)(void *context);
    void *context;
};

/* Starts the program, and sends it the offer. server: the value of LEAT_REDIS, which does not go
 * into the new environment, where tasks of the same user could read it; NULL: none. Returns NULL
 * with errno. */
struct successor *successor_new(struct ev_loop *loop, const struct program *program,
                                const struct hand_over *offer, const char *server,
                                const struct successor_events *events);

pid_t successor_pid(const struct successor *successor);

/* After `ready`: hands over. packet has the word OVER, and fds come along. From then on this
 * process does not kill it. Returns 0; or -1 with errno, and `failed` follows. */
int successor_hand_over(struct successor *successor, const struct hand_over *packet,
                        const int *fds);

/* Sends a packet. Returns 0, or -1 with errno. */
int successor_tell(struct successor *successor, const struct hand_over *packet);

/* Kills it unless it has taken over. Otherwise the socket stays open until this process ends, since
 * its end tells the main process of that. NULL does nothing. */
void successor_free(struct successor *successor);

#endif
