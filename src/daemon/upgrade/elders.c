/*
 * Listens to the daemons of earlier programs.
 */
#include "daemon/upgrade/elders.h"

#include <errno.h>
#include <ev.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd_watch.h"
#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "base/process/descriptor.h"
#include "base/process/proc.h"
#include "base/timer.h"

struct elder {
    struct elders *elders;
    int socket; /* owned; -1: this place is free */
    int pidfd;  /* owned; -1: the kernel has none */
    struct hand_over_elder known;
    struct fd_watch packets;
    struct timer silence;
};

struct elders {
    struct ev_loop *loop;
    int64_t watchdog_ms;
    struct elders_events events;
    struct elder list[HAND_OVER_ELDERS];
};

static void forget(struct elder *elder)
{
    fd_watch_stop(&elder->packets, elder->elders->loop);
    timer_stop(&elder->silence);
    descriptor_close(&elder->socket);
    descriptor_close(&elder->pidfd);
}

static void wait_for_sign(struct elder *elder)
{
    if (elder->elders->watchdog_ms > 0) {
        timer_start_ms(&elder->silence, elder->elders->watchdog_ms);
    }
}

/* The end of its socket then tells of its death. */
static void on_silence(void *context)
{
    struct elder *elder = context;
    log_event(LOG_ERR, LOG_ID_UPGRADE, NULL, 0,
              "former leatd %d (%s): no sign of life for %.0f s; killing it", (int)elder->known.pid,
              elder->known.version, (double)elder->elders->watchdog_ms / 1000);
    if (elder->known.pid > 0) {
        proc_send(elder->pidfd, elder->known.pid, SIGKILL);
    }
}

static void hear(struct elder *elder, const struct hand_over *packet)
{
    struct elders *elders = elder->elders;
    wait_for_sign(elder);
    if (packet->word == HAND_OVER_STOPPING) {
        elders->events.stopping(elders->events.context, packet->ms);
    } else if (packet->word == HAND_OVER_SLOTS && packet->slots != elder->known.slots) {
        elder->known.slots = packet->slots;
        elders->events.changed(elders->events.context);
    }
}

static void on_packets(void *context)
{
    struct elder *elder = context;
    struct elders *elders = elder->elders;
    struct hand_over packet;
    int fds[HAND_OVER_ELDERS], got;
    while (elder->socket >= 0 && (got = hand_over_receive(elder->socket, &packet, fds)) != 0) {
        if (got < 0) {
            log_event(LOG_INFO, LOG_ID_UPGRADE, NULL, 0, "former leatd %d (%s) has ended",
                      (int)elder->known.pid, elder->known.version);
            forget(elder);
            elders->events.changed(elders->events.context);
            return;
        }
        hand_over_close(fds);
        hear(elder, &packet);
    }
}

void elders_add(struct elders *elders, int socket, const struct hand_over_elder *known)
{
    for (size_t i = 0; i < HAND_OVER_ELDERS; i++) {
        struct elder *elder = &elders->list[i];
        if (elder->socket < 0) {
            elder->socket = socket;
            elder->known = *known;
            elder->pidfd = descriptor_out_of_the_way(proc_open(known->pid));
            fd_watch_start(&elder->packets, elders->loop, socket, EV_READ);
            wait_for_sign(elder);
            return;
        }
    }
    descriptor_close(&socket);
}

size_t elders_count(const struct elders *elders)
{
    size_t count = 0;
    for (size_t i = 0; i < HAND_OVER_ELDERS; i++) {
        count += elders->list[i].socket >= 0;
    }
    return count;
}

uint32_t elders_slots(const struct elders *elders)
{
    uint64_t slots = 0;
    for (size_t i = 0; i < HAND_OVER_ELDERS; i++) {
        slots += elders->list[i].socket >= 0 ? elders->list[i].known.slots : 0;
    }
    return slots < HAND_OVER_ALL_SLOTS ? (uint32_t)slots : HAND_OVER_ALL_SLOTS;
}

void elders_tell(struct elders *elders, enum hand_over_word word)
{
    const struct hand_over packet = {.word = word};
    for (size_t i = 0; i < HAND_OVER_ELDERS; i++) {
        const struct elder *elder = &elders->list[i];
        if (elder->socket >= 0 && hand_over_send(elder->socket, &packet, NULL)) {
            log_event(LOG_WARNING, LOG_ID_UPGRADE, NULL, 0,
                      "former leatd %d (%s): cannot be told to %s: %s", (int)elder->known.pid,
                      elder->known.version, word == HAND_OVER_STOP ? "stop" : "reload",
                      strerror(errno));
        }
    }
}

void elders_list(const struct elders *elders, struct hand_over *packet, int fds[HAND_OVER_ELDERS])
{
    for (size_t i = 0; i < HAND_OVER_ELDERS; i++) {
        if (elders->list[i].socket >= 0) {
            fds[packet->elders] = elders->list[i].socket;
            packet->elder[packet->elders++] = elders->list[i].known;
        }
    }
}

void elders_forget(struct elders *elders)
{
    for (size_t i = 0; i < HAND_OVER_ELDERS; i++) {
        forget(&elders->list[i]);
    }
}

struct elders *elders_new(struct ev_loop *loop, int64_t watchdog_ms,
                          const struct elders_events *events)
{
    struct elders *elders = calloc(1, sizeof *elders);
    if (!elders) {
        return NULL;
    }
    elders->loop = loop;
    elders->watchdog_ms = watchdog_ms;
    elders->events = *events;
    for (size_t i = 0; i < HAND_OVER_ELDERS; i++) {
        struct elder *elder = &elders->list[i];
        *elder = (struct elder){.elders = elders, .socket = -1, .pidfd = -1};
        fd_watch_init(&elder->packets, on_packets, elder);
        timer_init(&elder->silence, loop, on_silence, elder);
    }
    return elders;
}

void elders_free(struct elders *elders)
{
    if (elders) {
        elders_forget(elders);
        free(elders);
    }
}
