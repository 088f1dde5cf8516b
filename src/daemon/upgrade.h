/*
 * Upgrade in place: this process's part in it. A leatd is one after the other
 *
 *   successor  started by a leatd that is to be replaced: registered with Redis, but it claims
 *              nothing, and the service manager does not know it
 *   main       as every leatd that was started by others
 *   elder      replaced: it sees its tasks to their end, and hears of stops and reloads from the
 * main process
 *
 * If an upgrade fails, the main process goes on, and the successor ends
 * (daemon/upgrade/hand_over.h).
 */
#ifndef LEAT_DAEMON_UPGRADE_H
#define LEAT_DAEMON_UPGRADE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "daemon/options.h"
#include "daemon/upgrade/hand_over.h"
#include "daemon/worker.h"
#include "exec/start/confine.h"

struct ev_loop;
struct signalfd_siginfo;
struct upgrade;

struct upgrade_events {
    /* The successor is the main process from now on. */
    void (*in_charge)(void *context);
    /* The main process has asked this one for it, or the successor's leatd is gone (stop). */
    void (*reload)(void *context);
    void (*stop)(void *context);
    void *context;
};

/* The parts that an upgrade uses; nothing is owned. */
struct upgrade_surroundings {
    struct ev_loop *loop;
    const struct options *options;
    const struct rlimit *nofile;           /* the limit of open files of a new process */
    const struct confinement *confinement; /* current whenever an upgrade begins */
    bool has_cgroups;
    int64_t watchdog_ms;           /* 0: none */
    int socket;                    /* of a successor, which owns it; -1: the main process */
    const struct hand_over *offer; /* to the successor */
};

/* Returns NULL without memory. */
struct upgrade *upgrade_new(const struct upgrade_surroundings *surroundings,
                            const struct upgrade_events *events);

/* Sets the worker, or NULL if it is gone. */
void upgrade_set_worker(struct upgrade *upgrade, struct worker *worker);

bool upgrade_is_main(const struct upgrade *upgrade);

/* A signal asks for an upgrade. */
void upgrade_begin(struct upgrade *upgrade, const struct signalfd_siginfo *got);

/* The successor's worker has registered, or failed for the first time. */
void upgrade_started(struct upgrade *upgrade);

/* The worker has sent a heartbeat. */
void upgrade_alive(struct upgrade *upgrade);

/* Call it in each turn of the loop. */
void upgrade_turn(struct upgrade *upgrade);

/* The configuration was reloaded. */
void upgrade_reloaded(struct upgrade *upgrade);

/* The worker stops, or goes to the next stage of its stop, which may take that long. */
void upgrade_stopping(struct upgrade *upgrade, int64_t most_ms);

/* Returns true if the process that replaced this one is gone, and nobody asked for a stop: the
 * service manager may still take this one for the main process, and has to start another. */
bool upgrade_has_failed(const struct upgrade *upgrade);

/* Returns true if elders still run. To be asked after the worker has stopped. */
bool upgrade_has_elders(const struct upgrade *upgrade);

void upgrade_free(struct upgrade *upgrade);

/* Reads the offer to this successor. Returns its socket; or -1 if no leatd has started this process
 * for an upgrade, or if the offer is of a form that this program does not know: it has logged that,
 * and told the other side. */
int upgrade_read_offer(struct hand_over *offer);

/* The successor ends before its worker has started: tells the other side why. */
void upgrade_refuse(int socket, const char *why);

#endif
