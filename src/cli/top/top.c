/*
 * leat top: the command, and its event loop.
 */
#include <errno.h>
#include <ev.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd_watch.h"
#include "base/signals.h"
#include "cli/lib/output.h"
#include "cli/lib/queues.h"
#include "cli/top/draw.h"
#include "cli/top/keys.h"
#include "cli/top/screen.h"
#include "cli/top/state.h"
#include "view/watch/watched.h"

#define TICK_S 0.5 /* Redis is asked once a second at most */

static const char help[] =
    "Usage: leat top [OPTION]...\n"
    "Watch queues on the terminal: all queues, or with -q or -c one; the tasks,\n"
    "workers, lanes, dead letters and ended tasks of a queue; the details and the\n"
    "output of a task. It needs 60 columns and 10 rows.\n"
    "\n"
    "Keys:\n"
    "  Up, Down, k, j       move\n"
    "  Enter                open the queue or the task\n"
    "  Esc, q               go back; q on the first screen ends leat top\n"
    "  Tab, 1 to 6          show another list\n"
    "  /, s, S              filter, sort, reverse the order\n"
    "  c, r, p, d           cancel a task, retry a dead letter, pause or resume the\n"
    "                       queue, drain or undrain a host; each asks first\n"
    "  ?                    show all keys\n"
    "\n"
    "Options:\n"
    "  -q, -c, -h           see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat top\n"
    "  leat -q thumbnails top\n"
    "\n"
    "Exit codes:\n"
    "  0   ended by q or a signal\n"
    "  64  wrong usage, or stdin and stdout are no terminal that it can use\n"
    "  71  a system call failed\n"
    "  78  the configuration is wrong\n";

/* ---- events */

static void on_draw(void *context)
{
    draw(context);
}

static void on_tick(void *context)
{
    struct top *top = context;

    top_refresh(top);
    top_changed(top);
}

static void on_refreshed(void *context)
{
    top_changed(context);
}

static void on_action(void *context)
{
    struct top *top = context;

    top_refresh(top);
    top_changed(top);
}

static void end(const struct top *top)
{
    ev_break(top->loop, EVBREAK_ALL);
}

/* The descriptor of a terminal that has gone stays readable and has nothing. */
static bool has_gone(void)
{
    int size = 0;

    return ioctl(STDIN_FILENO, FIONREAD, &size) != 0 || size == 0;
}

static void on_keys(void *context)
{
    struct top *top = context;
    bool gone = has_gone();
    int key;

    while ((key = screen_key(top->screen)) != SCREEN_NO_KEY) {
        gone = false;
        if (!keys_press(top, key)) {
            end(top);
            return;
        }
    }
    if (gone) {
        end(top);
    }
}

static void measure(struct top *top)
{
    struct output output = output_look();

    top->rows = output.height;
    top->columns = output.width;
    screen_resize(top->screen, top->rows, top->columns);
}

static void on_signal(void *context, const struct signalfd_siginfo *got)
{
    struct top *top = context;

    if (got->ssi_signo != SIGWINCH) {
        end(top);
        return;
    }
    measure(top);
    top_changed(top);
}

/* ---- queues */

static int watch_one(struct top *top, const char *name, struct config *config)
{
    const struct watched_settings settings = {.name = name, .config = config, .watcher = "top"};
    struct watched *watched = watched_new(top->loop, &settings, on_refreshed, top);

    if (!watched) {
        return cli_no_memory();
    }
    top->queues[top->queue_count++] = watched;
    return EX_OK;
}

static int watch_all(struct top *top)
{
    char **names;
    int error, status = EX_OK;
    size_t count = queues_list(&names, &error);

    top->queues = calloc(count + 1, sizeof(struct watched *));
    if (count == 0) {
        status = queues_none(error);
    } else if (!top->queues) {
        status = cli_no_memory();
    }
    for (size_t i = 0; i < count && status == EX_OK; i++) {
        status = watch_one(top, names[i], NULL);
    }
    queues_free(names, count);
    return status;
}

static int watch_named(struct top *top, struct cli *cli)
{
    struct config *config;
    int status = cli_load(cli);

    if (status != EX_OK) {
        return status;
    }
    top->queues = calloc(1, sizeof(struct watched *));
    if (!top->queues) {
        return cli_no_memory();
    }
    config = cli->config;
    cli->config = NULL;
    return watch_one(top, config->queue.name, config);
}

/* ---- the command */

static int open_screen(struct top *top)
{
    char why[256];

    top->screen = screen_new(top->color, why, sizeof why);
    if (top->screen) {
        measure(top);
        return EX_OK;
    }
    cli_error("cannot use this terminal: %s; for programs: leat status --json", why);
    return EX_USAGE;
}

static int open_signals(struct top *top, struct signals *signals)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        (void)sigaddset(&set, numbers[i]);
    }
    if (signals_open(signals, top->loop, &set, on_signal, top) == 0) {
        return EX_OK;
    }
    cli_error("cannot receive signals: %s", strerror(errno));
    return EX_OSERR;
}

/* Signals are received before the terminal is changed, so that each of them restores it. */
static int show(struct top *top)
{
    struct signals signals = SIGNALS_CLOSED;
    struct fd_watch keys;
    int status = open_signals(top, &signals);

    status = status == EX_OK ? open_screen(top) : status;
    if (status == EX_OK) {
        fd_watch_init(&keys, on_keys, top);
        fd_watch_start(&keys, top->loop, STDIN_FILENO, EV_READ);
        timer_init(&top->draw, top->loop, on_draw, top);
        timer_init(&top->tick, top->loop, on_tick, top);
        timer_repeat_s(&top->tick, TICK_S);
        top_start(top);
        (void)ev_run(top->loop, 0); /* its result only tells why it returned */
        fd_watch_stop(&keys, top->loop);
        screen_free(top->screen);
    }
    signals_close(&signals);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    static const struct cli_option options[] = {{0}};
    struct output output = output_look();
    struct top top = {.source = &cli->source, .color = output.color};
    int status = cli_options(cli, argc, argv, CLI_NO_OPERANDS, options);

    if (status != EX_OK) {
        return status;
    }
    if (!output.terminal || isatty(STDIN_FILENO) != 1) {
        return cli_usage(cli,
                         "stdin and stdout must be a terminal; for programs: leat status --json");
    }
    top.named = !queues_is_open(cli);
    top.loop = ev_loop_new(EVFLAG_AUTO);
    if (!top.loop) {
        return cli_no_memory();
    }
    top.task = (struct task_screen){.loop = top.loop, .changed = top_changed, .context = &top};
    top.action = (struct action){.loop = top.loop, .changed = on_action, .context = &top};
    status = top.named ? watch_named(&top, cli) : watch_all(&top);
    status = status == EX_OK ? show(&top) : status;
    top_free(&top);
    ev_loop_destroy(top.loop);
    return status;
}

const struct subcommand top_command = {"top", "Watch queues on the terminal, and operate them",
                                       help, run};
