/*
 * Replaces this process by the installed program, or another one by this.
 */
#include "daemon/upgrade.h"

#include <errno.h>
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd_watch.h"
#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "base/process/answer.h"
#include "base/process/descriptor.h"
#include "base/timer.h"
#include "daemon/sd_notify.h"
#include "daemon/upgrade/elders.h"
#include "daemon/upgrade/program.h"
#include "daemon/upgrade/successor.h"

#define REFUSAL_NS CLOCK_NS_PER_S /* between two records of one refusal */
#define ELDERS_SPARE_MS 5000 /* how much longer than their stop may take elders are waited for */

enum upgrade_role {
    UPGRADE_SUCCESSOR,
    UPGRADE_MAIN,
    UPGRADE_ELDER,
};

struct upgrade {
    struct upgrade_surroundings around;
    struct upgrade_events events;
    struct worker *worker;
    enum upgrade_role role;
    bool has_told;  /* successor: the other side knows whether it is ready */
    bool has_slots; /* successor: OVER has come */
    bool stops;
    bool is_alone;                 /* elder: the process that replaced it is gone */
    struct fd_watch packets;       /* successor */
    struct hand_over_elder former; /* successor: the process that it replaces */
    struct elders *elders;
    struct successor *successor; /* NULL: none */
    struct answer answer;
    bool is_asked;       /* successor: for another upgrade, which begins when it is in charge */
    int64_t refused_ns;  /* when a refusal was logged last */
    const char *refused; /* why, or NULL */
    uint32_t told_slots; /* elder: what the main process knows */
    int64_t elders_ms;   /* how long their stop may take */
    struct timer elders_end;
};

/* ---- the main process: to its successor */

static void copy_version(char version[HAND_OVER_VERSION_SIZE], const char *text)
{
    (void)snprintf(version, HAND_OVER_VERSION_SIZE, "%s", text); /* cut if it is long */
}

static void fail(struct upgrade *upgrade, const char *why)
{
    char text[512];
    struct log_field fields[] = {LOG_TEXT("LEAT_EVENT", "upgrade-failed")};
    log_event(LOG_ERR, LOG_ID_UPGRADE, fields, 1, "upgrade to %s failed: %s; this process goes on",
              upgrade->around.options->program, why);
    (void)snprintf(text, sizeof text, "-%s", why);
    answer_send(&upgrade->answer, text);
}

static void on_failed(void *context, const char *why)
{
    struct upgrade *upgrade = context;
    fail(upgrade, why);
    successor_free(upgrade->successor);
    upgrade->successor = NULL;
}

/* Hands over in one packet: the slots in use, and the elders. Nothing starts here between the count
 * and worker_retire. */
static int send_over(struct upgrade *upgrade)
{
    int fds[HAND_OVER_ELDERS];
    upgrade->told_slots = worker_slots_used(upgrade->worker);
    struct hand_over packet = {.word = HAND_OVER_OVER, .slots = upgrade->told_slots};
    elders_list(upgrade->elders, &packet, fds);
    return successor_hand_over(upgrade->successor, &packet, fds);
}

/* From here on, the new process is the main one. */
static void on_ready(void *context, const char *version)
{
    struct upgrade *upgrade = context;
    const struct hand_over packet = {.word = HAND_OVER_MAIN};
    if (send_over(upgrade)) {
        return; /* on_failed follows */
    }
    upgrade->role = UPGRADE_ELDER;
    elders_forget(upgrade->elders);
    worker_set_others(upgrade->worker, 0);
    worker_retire(upgrade->worker);
    sd_notify_main_pid(successor_pid(upgrade->successor));
    if (successor_tell(upgrade->successor, &packet)) {
        log_event(LOG_ERR, LOG_ID_UPGRADE, NULL, 0, "the new leatd cannot be told to start: %s",
                  strerror(errno));
    }
    struct log_field fields[] = {LOG_TEXT("LEAT_EVENT", "upgraded")};
    log_event(LOG_NOTICE, LOG_ID_UPGRADE, fields, 1,
              "upgraded from " LEAT_VERSION
              " to %s: process %ld takes new tasks, this one finishes its own (%zu)",
              version, (long)successor_pid(upgrade->successor),
              worker_figures(upgrade->worker).running);
    char text[HAND_OVER_VERSION_SIZE + 1];
    (void)snprintf(text, sizeof text, "+%s", version); /* fits */
    answer_send(&upgrade->answer, text);
}

static void on_told_to_reload(void *context)
{
    struct upgrade *upgrade = context;
    upgrade->events.reload(upgrade->events.context);
}

static void on_told_to_stop(void *context)
{
    struct upgrade *upgrade = context;
    upgrade->events.stop(upgrade->events.context);
}

/* The service manager then ends this process, too, unless the new one was gone before it could hear
 * of it. */
static void on_main_gone(void *context)
{
    struct upgrade *upgrade = context;
    upgrade->is_alone = true;
    if (upgrade->worker) {
        worker_abandon(upgrade->worker);
    }
    if (!upgrade->stops) {
        log_event(LOG_ERR, LOG_ID_UPGRADE, NULL, 0,
                  "process %ld, which takes new tasks, has ended: this one finishes its own, and "
                  "then fails, so that the service starts again",
                  (long)successor_pid(upgrade->successor));
    }
}

/* Returns why no upgrade can begin now, or NULL. */
static const char *obstacle(const struct upgrade *upgrade)
{
    if (upgrade->role == UPGRADE_ELDER) {
        return "this is not the service's main process";
    }
    if (upgrade->stops) {
        return "the service stops";
    }
    if (upgrade->successor || upgrade->is_asked) {
        return "another upgrade is under way";
    }
    if (elders_count(upgrade->elders) >= HAND_OVER_ELDERS) {
        return "too many earlier programs still run tasks; wait until these have ended";
    }
    return getpid() == 1 ? "leatd is the first process of its container, which has no parent; "
                           "replace the container"
                         : NULL;
}

static void start_successor(struct upgrade *upgrade)
{
    const struct upgrade_surroundings *around = &upgrade->around;
    const struct confinement *confinement = around->confinement;
    const struct program program = {.path = around->options->program,
                                    .arguments = around->options->arguments,
                                    .nofile = around->nofile};
    const struct successor_events events = {.ready = on_ready,
                                            .failed = on_failed,
                                            .reload = on_told_to_reload,
                                            .stop = on_told_to_stop,
                                            .gone = on_main_gone,
                                            .context = upgrade};
    struct hand_over offer = {.word = HAND_OVER_OFFER,
                              .form = HAND_OVER_FORM,
                              .least = HAND_OVER_LEAST,
                              .pid = (int32_t)getpid(),
                              .has_cgroups = around->has_cgroups,
                              .confined = confinement->active,
                              .uid = confinement->uid,
                              .gid = confinement->gid,
                              .groups = (uint32_t)confinement->group_count};
    copy_version(offer.version, LEAT_VERSION);
    upgrade->successor =
        successor_new(around->loop, &program, &offer, around->options->source.variable, &events);
    if (!upgrade->successor) {
        fail(upgrade, strerror(errno));
    }
}

/* Tasks of the same user can ask without end, and must not flood the log. */
static void log_refusal(struct upgrade *upgrade, const char *why)
{
    int64_t now_ns = clock_boot_ns();
    if (why != upgrade->refused || now_ns - upgrade->refused_ns >= REFUSAL_NS) {
        upgrade->refused_ns = now_ns;
        upgrade->refused = why;
        log_event(LOG_WARNING, LOG_ID_UPGRADE, NULL, 0, "no upgrade: %s", why);
    }
}

/* Whether that is the answer which the upgrade under way will give. A task of the same user can ask
 * for it again, in the name of whoever waits for it. */
static bool is_awaited(const struct upgrade *upgrade, struct answer answer)
{
    return answer.pid != 0 && answer.pid == upgrade->answer.pid &&
           answer.number == upgrade->answer.number;
}

/* A process that is about to be in charge waits with it: whoever asks hears of MAINPID= sooner than
 * this process of MAIN. */
static void begin(struct upgrade *upgrade, struct answer answer)
{
    const char *why = obstacle(upgrade);
    if (why && is_awaited(upgrade, answer)) {
        return;
    }
    if (why) {
        char text[256];
        log_refusal(upgrade, why);
        (void)snprintf(text, sizeof text, "-%s", why); /* fits */
        answer_send(&answer, text);
        return;
    }
    upgrade->answer = answer;
    if (upgrade->role == UPGRADE_MAIN) {
        start_successor(upgrade);
    } else {
        upgrade->is_asked = true;
    }
}

void upgrade_begin(struct upgrade *upgrade, const struct signalfd_siginfo *got)
{
    begin(upgrade, answer_to(got));
}

/* ---- the main process: to its elders */

static void on_elders_changed(void *context)
{
    struct upgrade *upgrade = context;
    if (upgrade->worker) {
        worker_set_others(upgrade->worker, elders_slots(upgrade->elders));
    }
}

static void take_elders(struct upgrade *upgrade, const struct hand_over *packet,
                        int fds[HAND_OVER_ELDERS])
{
    for (size_t i = 0; i < packet->elders; i++) {
        if (fds[i] >= 0) {
            elders_add(upgrade->elders, descriptor_out_of_the_way(fds[i]), &packet->elder[i]);
            fds[i] = -1;
        }
    }
    upgrade->former.slots = packet->slots;
    upgrade->has_slots = true;
}

static void become_main(struct upgrade *upgrade)
{
    fd_watch_stop(&upgrade->packets, upgrade->around.loop);
    elders_add(upgrade->elders, upgrade->around.socket, &upgrade->former);
    upgrade->around.socket = -1;
    upgrade->role = UPGRADE_MAIN;
    on_elders_changed(upgrade);
}

/* A stop has come before MAIN. The service manager knows this process already if OVER is there;
 * then this process has to stop the former ones. */
static void take_charge_of_stop(struct upgrade *upgrade)
{
    struct hand_over packet;
    int fds[HAND_OVER_ELDERS];
    while (!upgrade->has_slots && hand_over_receive(upgrade->around.socket, &packet, fds) > 0) {
        if (packet.word == HAND_OVER_OVER) {
            take_elders(upgrade, &packet, fds);
        }
        hand_over_close(fds);
    }
    if (upgrade->has_slots) {
        become_main(upgrade);
    }
}

static void wait_for_elders(struct upgrade *upgrade, int64_t ms)
{
    if (ms > upgrade->elders_ms || !timer_runs(&upgrade->elders_end)) {
        upgrade->elders_ms = ms;
        timer_start_ms(&upgrade->elders_end, ms + ELDERS_SPARE_MS);
    }
}

static void on_elder_stopping(void *context, int64_t ms)
{
    struct upgrade *upgrade = context;
    if (upgrade->stops) {
        wait_for_elders(upgrade, ms);
        sd_notify_stopping(ms);
    }
}

/* They take longer than they said. The service manager kills what is left. */
static void on_elders_end(void *context)
{
    struct upgrade *upgrade = context;
    if (elders_count(upgrade->elders) > 0) {
        log_event(LOG_ERR, LOG_ID_UPGRADE, NULL, 0,
                  "stopping: giving up: %zu earlier programs still run",
                  elders_count(upgrade->elders));
        elders_forget(upgrade->elders);
    }
}

void upgrade_reloaded(struct upgrade *upgrade)
{
    const struct hand_over packet = {.word = HAND_OVER_RELOAD};
    elders_tell(upgrade->elders, HAND_OVER_RELOAD);
    if (upgrade->role == UPGRADE_MAIN && upgrade->successor) {
        (void)successor_tell(upgrade->successor, &packet); /* if it is gone, its end is heard */
    }
}

void upgrade_stopping(struct upgrade *upgrade, int64_t most_ms)
{
    const struct hand_over packet = {.word = HAND_OVER_STOPPING,
                                     .ms = most_ms < UINT32_MAX ? (uint32_t)most_ms : UINT32_MAX};
    upgrade->stops = true;
    if (upgrade->role == UPGRADE_SUCCESSOR) {
        take_charge_of_stop(upgrade);
    }
    switch (upgrade->role) {
    case UPGRADE_SUCCESSOR:
        return;
    case UPGRADE_ELDER:
        (void)successor_tell(upgrade->successor, &packet); /* the main process may be gone */
        return;
    case UPGRADE_MAIN:
        if (upgrade->successor) {
            on_failed(upgrade, "the service stops");
        }
        elders_tell(upgrade->elders, HAND_OVER_STOP);
        timer_stop(&upgrade->elders_end);
        wait_for_elders(upgrade, most_ms);
        return;
    }
}

bool upgrade_has_failed(const struct upgrade *upgrade)
{
    return upgrade->is_alone && !upgrade->stops;
}

bool upgrade_has_elders(const struct upgrade *upgrade)
{
    return elders_count(upgrade->elders) > 0;
}

/* ---- an elder */

static void tell_slots(struct upgrade *upgrade, uint32_t slots)
{
    const struct hand_over packet = {.word = HAND_OVER_SLOTS, .slots = slots};
    if (successor_tell(upgrade->successor, &packet) == 0) {
        upgrade->told_slots = slots;
    }
}

void upgrade_alive(struct upgrade *upgrade)
{
    if (upgrade->role == UPGRADE_ELDER) {
        tell_slots(upgrade, worker_slots_used(upgrade->worker));
    }
}

void upgrade_turn(struct upgrade *upgrade)
{
    if (upgrade->role == UPGRADE_ELDER) {
        uint32_t slots = worker_slots_used(upgrade->worker);
        if (slots != upgrade->told_slots) {
            tell_slots(upgrade, slots);
        }
    }
}

/* ---- the successor */

int upgrade_read_offer(struct hand_over *offer)
{
    int fds[HAND_OVER_ELDERS];
    int socket = descriptor_out_of_the_way(descriptor_above(HAND_OVER_FD, HAND_OVER_FD + 1));
    if (hand_over_receive(socket, offer, fds) <= 0 || offer->word != HAND_OVER_OFFER) {
        log_text(LOG_ERR, PROGRAM_TAKE_OVER ": no leatd has started this process for an upgrade; "
                                            "run: leat upgrade");
        descriptor_close(&socket);
        return -1;
    }
    hand_over_close(fds);
    if (offer->least > HAND_OVER_FORM) {
        char why[160];
        (void)snprintf(why, sizeof why,
                       "version " LEAT_VERSION " is too old to replace version %s; run: systemctl "
                       "restart",
                       offer->version); /* fits */
        upgrade_refuse(socket, why);
        descriptor_close(&socket);
    }
    return socket;
}

void upgrade_refuse(int socket, const char *why)
{
    struct hand_over packet = {.word = HAND_OVER_REFUSED};
    (void)snprintf(packet.text, sizeof packet.text, "%s", why); /* may be cut */
    log_event(LOG_ERR, LOG_ID_UPGRADE, NULL, 0, "cannot take over: %s", why);
    (void)hand_over_send(socket, &packet, NULL); /* its end tells enough */
}

static void tell_ready(struct upgrade *upgrade)
{
    struct hand_over packet = {.word = HAND_OVER_READY};
    copy_version(packet.version, LEAT_VERSION);
    (void)hand_over_send(upgrade->around.socket, &packet, NULL); /* the socket's end is heard */
}

void upgrade_started(struct upgrade *upgrade)
{
    struct worker_figures figures = worker_figures(upgrade->worker);
    if (upgrade->role != UPGRADE_SUCCESSOR || upgrade->has_told) {
        return;
    }
    upgrade->has_told = true;
    if (figures.connected && strcmp(figures.state, "starting") == 0) {
        tell_ready(upgrade);
    } else {
        upgrade_refuse(upgrade->around.socket, figures.trouble);
        upgrade->events.stop(upgrade->events.context);
    }
}

static void take_charge(struct upgrade *upgrade)
{
    become_main(upgrade);
    upgrade->events.in_charge(upgrade->events.context);
    if (upgrade->is_asked) {
        const struct answer answer = upgrade->answer;
        upgrade->is_asked = false;
        upgrade->answer = (struct answer){0};
        begin(upgrade, answer);
    }
}

/* The former process has ended. If it had handed over, nobody else takes tasks now. */
static void on_alone(struct upgrade *upgrade)
{
    if (upgrade->has_slots) {
        take_charge(upgrade);
        return;
    }
    fd_watch_stop(&upgrade->packets, upgrade->around.loop);
    descriptor_close(&upgrade->around.socket);
    if (!upgrade->stops) {
        log_event(LOG_ERR, LOG_ID_UPGRADE, NULL, 0,
                  "cannot take over: the former leatd has ended before it has handed over");
        upgrade->events.stop(upgrade->events.context);
    }
}

static void on_packets(void *context)
{
    struct upgrade *upgrade = context;
    struct hand_over packet;
    int fds[HAND_OVER_ELDERS];
    int got = hand_over_receive(upgrade->around.socket, &packet, fds);
    if (got < 0) {
        on_alone(upgrade);
        return;
    }
    if (got == 0) {
        return;
    }
    if (packet.word == HAND_OVER_OVER && !upgrade->has_slots) {
        take_elders(upgrade, &packet, fds);
    } else if (packet.word == HAND_OVER_MAIN && upgrade->has_slots) {
        take_charge(upgrade);
    } else if (packet.word == HAND_OVER_RELOAD) {
        upgrade->events.reload(upgrade->events.context);
    }
    hand_over_close(fds);
}

static void open_successor(struct upgrade *upgrade)
{
    upgrade->role = UPGRADE_SUCCESSOR;
    upgrade->former.pid = upgrade->around.offer->pid;
    copy_version(upgrade->former.version, upgrade->around.offer->version);
    fd_watch_start(&upgrade->packets, upgrade->around.loop, upgrade->around.socket, EV_READ);
}

/* ---- creation and end ---- */

struct upgrade *upgrade_new(const struct upgrade_surroundings *surroundings,
                            const struct upgrade_events *events)
{
    struct upgrade *upgrade = calloc(1, sizeof *upgrade);
    if (!upgrade) {
        return NULL;
    }
    const struct elders_events elders_events = {
        .changed = on_elders_changed, .stopping = on_elder_stopping, .context = upgrade};
    upgrade->around = *surroundings;
    upgrade->events = *events;
    upgrade->role = UPGRADE_MAIN;
    fd_watch_init(&upgrade->packets, on_packets, upgrade);
    timer_init(&upgrade->elders_end, surroundings->loop, on_elders_end, upgrade);
    upgrade->elders = elders_new(surroundings->loop, surroundings->watchdog_ms, &elders_events);
    if (!upgrade->elders) {
        free(upgrade);
        return NULL;
    }
    if (surroundings->socket >= 0) {
        open_successor(upgrade);
    }
    return upgrade;
}

void upgrade_set_worker(struct upgrade *upgrade, struct worker *worker)
{
    upgrade->worker = worker;
}

bool upgrade_is_main(const struct upgrade *upgrade)
{
    return upgrade->role == UPGRADE_MAIN;
}

void upgrade_free(struct upgrade *upgrade)
{
    if (upgrade) {
        successor_free(upgrade->successor);
        elders_free(upgrade->elders);
        fd_watch_stop(&upgrade->packets, upgrade->around.loop);
        timer_stop(&upgrade->elders_end);
        descriptor_close(&upgrade->around.socket);
        free(upgrade);
    }
}
