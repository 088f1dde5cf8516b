/*
 * leat-board's process: start, signals, the event loop.
 */
#include <errno.h>
#include <ev.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log/log.h"
#include "base/process/standard_fds.h"
#include "base/signals.h"
#include "board/listener.h"
#include "board/options.h"
#include "board/server.h"
#include "board/token.h"
#include "config/file/queues.h"
#include "config/file/source.h"

#define WHY_SIZE 512

static void on_signal(void *context, const struct signalfd_siginfo *got)
{
    (void)got;
    ev_break(context, EVBREAK_ALL);
}

static int fail(int code, const char *why)
{
    log_text(LOG_ERR, "%s", why);
    return code;
}

static void write_url(const struct options *options, const char *token, char *text, size_t size)
{
    (void)snprintf(text, size, "http://%s/%s%s", options->listen.text, *token ? "#" : "", token);
}

static void log_start(const struct options *options, const struct server_settings *settings)
{
    const char *plural = settings->queue_count == 1 ? "" : "s";
    char url[512];

    if (*options->listen.path) {
        (void)snprintf(url, sizeof url, "%s", options->listen.text);
    } else {
        write_url(options, settings->token ? settings->token : "", url, sizeof url);
    }
    log_text(LOG_NOTICE, "showing %zu queue%s at %s", settings->queue_count, plural, url);
}

static int serve(struct options *options, const struct server_settings *settings)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct signals signals = SIGNALS_CLOSED;
    struct server *server = NULL;
    char why[WHY_SIZE] = "";
    sigset_t stops;
    int socket = loop ? listener_open(&options->listen, why, sizeof why) : -1, code = EX_OK;

    if (socket < 0) {
        code = fail(EX_OSERR, *why ? why : "out of memory");
    } else {
        server = server_new(loop, socket, settings);
    }
    (void)sigemptyset(&stops);
    (void)sigaddset(&stops, SIGTERM);
    (void)sigaddset(&stops, SIGINT);
    if (server && signals_open(&signals, loop, &stops, on_signal, loop) == 0) {
        log_start(options, settings);
        /* without a service manager nobody is told */
        (void)sd_notify(0, "READY=1");
        (void)ev_run(loop, 0); /* its result only tells why it returned */
        signals_close(&signals);
    } else if (socket >= 0) {
        code = fail(EX_OSERR, "cannot start the web server");
    }
    server_free(server);
    if (socket >= 0) {
        listener_remove(&options->listen);
    }
    if (loop) {
        ev_loop_destroy(loop);
    }
    return code;
}

static int print_url(const struct options *options, const char *token)
{
    char url[512];

    write_url(options, token, url, sizeof url);
    return puts(url) >= 0 && fflush(stdout) == 0 ? EX_OK : EX_IOERR;
}

/* Returns EX_OK if each queue that was named has a file, or an exit code after logging the one that
 * has none. */
static int check_files(const struct options *options)
{
    char why[WHY_SIZE];
    int code = EX_OK;

    for (size_t i = 0; i < options->queue_count && code == EX_OK; i++) {
        char *path = config_source_queue_path(options->queues[i]);
        if (!path) {
            code = fail(EX_OSERR, "out of memory");
        } else if (access(path, F_OK) != 0) {
            (void)snprintf(why, sizeof why, "no queue %s: %s: %s", options->queues[i], path,
                           strerror(errno));
            code = fail(EX_CONFIG, why);
        }
        free(path);
    }
    return code;
}

static int show_queues(struct options *options, const char *token)
{
    struct server_settings settings = {.token = *token ? token : NULL,
                                       .checks_host = !*options->listen.path,
                                       .queues = options->queues,
                                       .queue_count = options->queue_count};
    char **names = NULL, why[WHY_SIZE];
    size_t count = 0;
    int error = 0, code = check_files(options);

    if (code != EX_OK) {
        return code;
    }
    if (options->queue_count == 0) {
        count = queues_list(&names, &error);
        settings.queues = (const char *const *)names;
        settings.queue_count = count;
    }
    if (settings.queue_count == 0) {
        (void)snprintf(why, sizeof why, "no queue is configured: %s%s%s", config_source_folder(),
                       error != 0 ? ": " : " has no *.ini", error != 0 ? strerror(error) : "");
        code = fail(EX_CONFIG, why);
    } else {
        code = serve(options, &settings);
    }
    queues_free(names, count);
    return code;
}

int main(int argc, char **argv)
{
    struct options options;
    char token[TOKEN_SIZE] = "", why[WHY_SIZE];
    int code = options_parse(argc, argv, &options);

    if (code >= 0) {
        return code;
    }
    if (standard_fds_open(true) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
        log_open(LOG_TARGET_AUTO, LOG_INFO, "leat-board") != 0) {
        return EX_OSERR;
    }
    srand48(clock_boot_ns()); /* for the jitter of connections */
    if (!options.no_token &&
        token_load(options.token_file, !options.url, token, why, sizeof why) != 0) {
        code = fail(EX_OSERR, why);
    } else if (options.url) {
        code = print_url(&options, token);
    } else {
        code = show_queues(&options, token);
    }
    log_close();
    return code;
}
