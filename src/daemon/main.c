/*
 * leatd's process: start, signals, reload, the event loop.
 */
#include <errno.h>
#include <ev.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "base/process/descriptor.h"
#include "base/process/mounts.h"
#include "base/process/standard_fds.h"
#include "base/process/time_slice.h"
#include "base/signals.h"
#include "base/timer.h"
#include "config/config.h"
#include "config/file/load.h"
#include "config/file/service.h"
#include "daemon/claim/isolation.h"
#include "daemon/file_limit.h"
#include "daemon/options.h"
#include "daemon/rights.h"
#include "daemon/sd_notify.h"
#include "daemon/unit_user.h"
#include "daemon/upgrade.h"
#include "daemon/worker.h"
#include "exec/guard/guard_process.h"
#include "exec/guard/worker_locks.h"
#include "exec/start/commands.h"
#include "exec/start/identity.h"

#define STATUS_PERIOD_S 1.0
#define RELOAD_PERIOD_S 0.2 /* tasks of leatd's user can ask for reloads without end */
#define ALIVE_SHARE 3       /* one part in this many of the watchdog's time */
#define ALIVE_AGAIN_S 0.1   /* after a try that found the manager's socket full */

struct daemon {
    struct ev_loop *loop;
    struct config *config;
    const struct options *options;
    struct worker *worker;
    struct isolation isolation;
    struct confinement confinement;
    struct hand_over offer; /* with --take-over */
    int offer_socket;       /* owned until `upgrade` has it; -1: none */
    struct upgrade *upgrade;
    int exit_code;
    bool stopped;
    bool stops;      /* a stop has begun */
    int64_t stop_ms; /* how long the worker's stop may take, from its last stage on */
    bool ready;      /* the service manager knows that leatd is ready */
    struct worker_figures notified; /* the figures in the last STATUS */
    char notified_trouble[256];     /* a copy of its text, since the original changes in place */
    struct signals signals;
    ev_prepare turn;
    struct timer status;
    struct timer alive_again;
    struct timer reload_pause; /* runs after a reload */
    bool reload_asked;         /* during that pause */
};

/* ---- start ---- */

/* Warns about listed programs that are missing here. This is no error: other hosts may have them.
 * While tasks run, programs on network file systems are not looked for, since that may hang; nor
 * are errors reported that depend on the tasks' user. */
static void warn_of_programs(const struct config *config, bool runs)
{
    char **entries = config->command.program;
    for (size_t i = 0; entries && entries[i]; i++) {
        const char *program = strchr(entries[i], '=') + 1;
        bool passes = runs && *program == '/' && mounts_is_remote(program);
        int error = passes ? 0 : commands_look(program, config->task.path);
        if (error && (error != EACCES || !config->task.user)) {
            log_text(LOG_WARNING, "%s: [command.%.*s]: %s: %s", config->path,
                     (int)(program - 1 - entries[i]), entries[i], program, strerror(error));
        }
    }
}

/* Warns if something is missing that every task needs: the file that -t checks may name it
 * wrongly. */
static void warn_of_surroundings(const struct config *config)
{
    struct identity *identity = identity_new(&config->task);
    if (identity && *identity->missing) {
        log_text(LOG_WARNING, "%s: [task] user, group: %s", config->path, identity->missing);
    }
    identity_free(identity);

    const struct {
        const char *key, *path;
    } needed[] = {{"directory", config->task.directory}, {"shell", config->task.shell}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (needed[i].path && access(needed[i].path, F_OK) != 0) {
            log_text(LOG_WARNING, "%s: [task] %s: %s: %s", config->path, needed[i].key,
                     needed[i].path, strerror(errno));
        }
    }
}

static bool runs_here(const struct config *config)
{
    struct buffer own = BUFFER_INIT;
    const char *state = config->isolation.state;
    if (!state && service_folder(SERVICE_RUNTIME, config->path, &own) == 0) {
        state = own.data;
    }
    char *folder = worker_locks_folder(state, config->queue.name);
    char **names = folder ? worker_locks_list(folder) : NULL;
    struct worker_lock_found found;
    bool runs = false;
    for (size_t i = 0; names && names[i] && !runs; i++) {
        runs = worker_locks_look(folder, names[i], &found) == WORKER_LOCK_LIVES;
    }
    worker_locks_list_free(names);
    free(folder);
    buffer_free(&own);
    return runs;
}

/* A running leatd does not say what its values are, so all keys that have a value are named. */
static void note_kept_keys(const struct config *config)
{
    static const char *const texts[] = {
        "a leatd of this queue is running; it takes changes of these keys only after a restart",
        "a leatd of this queue is running; changes of these keys, which all workers share, take "
        "effect with leat conf --apply",
    };
    for (int shared = 0; shared < 2; shared++) {
        struct buffer keys = BUFFER_INIT;
        if (config_list_kept(config, shared, &keys) == 0 &&
            (shared || rights_list_bounded(config, &keys) == 0) && keys.size > 0) {
            log_text(LOG_NOTICE, "%s: %s: %.*s", config->path, texts[shared], (int)keys.size,
                     keys.data);
        }
        buffer_free(&keys);
    }
}

/* Warns of what this host lacks. user: whom this process became, or "". */
static int test_host(const struct config *config, const char *user)
{
    warn_of_surroundings(config);
    rights_warn(config);
    warn_of_programs(config, false);
    if (runs_here(config)) {
        note_kept_keys(config);
    }
    return *user ? options_say("%s: ok (checked as user %s)\n", config->path, user)
                 : options_say("%s: ok\n", config->path);
}

/* leatd -t. Returns an exit code. */
static int test(struct options *options, struct config **config, struct buffer *errors)
{
    char user[128];
    /* systemd gives credentials to the service alone, so a shell cannot check them */
    options->source.skip_credentials = !getenv("CREDENTIALS_DIRECTORY");
    int code = unit_user_become(options->path, user, sizeof user);
    if (code) {
        return code;
    }
    if (options_load(options, config, errors)) {
        code = options_refuse(errors, NULL);
        if (*user) {
            log_text(LOG_ERR, "%s: checked as user %s", options->path, user);
        }
        return code;
    }
    return test_host(*config, user);
}

/* Signal dispositions of the parent must not change how leatd or its tasks end. */
static int reset_signals(void)
{
    sigset_t at_first; /* these stay pending until the loop listens */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction standard = {.sa_handler = SIG_DFL};
    static const int ours[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGCHLD};
    if (sigemptyset(&at_first) || sigaction(SIGPIPE, &ignore, NULL) ||
        sigaction(SIGXFSZ, &ignore, NULL)) {
        return -1;
    }
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        if (sigaction(ours[i], &standard, NULL)) {
            return -1;
        }
    }
    return sigaddset(&at_first, SIGHUP) || sigaddset(&at_first, SIGUSR2) ||
                   sigprocmask(SIG_SETMASK, &at_first, NULL)
               ? -1
               : 0;
}

/* Fixed thresholds make malloc return the memory of a large task to the system. By default it
 * adapts to the first large task, and keeps as much for the next. */
static void bound_memory(void)
{
    enum { THRESHOLD = 128 * 1024 };
    (void)mallopt(M_MMAP_THRESHOLD, THRESHOLD); /* without it, leatd only uses more memory */
    (void)mallopt(M_TRIM_THRESHOLD, THRESHOLD);
}

/* The allocator of libev, which would abort without memory. The guards end the tasks. */
static void *allocate_for_loop(void *old, long size)
{
    if (size <= 0) {
        free(old);
        return NULL;
    }
    void *found = realloc(old, (size_t)size);
    if (!found) {
        log_text(LOG_ERR, "event loop: out of memory");
        log_close();
        exit(EX_OSERR);
    }
    return found;
}

static enum log_target log_target_of(enum config_log target)
{
    switch (target) {
    case CONFIG_LOG_AUTO:
        return LOG_TARGET_AUTO;
    case CONFIG_LOG_JOURNAL:
        return LOG_TARGET_JOURNAL;
    case CONFIG_LOG_STDERR:
        return LOG_TARGET_STDERR;
    case CONFIG_LOG_JSON:
        return LOG_TARGET_JSON;
    }
    return LOG_TARGET_AUTO;
}

/* The log until the configuration is read. Messages of leatd -t have no prefix. */
static int open_first_log(bool test)
{
    return log_open(test ? LOG_TARGET_STDERR : LOG_TARGET_AUTO, LOG_INFO, test ? NULL : "leatd");
}

static int open_log(const struct config *config)
{
    if (log_open(log_target_of(config->log.target), (int)config->log.level, "leatd")) {
        log_text(LOG_WARNING, "cannot reach the journal: %s; logging to stderr", strerror(errno));
    }
    struct log_field common[] = {LOG_TEXT("LEAT_QUEUE", config->queue.name)};
    return log_set_common(common, 1);
}

/* ---- events ---- */

static void send_status(struct daemon *daemon, const struct worker_figures *figures)
{
    if (!sd_notify_status(figures)) {
        return; /* the turn tries again, since the figures still differ */
    }
    /* a truncated text differs from the original, so STATUS is then sent each time */
    (void)snprintf(daemon->notified_trouble, sizeof daemon->notified_trouble, "%s",
                   figures->trouble);
    daemon->notified = *figures;
    daemon->notified.trouble = daemon->notified_trouble;
}

/* For the service manager, leatd is up even if it waits for Redis: a start that failed would stop
 * what depends on it. The status, sent before, tells the difference. */
static void on_started(void *context)
{
    struct daemon *daemon = context;
    struct worker_figures figures = worker_figures(daemon->worker);
    if (upgrade_is_main(daemon->upgrade)) {
        send_status(daemon, &figures);
        daemon->ready = true;
        sd_notify_ready();
    } else {
        upgrade_started(daemon->upgrade);
    }
}

static void on_ready(void *context)
{
    struct daemon *daemon = context;
    struct worker_figures figures = worker_figures(daemon->worker);
    char batch[48] = "";
    if (figures.batch > 1) {
        (void)snprintf(batch, sizeof batch, " of up to %zu tasks", figures.batch); /* fits */
    }
    log_event(LOG_INFO, LOG_ID_WORKER_READY, NULL, 0, "ready: queue %s, %zu slot%s%s",
              daemon->config->queue.name, figures.slots, figures.slots == 1 ? "" : "s", batch);
}

/* Every program of the host can fill the manager's socket. It is read again and again, so a later
 * try finds room. */
static void feed_watchdog(void *context)
{
    struct daemon *daemon = context;
    if (upgrade_is_main(daemon->upgrade) && !sd_notify_alive()) {
        timer_start_s(&daemon->alive_again, ALIVE_AGAIN_S);
    }
}

static void on_alive(void *context)
{
    struct daemon *daemon = context;
    if (upgrade_is_main(daemon->upgrade)) {
        feed_watchdog(daemon);
    } else {
        upgrade_alive(daemon->upgrade);
    }
    /* with every heartbeat: writes what the log could not write before */
    log_flush();
}

static void on_stopped(void *context, int exit_code)
{
    struct daemon *daemon = context;
    daemon->exit_code = exit_code;
    daemon->stopped = true;
    ev_break(daemon->loop, EVBREAK_ALL);
}

static void reload(struct daemon *daemon)
{
    struct buffer text = BUFFER_INIT;
    struct config *fresh = NULL, *merged = NULL;
    if (options_load(daemon->options, &fresh, &text)) {
        log_lines(LOG_ERR, LOG_ID_CONFIG_REJECTED, &text);
        log_event(LOG_ERR, LOG_ID_CONFIG_REJECTED, NULL, 0,
                  "configuration not reloaded: the running one stays in use");
        goto done;
    }
    if (rights_check(fresh, &daemon->confinement)) {
        log_event(LOG_ERR, LOG_ID_CONFIG_REJECTED, NULL, 0,
                  "configuration not reloaded: the running one stays in use");
        config_free(fresh);
        goto done;
    }
    buffer_clear(&text);
    merged = config_merge(daemon->config, fresh, worker_lease_ms(daemon->worker), &text);
    if (!merged) {
        log_event(LOG_ERR, LOG_ID_CONFIG_REJECTED, NULL, 0,
                  "configuration not reloaded: out of memory; the running one stays in use");
        goto done;
    }
    log_lines(LOG_WARNING, LOG_ID_CONFIG_RELOADED, &text);
    isolation_warn(&daemon->isolation, merged);
    rights_warn(merged);
    rights_confine(merged, &daemon->confinement);
    warn_of_programs(merged, true);
    file_limit_warn(merged, daemon->isolation.cgroups);
    worker_set_config(daemon->worker, merged);
    config_free(daemon->config);
    daemon->config = merged;
    if (open_log(merged)) {
        log_text(LOG_ERR, "out of memory");
    }
    log_event(LOG_INFO, LOG_ID_CONFIG_RELOADED, NULL, 0, "configuration reloaded");
done:
    buffer_free(&text);
}

static void on_stop(void *context)
{
    struct daemon *daemon = context;
    daemon->stops = true;
    if (daemon->worker) { /* otherwise only former programs are waited for */
        worker_stop(daemon->worker);
        daemon->stop_ms = worker_stop_ms(daemon->worker);
    }
    upgrade_stopping(daemon->upgrade, daemon->stop_ms);
    if (upgrade_is_main(daemon->upgrade)) {
        sd_notify_stopping(daemon->stop_ms);
    }
}

static void on_reload(void *context)
{
    struct daemon *daemon = context;
    bool notifies = daemon->ready && upgrade_is_main(daemon->upgrade);
    if (notifies) {
        sd_notify_reloading();
    }
    reload(daemon);
    upgrade_reloaded(daemon->upgrade);
    if (notifies) {
        sd_notify_ready();
    }
}

/* Reloads now, or at the end of the pause after the last reload. */
static void ask_reload(struct daemon *daemon)
{
    daemon->reload_asked = timer_runs(&daemon->reload_pause);
    if (!daemon->reload_asked) {
        timer_start_s(&daemon->reload_pause, RELOAD_PERIOD_S);
        on_reload(daemon);
    }
}

static void on_reload_pause_over(void *context)
{
    struct daemon *daemon = context;
    if (daemon->reload_asked) {
        ask_reload(daemon);
    }
}

static void on_signal(void *context, const struct signalfd_siginfo *got)
{
    struct daemon *daemon = context;
    switch (got->ssi_signo) {
    case SIGUSR2:
        upgrade_begin(daemon->upgrade, got);
        return;
    case SIGHUP:
        if (daemon->worker) {
            ask_reload(daemon);
        }
        return;
    default:
        on_stop(daemon);
    }
}

/* The process has taken over from another one, which may not have been ready itself. */
static void on_in_charge(void *context)
{
    struct daemon *daemon = context;
    struct log_field fields[] = {LOG_TEXT("LEAT_EVENT", "in-charge")};
    log_event(LOG_NOTICE, LOG_ID_UPGRADE, fields, 1,
              "upgraded from %s to " LEAT_VERSION ": this process takes new tasks",
              daemon->offer.version);
    daemon->ready = true;
    worker_go(daemon->worker);
    sd_notify_ready();
    feed_watchdog(daemon);
}

/* ---- each turn: STATUS, when figures change, at most once a second ---- */

static bool figures_differ(const struct worker_figures *left, const struct worker_figures *right)
{
    return left->running != right->running || left->slots != right->slots ||
           left->others != right->others || left->busy != right->busy ||
           left->batch != right->batch ||
           memcmp(left->ended, right->ended, sizeof left->ended) != 0 ||
           left->state != right->state || left->connected != right->connected ||
           strcmp(left->trouble, right->trouble) != 0;
}

static void on_turn(struct ev_loop *loop, ev_prepare *watcher, int events)
{
    (void)loop;
    (void)events;
    struct daemon *daemon = watcher->data;
    upgrade_turn(daemon->upgrade);
    if (!sd_notify_is_wanted() || !upgrade_is_main(daemon->upgrade) ||
        timer_runs(&daemon->status)) {
        return;
    }
    struct worker_figures figures = worker_figures(daemon->worker);
    if (figures_differ(&figures, &daemon->notified)) {
        timer_start_s(&daemon->status, STATUS_PERIOD_S);
        send_status(daemon, &figures);
    }
}

/* ---- running ---- */

static int listen_for_signals(struct daemon *daemon)
{
    sigset_t set;
    return sigemptyset(&set) || sigaddset(&set, SIGTERM) || sigaddset(&set, SIGINT) ||
                   sigaddset(&set, SIGHUP) || sigaddset(&set, SIGUSR2)
               ? -1
               : signals_open(&daemon->signals, daemon->loop, &set, on_signal, daemon);
}

static void run_loop(struct daemon *daemon)
{
    ev_prepare_init(&daemon->turn, on_turn);
    timer_init(&daemon->status, daemon->loop, NULL, NULL); /* the turn looks for changes */
    timer_init(&daemon->alive_again, daemon->loop, feed_watchdog, daemon);
    timer_init(&daemon->reload_pause, daemon->loop, on_reload_pause_over, daemon);
    daemon->turn.data = daemon;
    ev_prepare_start(daemon->loop, &daemon->turn);
    worker_start(daemon->worker);
    while (!daemon->stopped) {
        ev_run(daemon->loop, 0);
    }
    ev_prepare_stop(daemon->loop, &daemon->turn);
    timer_stop(&daemon->status);
    timer_stop(&daemon->reload_pause);
}

/* The worker has stopped. Former programs may still run tasks, and the service manager would kill
 * them if its main process ended now. */
static void await_elders(struct daemon *daemon)
{
    struct timer alive;
    int64_t watchdog_ms = sd_notify_watchdog_ms();
    timer_init(&alive, daemon->loop, feed_watchdog, daemon);
    if (watchdog_ms > 0) {
        timer_repeat_s(&alive, (double)watchdog_ms / 1000 / ALIVE_SHARE);
    }
    if (upgrade_has_elders(daemon->upgrade) && !daemon->stops) {
        on_stop(daemon); /* the worker has ended by itself */
    }
    while (upgrade_has_elders(daemon->upgrade)) {
        ev_run(daemon->loop, EVRUN_ONCE);
    }
    timer_stop(&alive);
    timer_stop(&daemon->alive_again);
}

/* Creates the part that upgrades. Returns 0, or -1 without memory. */
static int create_upgrade(struct daemon *daemon, const struct rlimit *nofile)
{
    const struct upgrade_events events = {
        .in_charge = on_in_charge, .reload = on_reload, .stop = on_stop, .context = daemon};
    const struct upgrade_surroundings around = {.loop = daemon->loop,
                                                .options = daemon->options,
                                                .nofile = nofile,
                                                .confinement = &daemon->confinement,
                                                .has_cgroups = daemon->isolation.cgroups,
                                                .watchdog_ms = sd_notify_watchdog_ms(),
                                                .socket = daemon->offer_socket,
                                                .offer = &daemon->offer};
    daemon->upgrade = upgrade_new(&around, &events);
    if (daemon->upgrade) {
        daemon->offer_socket = -1;
    }
    return daemon->upgrade ? 0 : -1;
}

static int run(struct daemon *daemon, const struct rlimit *nofile)
{
    const struct worker_events events = {.started = on_started,
                                         .ready = on_ready,
                                         .alive = on_alive,
                                         .stopped = on_stopped,
                                         .context = daemon};
    ev_set_allocator(allocate_for_loop);
    daemon->loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
    if (!daemon->loop) {
        log_text(LOG_ERR, "cannot create the event loop: %s", strerror(errno));
        return EX_OSERR;
    }
    int code = EX_OSERR;
    /* before the worker, whose start takes a moment: signals wait until the loop runs */
    if (listen_for_signals(daemon)) {
        log_text(LOG_ERR, "cannot listen for signals: %s", strerror(errno));
        goto destroy;
    }
    if (create_upgrade(daemon, nofile)) {
        log_text(LOG_ERR, "cannot start: %s", strerror(errno));
        goto close_signals;
    }
    daemon->worker = worker_new(daemon->loop, daemon->config, nofile, &daemon->isolation,
                                sd_notify_watchdog_ms(), daemon->options->takes_over, &events);
    if (!daemon->worker) {
        log_text(LOG_ERR, "cannot start: %s", strerror(errno));
        goto free_upgrade;
    }
    upgrade_set_worker(daemon->upgrade, daemon->worker);
    run_loop(daemon);
    upgrade_set_worker(daemon->upgrade, NULL);
    worker_free(daemon->worker);
    daemon->worker = NULL;
    await_elders(daemon);
    code = daemon->exit_code == EX_OK && upgrade_has_failed(daemon->upgrade) ? EX_SOFTWARE
                                                                             : daemon->exit_code;
free_upgrade:
    upgrade_free(daemon->upgrade);
close_signals:
    signals_close(&daemon->signals);
destroy:
    ev_loop_destroy(daemon->loop);
    return code;
}

/* Another leatd has started this one, to be replaced by it. The filter of ids is inherited. Returns
 * 0, or -1. */
static int read_offer(struct daemon *daemon)
{
    const struct hand_over *offer = &daemon->offer;
    daemon->offer_socket = upgrade_read_offer(&daemon->offer);
    daemon->confinement = (struct confinement){.active = offer->confined,
                                               .uid = offer->uid,
                                               .gid = offer->gid,
                                               .group_count = offer->groups};
    return daemon->offer_socket < 0 ? -1 : 0;
}

/* Returns 0, or an exit code. */
static int isolate(struct daemon *daemon)
{
    bool beside = daemon->offer.has_cgroups;
    int code = isolation_open(&daemon->isolation, daemon->config, beside);
    if (code == EX_OK && beside && !daemon->isolation.cgroups &&
        daemon->config->isolation.cgroup != CONFIG_CGROUP_OFF) {
        log_text(LOG_ERR, "tasks would have no cgroups, which those of the former leatd have");
        code = EX_CONFIG;
    }
    return code;
}

/* Returns an exit code. */
static int run_isolated(struct daemon *daemon, const struct rlimit *nofile)
{
    time_slice_shorten();
    rights_warn(daemon->config);
    rights_confine(daemon->config, &daemon->confinement);
    warn_of_programs(daemon->config, true);
    int code = isolate(daemon);
    file_limit_warn(daemon->config, daemon->isolation.cgroups);
    code = code ? code : run(daemon, nofile);
    isolation_close(&daemon->isolation);
    return code;
}

/* Returns an exit code. */
static int serve(struct options *options)
{
    if (open_first_log(options->test)) {
        (void)fputs("leatd: cannot reach the journal\n", stderr); /* the log then writes there */
    }

    bound_memory();
    if (rights_hide()) {
        log_text(LOG_WARNING, "cannot hide leatd's memory from tasks of the same user: %s",
                 strerror(errno));
    }
    struct daemon daemon = {
        .options = options, .offer_socket = -1, .notified = {.state = "", .trouble = ""}};
    struct buffer errors = BUFFER_INIT;
    struct rlimit nofile;
    int code;
    if (options->test) {
        code = test(options, &daemon.config, &errors);
    } else if (options->takes_over && read_offer(&daemon)) {
        code = EX_USAGE;
    } else if (options_load(options, &daemon.config, &errors)) {
        code = options_refuse(&errors, LOG_ID_CONFIG_REJECTED);
    } else if (reset_signals() || file_limit_raise(&nofile) || open_log(daemon.config)) {
        log_text(LOG_ERR, "cannot start: %s", strerror(errno));
        code = EX_OSERR;
    } else {
        code = rights_check(daemon.config, &daemon.confinement);
        code = code ? code : run_isolated(&daemon, &nofile);
    }
    if (daemon.offer_socket >= 0) {
        upgrade_refuse(daemon.offer_socket, "it cannot start; its own log says why");
        descriptor_close(&daemon.offer_socket);
    }
    buffer_free(&errors);
    config_free(daemon.config);
    log_close();
    return code;
}

int main(int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], GUARD_NAME) == 0) {
        /* without exit handlers: a guard has nothing to flush, and its filter refuses the system
         * calls of a leak checker */
        _exit(guard_process(argc, argv));
    }
    if (standard_fds_open(true)) {
        return EX_OSERR; /* stderr may be missing, so nothing can be printed */
    }
    struct options options = {0};
    (void)rights_hide(); /* before it has a password; serve() tries again, and says if it cannot */
    int code = options_parse(argc, argv, &options);
    if (code < 0) {
        code = serve(&options);
    }
    options_free(&options);
    return code;
}
