/*
 * Prepares what a process needs, starts it, and says whose fault a failure is.
 */
#include "exec/start/start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process/descriptor.h"
#include "exec/start/words.h"

/* The memory and descriptors that a start needs until the process runs. */
struct parts {
    char **environment;
    char **words; /* owned; the words of the task's own command; or NULL */
    char *spaced; /* owned; a command with a blank in front, so that it is no option; or NULL */
    char *shell_words[4];
    int input;     /* the task's end */
    int feed;      /* leatd's end, if stdin is a pipe; or -1 */
    int output[2]; /* read end, write end */
    int error[2];
    int verdicts[2];
};

/* Makes a pipe. leatd's end does not block, since a task may itself read what leatd was told of. It
 * has a high number, so that the task's end has a small one (see spawn.h), but not below `least`.
 * With `shared`, another user may open the task's end by its name (> /dev/stderr). That gives no
 * access to others: only a process that has the descriptor, or may inspect one that has, can do it.
 */
static int make_pipe(int ends[2], int least, bool shared)
{
    if (pipe2(ends, O_CLOEXEC) < 0) {
        ends[0] = ends[1] = -1;
        return -1;
    }
    ends[0] = descriptor_out_of_the_way(ends[0]);
    ends[1] = descriptor_above(ends[1], least);
    if (ends[0] < 0 || ends[1] < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) {
        return -1;
    }
    return shared ? fchmod(ends[1], S_IRUSR | S_IWUSR | S_IWGRP | S_IWOTH) : 0;
}

/* Makes the pipe from which the process reads its records; see make_pipe. */
static int make_feed(struct parts *parts, bool shared)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return -1;
    }
    parts->input = descriptor_above(ends[0], 3);
    parts->feed = descriptor_out_of_the_way(ends[1]);
    if (parts->input < 0 || parts->feed < 0 || fcntl(parts->feed, F_SETFL, O_NONBLOCK) < 0) {
        return -1;
    }
    return shared ? fchmod(parts->input, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH) : 0;
}

static int write_all(int fd, const char *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t written = pwrite(fd, data + done, size - done, (off_t)done);
        if (written < 0 && errno != EINTR) {
            return -1;
        }
        done += written > 0 ? (size_t)written : 0;
    }
    return 0;
}

/* Makes a file without a name that has the content and is sealed against changes. Returns its
 * descriptor, at the beginning of the file; or -1 with errno. */
static int make_input(struct bytes content)
{
    int fd = descriptor_above(memfd_create("payload", MFD_CLOEXEC | MFD_ALLOW_SEALING), 3);
    if (fd < 0) {
        return -1;
    }
    if (write_all(fd, content.data, content.size) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0) {
        descriptor_close(&fd);
    }
    return fd;
}

static const struct recipe_line *line_of(const struct recipe *recipe, bool check)
{
    return check ? &recipe->check : &recipe->command;
}

/* Sets the shell's argv, and the words of a command that needs no shell. Returns 0, or -1 without
 * memory or if a reload has changed the commands meanwhile. */
static int make_words(struct parts *parts, const struct recipe *recipe,
                      const struct start_order *order)
{
    const struct task *task = order->task;
    char *command = line_of(recipe, order->check)->text;
    if (!command && (order->check || !task || !task->command)) {
        return -1; /* a reload has removed it; the task is checked again */
    }
    if (!command && recipe->commands) {
        parts->words = commands_words(recipe->commands, task);
        return parts->words ? 0 : -1; /* likewise if a reload has changed it */
    }
    if (!command) {
        command = (char *)task->command->data;
        if (recipe->direct) {
            parts->words = words_split(command, task->command->size);
        }
    }

    /* the shell ignores a leading blank, but would take a leading '-' for an option of its own */
    if (command[0] == '-' || command[0] == '+') {
        if (asprintf(&parts->spaced, " %s", command) < 0) {
            parts->spaced = NULL;
            return -1;
        }
        command = parts->spaced;
    }
    parts->shell_words[0] = recipe->shell_name;
    parts->shell_words[1] = "-c";
    parts->shell_words[2] = command;
    return 0;
}

static void parts_free(struct parts *parts)
{
    free(parts->environment);
    free(parts->words);
    free(parts->spaced);
    descriptor_close(&parts->input);
    descriptor_close(&parts->feed);
    for (int end = 0; end < 2; end++) {
        descriptor_close(&parts->output[end]);
        descriptor_close(&parts->error[end]);
        descriptor_close(&parts->verdicts[end]);
    }
}

/* Prepares the parts. Returns NULL, or the text of what failed, with errno. */
static const char *make_parts(struct parts *parts, const struct start *start,
                              const struct start_order *order)
{
    const struct recipe *recipe = start->recipe;
    parts->environment = environment_block(recipe->environment, order->task, &order->limits);
    if (!parts->environment || make_words(parts, recipe, order)) {
        errno = ENOMEM;
        return "cannot prepare the task";
    }
    if (order->input) {
        parts->input = make_input(*order->input);
        if (parts->input < 0) {
            return "cannot give the task its payload";
        }
    }
    bool pipes = order->ends == START_PIPES, shared = recipe->identity->other;
    bool both = pipes && !recipe->config->output.merge;
    if ((order->resident && make_feed(parts, shared)) ||
        (pipes && make_pipe(parts->output, 3, shared)) ||
        (both && make_pipe(parts->error, 3, shared)) ||
        (order->verdicts && make_pipe(parts->verdicts, 4, shared))) {
        return "cannot make a pipe";
    }
    return NULL;
}

/* Returns true if the process executes a listed command. */
static bool is_listed(const struct recipe *recipe, bool check)
{
    return recipe->commands && !line_of(recipe, check)->text;
}

static bool has_directory(const struct task *task)
{
    return task && task->directory;
}

/* Returns the program without which the host cannot run the line, or NULL. With a rule for the exit
 * codes of a shell that cannot execute a program, the shell tells. */
static const char *needed_program(const struct recipe *recipe, bool check)
{
    const struct config_rule *rules = recipe->config->retry.exits.of;
    bool tells = rules[126].kind != CONFIG_RULE_NONE || rules[127].kind != CONFIG_RULE_NONE;
    return tells && !check ? NULL : line_of(recipe, check)->program;
}

/* Describes the process without its parts. A task's own directory may be on any file system, also
 * on one that hangs. */
static struct spawn describe_spawn(const struct recipe *recipe, bool check, const struct task *task)
{
    const struct config_task *config = &recipe->config->task;
    const struct recipe_line *line = line_of(recipe, check);
    bool own = has_directory(task);
    return (struct spawn){
        .shell = is_listed(recipe, check) ? NULL : config->shell,
        .words = line->words,
        .path = config->path,
        .program = needed_program(recipe, check),
        .directory = own ? task->directory->data : recipe->directory,
        .is_home = recipe->is_home && !own,
        .umask = (mode_t)config->umask,
        .allowance = &recipe->allowance,
        .identity = recipe->identity->other || recipe->identity->disarm ? recipe->identity : NULL,
        .no_new_privileges = recipe->no_new_privileges,
        .may_hang = recipe->may_hang || own,
    };
}

/* Without a pipe of its own, stderr is stdout. */
static void set_ends(struct spawn *spawn, const struct parts *parts, enum start_ends ends, int null,
                     bool merge)
{
    switch (ends) {
    case START_PIPES:
        spawn->output = parts->output[1];
        spawn->error = merge ? parts->output[1] : parts->error[1];
        return;
    case START_NULL:
        spawn->output = spawn->error = null;
        return;
    case START_INHERITED:
        spawn->output = STDOUT_FILENO;
        spawn->error = merge ? STDOUT_FILENO : STDERR_FILENO;
        return;
    }
}

void start_describe(const struct recipe *recipe, bool check, const struct task *task,
                    const struct spawn_failure *failure, char *reason, size_t reason_size)
{
    if (!recipe) {
        (void)snprintf(reason, reason_size, "cannot be started: out of memory");
        return;
    }
    struct spawn spawn = describe_spawn(recipe, check, task);
    spawn_describe(&spawn, failure, reason, reason_size);
}

/* Returns true for errors of execve that are not the program's fault. */
static bool is_short_of(int error)
{
    return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE || error == EIO;
}

enum cause start_failure_cause(const struct recipe *recipe, bool check, const struct task *task,
                               const struct spawn_failure *failure)
{
    if (failure->step == SPAWN_LATE) {
        return CAUSE_LEASE_LOST;
    }
    if ((failure->step == SPAWN_EXECUTE && failure->error == E2BIG && task) ||
        (failure->step == SPAWN_DIRECTORY && has_directory(task))) {
        return CAUSE_CANNOT_EXECUTE;
    }
    /* a listed program that is missing concerns only the tasks that name it */
    return failure->step == SPAWN_EXECUTE && failure->error && recipe && is_listed(recipe, check) &&
                   !is_short_of(failure->error)
               ? CAUSE_NO_PROGRAM
               : CAUSE_HOST;
}

int start_task(const struct start *start, const struct start_order *order, struct started *started,
               enum cause *cause, char *reason, size_t reason_size)
{
    struct parts parts = {
        .input = -1, .feed = -1, .output = {-1, -1}, .error = {-1, -1}, .verdicts = {-1, -1}};
    *cause = CAUSE_HOST;
    if (*start->recipe->identity->missing) {
        (void)snprintf(reason, reason_size, "%s", start->recipe->identity->missing);
        return -1;
    }
    const char *what = make_parts(&parts, start, order);
    if (what) {
        (void)snprintf(reason, reason_size, "%s: %s", what, strerror(errno));
        parts_free(&parts);
        return -1;
    }

    struct spawn spawn = describe_spawn(start->recipe, order->check, order->task);
    spawn.shell_words = parts.shell_words;
    spawn.words = parts.words ? parts.words : spawn.words;
    spawn.environment = parts.environment;
    spawn.files = allowance_limits(&start->recipe->allowance, RLIMIT_NOFILE) ? NULL : start->files;
    spawn.cgroup = order->cgroup;
    spawn.signals = start->signals;
    spawn.entry = order->entry;
    spawn.input = parts.input >= 0 ? parts.input : start->null;
    set_ends(&spawn, &parts, order->ends, start->null, start->recipe->config->output.merge);
    spawn.verdicts = order->verdicts ? parts.verdicts[1] : 0;

    struct spawn_failure failure;
    started->pid = spawn_start(&spawn, &started->report, &failure);
    if (started->pid < 0) {
        spawn_describe(&spawn, &failure, reason, reason_size);
        *cause = start_failure_cause(start->recipe, order->check, order->task, &failure);
        parts_free(&parts);
        return -1;
    }

    /* keep the ends that leatd reads from */
    started->output = parts.output[0];
    started->error = parts.error[0];
    started->verdicts = parts.verdicts[0];
    started->input = parts.feed;
    started->home_error = failure.home_error;
    parts.output[0] = parts.error[0] = parts.verdicts[0] = parts.feed = -1;
    parts_free(&parts);
    return 0;
}
