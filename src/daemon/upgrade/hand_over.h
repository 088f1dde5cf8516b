/*
 * The packets that two daemons of one service send each other when one replaces the other, on a
 * socket between them. The old daemon makes the socket; the new one finds it as HAND_OVER_FD.
 *
 *   old    →  new    SERVER    the value of LEAT_REDIS, if the old one was started with it
 *   old    →  new    OFFER     these two wait in the socket when the new program starts
 *   new    →  old    READY     it could take tasks now; or REFUSED, and it ends
 *   old    →  new    OVER      take tasks from now on; with sockets to other old daemons
 *   old    →  new    MAIN      the service manager knows the new process as the main one
 *   old    →  new    SLOTS     so many slots are still in use; also with every heartbeat
 *   either →  other  RELOAD    the configuration was reloaded: reload it, too
 *   new    →  old    STOP      the service stops
 *   old    →  new    STOPPING  its stop may take that long
 *
 * The two may be of different versions. A packet only grows at its end, and each side reads as much
 * as it knows: members that the other one did not send are 0. A word that it does not know means
 * nothing to it. `least` in an OFFER is the oldest form whose readers understand what the writer
 * means; a program that knows only older forms refuses.
 */
#ifndef LEAT_DAEMON_UPGRADE_HAND_OVER_H
#define LEAT_DAEMON_UPGRADE_HAND_OVER_H

#include <stddef.h>
#include <stdint.h>

#define HAND_OVER_FD 3

/* Tests build programs of later forms. */
#ifndef HAND_OVER_FORM
#define HAND_OVER_FORM 1
#define HAND_OVER_LEAST 1
#define HAND_OVER_MORE
#endif

enum hand_over_word {
    HAND_OVER_OFFER = 1,
    HAND_OVER_READY,
    HAND_OVER_REFUSED,
    HAND_OVER_OVER,
    HAND_OVER_MAIN,
    HAND_OVER_SLOTS,
    HAND_OVER_RELOAD,
    HAND_OVER_STOP,
    HAND_OVER_STOPPING,
    HAND_OVER_SERVER,
};

/* How many old daemons may run beside the main one. */
#define HAND_OVER_ELDERS 7

#define HAND_OVER_VERSION_SIZE 32

/* All slots: a task that must run alone is among those that run. */
#define HAND_OVER_ALL_SLOTS UINT32_MAX

/* An old daemon, which goes on with its tasks. */
struct hand_over_elder {
    int32_t pid;
    uint32_t slots; /* in use */
    char version[HAND_OVER_VERSION_SIZE];
};

struct hand_over {
    uint32_t word;
    uint32_t form, least;                 /* OFFER */
    int32_t pid;                          /* OFFER: of the old daemon */
    uint32_t has_cgroups;                 /* OFFER: its tasks have cgroups */
    uint32_t confined, uid, gid, groups;  /* OFFER: the filter that the new process inherits */
    uint32_t slots;                       /* OVER, SLOTS: in use */
    uint32_t ms;                          /* STOPPING */
    uint32_t elders;                      /* OVER: how many of the following are set */
    char version[HAND_OVER_VERSION_SIZE]; /* OFFER, READY */
    char text[256];                       /* REFUSED: why, for people */
    struct hand_over_elder elder[HAND_OVER_ELDERS];
    HAND_OVER_MORE
};

/* Sends a packet without waiting. fds: as many as packet->elders; copies of them go along. Returns
 * 0, or -1 with errno: nothing was sent. */
int hand_over_send(int socket, const struct hand_over *packet, const int *fds);

/* Receives a packet without waiting. Sets *packet, and fds to the descriptors that came along,
 * which the caller owns; -1 for those that are missing. Its texts end with NUL. Returns 1; 0 if
 * there is none now; or -1 if the other side is gone, or this is no such socket. */
int hand_over_receive(int socket, struct hand_over *packet, int fds[HAND_OVER_ELDERS]);

/* Sends SERVER, a packet of another form: the word, then the URL. Returns 0, or -1 with errno. */
int hand_over_send_server(int socket, const char *url);

/* Receives SERVER if that is the next packet. Sets *url, which the caller wipes and frees; or to
 * NULL if there is none. Returns 0, or -1 without memory. */
int hand_over_receive_server(int socket, char **url);

/* Closes those that are not -1. */
void hand_over_close(int fds[HAND_OVER_ELDERS]);

#endif
