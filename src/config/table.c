#include "config/table.h"

#include <string.h>
#include <syslog.h>

#include "config/suggest.h"

#define DAY_MS INT64_C(86400000)
#define HOUR_MS INT64_C(3600000)
#define SIZE_MOST (INT64_C(1) << 60)

static const struct table_word automatic[] = {{"auto", 0}, {NULL, 0}};
static const struct table_word none[] = {{"none", 0}, {NULL, 0}};
static const struct table_word inherited[] = {{"inherit", CONFIG_INHERIT}, {NULL, 0}};
static const struct table_word unlimited[] = {
    {"none", CONFIG_UNLIMITED},
    {"inherit", CONFIG_INHERIT},
    {NULL, 0},
};
#define IO_CLASS(number, level) (((number) << 13) | (level))
static const struct table_word io_classes[] = {
    {"inherit", CONFIG_INHERIT},
    {"idle", IO_CLASS(3, 0)},
    {"best-effort", IO_CLASS(2, 4)},
    {"best-effort 0", IO_CLASS(2, 0)},
    {"best-effort 1", IO_CLASS(2, 1)},
    {"best-effort 2", IO_CLASS(2, 2)},
    {"best-effort 3", IO_CLASS(2, 3)},
    {"best-effort 4", IO_CLASS(2, 4)},
    {"best-effort 5", IO_CLASS(2, 5)},
    {"best-effort 6", IO_CLASS(2, 6)},
    {"best-effort 7", IO_CLASS(2, 7)},
    {"realtime", IO_CLASS(1, 4)},
    {"realtime 0", IO_CLASS(1, 0)},
    {"realtime 1", IO_CLASS(1, 1)},
    {"realtime 2", IO_CLASS(1, 2)},
    {"realtime 3", IO_CLASS(1, 3)},
    {"realtime 4", IO_CLASS(1, 4)},
    {"realtime 5", IO_CLASS(1, 5)},
    {"realtime 6", IO_CLASS(1, 6)},
    {"realtime 7", IO_CLASS(1, 7)},
    {NULL, 0},
};
static const struct table_word libraries[] = {
    {"auto", CONFIG_LIBRARY_AUTO},
    {"never", CONFIG_LIBRARY_NEVER},
    {NULL, 0},
};
static const struct table_word inputs[] = {
    {"payload", CONFIG_STDIN_PAYLOAD},
    {"null", CONFIG_STDIN_NULL},
    {NULL, 0},
};
static const struct table_word formats[] = {
    {"lines", CONFIG_FORMAT_LINES},
    {"nul", CONFIG_FORMAT_NUL},
    {"json", CONFIG_FORMAT_JSON},
    {NULL, 0},
};
static const struct table_word jitters[] = {
    {"full", CONFIG_JITTER_FULL},
    {"none", CONFIG_JITTER_NONE},
    {NULL, 0},
};
static const struct table_word lane_origins[] = {
    {"none", CONFIG_LANE_FROM_NONE},
    {"suffix", CONFIG_LANE_FROM_SUFFIX},
    {NULL, 0},
};
static const struct table_word unique_parts[] = {
    {"none", CONFIG_UNIQUE_NONE},
    {"item", CONFIG_UNIQUE_ITEM},
    {NULL, 0},
};
static const struct table_word sinks[] = {
    {"journal", CONFIG_OUTPUT_JOURNAL},
    {"file", CONFIG_OUTPUT_FILE},
    {"discard", CONFIG_OUTPUT_DISCARD},
    {"inherit", CONFIG_OUTPUT_INHERIT},
    {NULL, 0},
};
static const struct table_word at_max[] = {
    {"truncate", CONFIG_AT_MAX_TRUNCATE},
    {"kill", CONFIG_AT_MAX_KILL},
    {NULL, 0},
};
static const struct table_word targets[] = {
    {"auto", CONFIG_LOG_AUTO},
    {"journal", CONFIG_LOG_JOURNAL},
    {"stderr", CONFIG_LOG_STDERR},
    {NULL, 0},
};
static const struct table_word levels[] = {
    {"error", LOG_ERR}, {"warning", LOG_WARNING}, {"notice", LOG_NOTICE},
    {"info", LOG_INFO}, {"debug", LOG_DEBUG},     {NULL, 0},
};

/* clang-format off
 * NOLINTBEGIN(bugprone-macro-parentheses): names of members */
#define MEMBER(section, member)                                                                    \
    .offset = offsetof(struct config, section.member),                                             \
    .size = sizeof(((struct config *)NULL)->section.member)
#define KEY(section, name, type, value, reload, text)                                              \
    .key = {section, name, type, value, reload, text}
/* NOLINTEND(bugprone-macro-parentheses) */

const struct table_row table[TABLE_ROWS] = {
    {KEY("redis", "host", "text", "127.0.0.1", false, "Host name or address of the Redis server."),
     .type = TABLE_TEXT, MEMBER(redis, host)},
    {KEY("redis", "port", "integer", "6379", false, "TCP port of the Redis server."),
     .type = TABLE_INTEGER, MEMBER(redis, port), .low = 1, .high = 65535},
    {KEY("redis", "socket", "path", "", false,
         "Unix socket of the Redis server, instead of host and port."),
     .type = TABLE_PATH, MEMBER(redis, socket)},
    {KEY("redis", "user", "text", "", true,
         "ACL user to log in as; without it Redis's default user."),
     .type = TABLE_TEXT, MEMBER(redis, user)},
    {KEY("redis", "password", "free text", "", true,
         "The password itself; a file or a credential is safer."),
     .type = TABLE_FREE, MEMBER(redis, password)},
    {KEY("redis", "password_file", "path", "", true,
         "File whose content is the password; not accessible to all users."),
     .type = TABLE_PATH, MEMBER(redis, password_file)},
    {KEY("redis", "password_credential", "name", "", true,
         "Name of the systemd credential (LoadCredential=) that holds the password."),
     .type = TABLE_NAME, MEMBER(redis, password_credential)},
    {KEY("redis", "db", "integer", "0", false, "Number of the database."), .type = TABLE_INTEGER,
     MEMBER(redis, db), .low = 0, .high = 65535},
    {KEY("redis", "connect_timeout", "duration", "5s", true,
         "How long connecting and logging in may take."),
     .type = TABLE_DURATION, MEMBER(redis, connect_timeout_ms), .low = 100, .high = HOUR_MS},
    {KEY("redis", "command_timeout", "duration", "10s", true,
         "How long an answer may take before the connection counts as dead."),
     .type = TABLE_DURATION, MEMBER(redis, command_timeout_ms), .low = 100, .high = HOUR_MS},
    {KEY("redis", "keepalive", "duration or none", "60s", true,
         "TCP keepalive: how long a connection is silent before it is probed."),
     .type = TABLE_DURATION, MEMBER(redis, keepalive_s), .low = 1000, .high = 9 * HOUR_MS,
     .scale = 1000, .words = none},
    {KEY("redis", "backoff_base", "duration", "100ms", true,
         "Longest pause before the first reconnect; it doubles with each further failure."),
     .type = TABLE_DURATION, MEMBER(redis, backoff_base_ms), .low = 10, .high = HOUR_MS},
    {KEY("redis", "backoff_cap", "duration", "10s", true,
         "Longest pause between any two reconnects."),
     .type = TABLE_DURATION, MEMBER(redis, backoff_cap_ms), .low = 10, .high = HOUR_MS},

    {KEY("queue", "name", "name", "", false, "Name of the queue; required."), .type = TABLE_NAME,
     MEMBER(queue, name)},
    {KEY("queue", "stream", "text", "", false, "Key of the stream; without it the queue's name."),
     .type = TABLE_TEXT, MEMBER(queue, stream)},
    {KEY("queue", "group", "name", "leat", false, "Name of the stream's consumer group."),
     .type = TABLE_NAME, MEMBER(queue, group)},
    {KEY("queue", "concurrency", "integer or auto", "auto", true,
         "How many tasks run at a time; auto: one for each CPU."),
     .type = TABLE_INTEGER, MEMBER(queue, concurrency), .low = 1, .high = 4096, .words = automatic},
    {KEY("queue", "lease", "duration", "60s", false,
         "How long a task stays a worker's own without a renewal; one value for the whole queue."),
     .type = TABLE_DURATION, MEMBER(queue, lease_ms), .low = 1000, .high = DAY_MS},
    {KEY("queue", "scan", "duration or auto", "auto", true,
         "How often to look for expired leases of others; auto: a quarter of the lease."),
     .type = TABLE_DURATION, MEMBER(queue, scan_ms), .low = 100, .high = DAY_MS,
     .words = automatic},
    {KEY("queue", "max_length", "integer or none", "none", false,
         "How many tasks may wait; enqueueing more is refused."),
     .type = TABLE_INTEGER, MEMBER(queue, max_length), .low = 1, .high = INT64_C(1000000000000),
     .words = none},
    {KEY("queue", "max_crashes", "integer", "3", false,
         "With how many lost workers behind it a task becomes a dead letter."),
     .type = TABLE_INTEGER, MEMBER(queue, max_crashes), .low = 1, .high = 1000},
    {KEY("queue", "load_library", "auto or never", "auto", true,
         "Whether the worker loads leat's functions into Redis; never: \"leat init\" does."),
     .type = TABLE_CHOICE, MEMBER(queue, load_library), .words = libraries},

    {KEY("limits", "rate", "rate or none", "none", false,
         "How many tasks all workers together may start, such as 20/s."),
     .type = TABLE_RATE, MEMBER(limits, rate)},
    {KEY("limits", "burst", "integer", "1", false,
         "How many of them may start at once after a pause."),
     .type = TABLE_INTEGER, MEMBER(limits, burst), .low = 1, .high = 1000000000},
    {KEY("limits", "open_files", "integer, none or inherit", "inherit", true,
         "How many files each process of a task may have open."),
     .type = TABLE_INTEGER, MEMBER(limits, open_files), .low = 4, .high = 1 << 30,
     .words = unlimited},
    {KEY("limits", "core", "size, none or inherit", "inherit", true,
         "How large a core file of a task may be; 0: none is written."),
     .type = TABLE_SIZE, MEMBER(limits, core), .low = 0, .high = SIZE_MOST, .words = unlimited},
    {KEY("limits", "cpu_time", "duration, none or inherit", "inherit", true,
         "How much CPU time each process of a task may use; then SIGXCPU, a second later SIGKILL."),
     .type = TABLE_DURATION, MEMBER(limits, cpu_time_s), .low = 1000, .high = 365 * DAY_MS,
     .scale = 1000, .words = unlimited},
    {KEY("limits", "file_size", "size, none or inherit", "inherit", true,
         "How large a file may get that a task writes."),
     .type = TABLE_SIZE, MEMBER(limits, file_size), .low = 0, .high = SIZE_MOST,
     .words = unlimited},
    {KEY("limits", "processes", "integer, none or inherit", "inherit", true,
         "How many processes and threads the tasks' user may have, those of others included."),
     .type = TABLE_INTEGER, MEMBER(limits, processes), .low = 1, .high = 1 << 30,
     .words = unlimited},
    {KEY("limits", "stack", "size, none or inherit", "inherit", true,
         "How large the stack of each process of a task may get."),
     .type = TABLE_SIZE, MEMBER(limits, stack), .low = 64 << 10, .high = SIZE_MOST,
     .words = unlimited},
    {KEY("limits", "locked_memory", "size, none or inherit", "inherit", true,
         "How much memory each process of a task may lock."),
     .type = TABLE_SIZE, MEMBER(limits, locked_memory), .low = 0, .high = SIZE_MOST,
     .words = unlimited},
    {KEY("limits", "address_space", "size, none or inherit", "inherit", true,
         "How large the address space of each process of a task may get."),
     .type = TABLE_SIZE, MEMBER(limits, address_space), .low = 1 << 20, .high = SIZE_MOST,
     .words = unlimited},

    {KEY("lanes", "NAME", "lane", "", false,
         "Weight, how many tasks may run, rate and burst of the lane with that name."),
     .type = TABLE_LANES, MEMBER(lanes, list)},

    {KEY("task", "command", "free text", "", true,
         "Shell line that runs every task; without it tasks bring their own."),
     .type = TABLE_FREE, MEMBER(task, command)},
    {KEY("task", "shell", "path", "/bin/sh", true, "Program that runs the shell line, with -c."),
     .type = TABLE_PATH, MEMBER(task, shell)},
    {KEY("task", "directory", "path", "/", true, "Working directory of tasks."), .type = TABLE_PATH,
     MEMBER(task, directory)},
    {KEY("task", "user", "text", "", true,
         "User that tasks run as, by name or number; without it the daemon's."),
     .type = TABLE_TEXT, MEMBER(task, user)},
    {KEY("task", "group", "text", "", true,
         "Group that tasks run with, by name or number; without it the user's."),
     .type = TABLE_TEXT, MEMBER(task, group)},
    {KEY("task", "no_new_privileges", "boolean", "yes", true,
         "Whether programs such as sudo get no more rights in a task than the task has."),
     .type = TABLE_BOOLEAN, MEMBER(task, no_new_privileges)},
    {KEY("task", "umask", "octal", "022", true, "File mode creation mask of tasks."),
     .type = TABLE_MODE, MEMBER(task, umask), .low = 0, .high = 0777},
    {KEY("task", "path", "paths", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
         true, "The PATH of tasks."),
     .type = TABLE_PATHS, MEMBER(task, path)},
    {KEY("task", "environment", "NAME=VALUE, repeatable", "", true,
         "A variable for the environment of tasks; a line for each."),
     .type = TABLE_LIST, MEMBER(task, environment)},
    {KEY("task", "timeout", "duration or none", "10m", true,
         "How long a task may run before it is stopped and counts as failed."),
     .type = TABLE_DURATION, MEMBER(task, timeout_ms), .low = 100, .high = 365 * DAY_MS,
     .words = none},
    {KEY("task", "kill_grace", "duration", "10s", true,
         "Time between SIGTERM and SIGKILL for a task that has to stop."),
     .type = TABLE_DURATION, MEMBER(task, kill_grace_ms), .low = 0, .high = HOUR_MS},
    {KEY("task", "stdin", "payload or null", "payload", true,
         "What tasks read from standard input: their payload, or nothing."),
     .type = TABLE_CHOICE, MEMBER(task, stdin_from), .words = inputs},
    {KEY("task", "result_ttl", "duration or none", "none", true,
         "How long the results of tasks are kept that do not say it themselves."),
     .type = TABLE_DURATION, MEMBER(task, result_ttl_ms), .low = 1000, .high = 365 * DAY_MS,
     .words = none},
    {KEY("task", "batch", "integer", "1", true,
         "How many tasks one process of the command gets at the most; 1: each has its own."),
     .type = TABLE_INTEGER, MEMBER(task, batch), .low = 1, .high = CONFIG_BATCH_MOST},
    {KEY("task", "batch_wait", "duration", "50ms", true,
         "How long the first task of a batch waits for others to fill it."),
     .type = TABLE_DURATION, MEMBER(task, batch_wait_ms), .low = 0, .high = HOUR_MS},
    {KEY("task", "batch_format", "lines, nul or json", "lines", true,
         "How tasks stand in a batch's standard input."),
     .type = TABLE_CHOICE, MEMBER(task, batch_format), .words = formats},
    {KEY("task", "check", "free text", "", true,
         "Shell line that says whether a task whose worker was lost had been done after all."),
     .type = TABLE_FREE, MEMBER(task, check)},
    {KEY("task", "check_timeout", "duration", "30s", true, "How long the check may take."),
     .type = TABLE_DURATION, MEMBER(task, check_timeout_ms), .low = 100, .high = DAY_MS},
    {KEY("task", "nice", "integer or inherit", "inherit", true,
         "Scheduling priority of tasks, from -20 (first) to 19 (last)."),
     .type = TABLE_INTEGER, MEMBER(task, nice), .low = -20, .high = 19, .words = inherited},
    {KEY("task", "ionice", "class and level, or inherit", "inherit", true,
         "I/O priority of tasks: idle, \"best-effort 0\" (first) to 7, or realtime likewise."),
     .type = TABLE_CHOICE, MEMBER(task, ionice), .words = io_classes},
    {KEY("task", "oom_score_adj", "integer or inherit", "inherit", true,
         "Which processes the kernel kills first without memory: -1000 (never) to 1000 (first)."),
     .type = TABLE_INTEGER, MEMBER(task, oom_score_adj), .low = -1000, .high = 1000,
     .words = inherited},

    {KEY("retry", "max_attempts", "integer", "5", true,
         "How often a task is tried before it becomes a dead letter."),
     .type = TABLE_INTEGER, MEMBER(retry, max_attempts), .low = 1, .high = 100000},
    {KEY("retry", "base", "duration", "2s", true, "Pause before the second attempt."),
     .type = TABLE_DURATION, MEMBER(retry, base_ms), .low = 0, .high = 7 * DAY_MS},
    {KEY("retry", "factor", "number", "2", true,
         "By how much the pause grows with each further attempt."),
     .type = TABLE_NUMBER, MEMBER(retry, factor), .low = 1, .high = 100},
    {KEY("retry", "cap", "duration", "10m", true, "Longest pause between two attempts."),
     .type = TABLE_DURATION, MEMBER(retry, cap_ms), .low = 0, .high = 30 * DAY_MS},
    {KEY("retry", "jitter", "full or none", "full", true,
         "full: the pause is a random part of what was computed; none: all of it."),
     .type = TABLE_CHOICE, MEMBER(retry, jitter), .words = jitters},
    {KEY("retry", "permanent", "exit codes or none", "none", true,
         "Exit codes after which a task becomes a dead letter at once, such as \"64-78, 100\"."),
     .type = TABLE_CODES, MEMBER(retry, permanent)},
    {KEY("retry", "success", "exit codes", "0", true,
         "Exit codes that count as success; 0 always does."),
     .type = TABLE_CODES, MEMBER(retry, success)},

    {KEY("dead", "output_tail", "size", "4K", true,
         "How much of the end of stdout, and of stderr, a dead letter keeps."),
     .type = TABLE_SIZE, MEMBER(dead, output_tail), .low = 0, .high = 1 << 20},
    {KEY("dead", "keep", "duration or none", "none", false,
         "How long dead letters are kept before they are dropped; one value for the whole queue."),
     .type = TABLE_DURATION, MEMBER(dead, keep_ms), .low = 1000, .high = 3650 * DAY_MS,
     .words = none},
    {KEY("dead", "keep_number", "integer or none", "none", false,
         "How many dead letters are kept, the newest; one value for the whole queue."),
     .type = TABLE_INTEGER, MEMBER(dead, keep_number), .low = 1, .high = INT64_C(1000000000000),
     .words = none},
    {KEY("dead", "notify", "free text", "", true,
         "Shell line that one worker runs for each dead letter; without it nobody is told."),
     .type = TABLE_FREE, MEMBER(dead, notify)},
    {KEY("dead", "notify_jobs", "integer", "4", true,
         "How many of them this worker runs at a time."),
     .type = TABLE_INTEGER, MEMBER(dead, notify_jobs), .low = 1, .high = 64},
    {KEY("dead", "notify_timeout", "duration", "30s", true,
         "How long each of them may run before it is stopped."),
     .type = TABLE_DURATION, MEMBER(dead, notify_timeout_ms), .low = 100, .high = HOUR_MS},

    {KEY("intake", "lists", "texts", "", true,
         "Keys of Redis lists whose items are taken in as tasks, the tail first."),
     .type = TABLE_WORDS, MEMBER(intake, lists)},
    {KEY("intake", "prefix", "text", "", true,
         "Lists whose keys begin so are taken in too, and looked for by SCAN."),
     .type = TABLE_TEXT, MEMBER(intake, prefix)},
    {KEY("intake", "field", "name", "payload", true, "The field of the task that an item becomes."),
     .type = TABLE_NAME, MEMBER(intake, field)},
    {KEY("intake", "lane_from", "none or suffix", "none", true,
         "suffix: what follows the prefix in a list's key is the lane of its tasks."),
     .type = TABLE_CHOICE, MEMBER(intake, lane_from), .words = lane_origins},
    {KEY("intake", "unique", "none or item", "none", true,
         "item: an item that equals one in the queue becomes no further task."),
     .type = TABLE_CHOICE, MEMBER(intake, unique), .words = unique_parts},
    {KEY("intake", "scan", "duration", "5s", true,
         "How often new lists are looked for, and all lists in case a change was missed."),
     .type = TABLE_DURATION, MEMBER(intake, scan_ms), .low = 100, .high = DAY_MS},

    {KEY("output", "to", "journal, file, discard or inherit", "journal", true,
         "Where goes what tasks write: lines to the log, a file for each task, nowhere, or "
         "straight on."),
     .type = TABLE_CHOICE, MEMBER(output, to), .words = sinks},
    {KEY("output", "directory", "path", "", true,
         "The folder of files, for to = file; without it $LOGS_DIRECTORY/QUEUE."),
     .type = TABLE_PATH, MEMBER(output, directory)},
    {KEY("output", "max_line", "size", "8K", true, "Longer lines become several records."),
     .type = TABLE_SIZE, MEMBER(output, max_line), .low = 64, .high = 1 << 20},
    {KEY("output", "max_output", "size or none", "none", true,
         "How much a task may write in an attempt; its own max_output can only be less."),
     .type = TABLE_SIZE, MEMBER(output, max_output), .low = 1, .high = INT64_C(1) << 50,
     .words = none},
    {KEY("output", "at_max", "truncate or kill", "truncate", true,
         "What becomes of one that writes more: the rest is dropped, or the task is stopped."),
     .type = TABLE_CHOICE, MEMBER(output, at_max), .words = at_max},
    {KEY("output", "rate", "size or none", "2M", true,
         "How much of a task's output is taken in a second; one that writes more waits."),
     .type = TABLE_SIZE, MEMBER(output, rate), .low = 1024, .high = INT64_C(1) << 40,
     .words = none},

    {KEY("log", "target", "auto, journal or stderr", "auto", true,
         "Where records go; auto: the journal if stderr is connected to it, else stderr."),
     .type = TABLE_CHOICE, MEMBER(log, target), .words = targets},
    {KEY("log", "level", "error, warning, notice, info or debug", "info", true,
         "The least important records that are still written."),
     .type = TABLE_CHOICE, MEMBER(log, level), .words = levels},
    {KEY("log", "started", "boolean", "no", true,
         "Whether the start of a task is logged too, not only its end."),
     .type = TABLE_BOOLEAN, MEMBER(log, started)},

    {KEY("shutdown", "drain", "duration", "90s", true,
         "How long running tasks may go on when the service stops, before they are handed back."),
     .type = TABLE_DURATION, MEMBER(shutdown, drain_ms), .low = 0, .high = DAY_MS},
};
/* clang-format on */

const struct table_row *table_find(const char *section, const char *name)
{
    for (size_t i = 0; i < TABLE_ROWS; i++)
        if (strcmp(table[i].key.section, section) == 0 &&
            (table[i].type == TABLE_LANES || strcmp(table[i].key.name, name) == 0))
            return &table[i];
    return NULL;
}

size_t table_index(const struct table_row *row)
{
    return (size_t)(row - table);
}

bool table_has_section(const char *section)
{
    for (size_t i = 0; i < TABLE_ROWS; i++)
        if (strcmp(table[i].key.section, section) == 0)
            return true;
    return false;
}

const struct table_row *table_nearest(const char *section, const char *name)
{
    const struct table_row *nearest = NULL;
    size_t best = SIZE_MAX;

    /* among equals, that of one's own section */
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        bool own = strcmp(table[i].key.section, section) == 0;
        size_t badness = suggest_badness(name, table[i].key.name);

        if (table[i].type == TABLE_LANES)
            continue;
        if (badness < best || (badness == best && own && nearest != NULL)) {
            best = badness;
            nearest = &table[i];
        }
    }
    return nearest;
}

const char *table_nearest_section(const char *section)
{
    const char *nearest = NULL;
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < TABLE_ROWS; i++) {
        size_t badness = suggest_badness(section, table[i].key.section);

        if (badness < best) {
            best = badness;
            nearest = table[i].key.section;
        }
    }
    return nearest;
}
