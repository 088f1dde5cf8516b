/*
 * The output of a task from the journal: records of leatd with its id.
 */
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <systemd/sd-journal.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/logs/logs.h"
#include "cli/logs/logs_sender.h"

enum {
    WAIT_US = 500 * 1000, /* between questions to Redis whether the task has ended */
    LAG_MS = 2000,        /* the longest delay until the journal has the record of an end */
    LAG_SHORT_MS = 300,   /* the same for a task that had ended before */
    BATCHES_MOST = 100,   /* batches of a task that are looked for */
};

struct journal {
    sd_journal *handle;
    struct cli *cli;
    struct logs_task *task;
    const struct logs_options *options;
    struct logs_sender *sender;
    struct logs_printer printer;
    int64_t begun_us; /* Unix time; an earlier end may precede a retry of a dead letter */
    bool ended;       /* a record of the task's end was read */
};

static int fail(const char *what, int error)
{
    cli_error("cannot read the journal: %s: %s", what, strerror(-error));
    return EX_IOERR;
}

/* ---- matches */

/* Adds the match FIELD=value and sets *result to 0 or a negative errno, unless it is negative. */
static void add_match(sd_journal *handle, const char *field, const char *value, int *result)
{
    char *match;
    int size = *result >= 0 ? asprintf(&match, "%s=%s", field, value) : -1;

    if (size >= 0) {
        *result = sd_journal_add_match(handle, match, (size_t)size);
        free(match);
    } else if (*result >= 0) {
        *result = -ENOMEM;
    }
}

/* Matches records of the queue with this field. Returns 0 or a negative errno. */
static int match_queue(sd_journal *handle, const struct cli *cli, const char *field,
                       const char *value)
{
    int result = 0;

    add_match(handle, "LEAT_QUEUE", cli->config->queue.name, &result);
    add_match(handle, field, value, &result);
    return result;
}

static int match_task(struct journal *journal)
{
    static const char *const events[] = {"output",     "check-output", "succeeded",
                                         "check-done", "dead",         "cancelled"};
    int result = match_queue(journal->handle, journal->cli, "LEAT_TASK", journal->task->tid);

    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        add_match(journal->handle, "LEAT_EVENT", events[i], &result);
    }
    return result;
}

/* The value of a field of the current record, or empty. It is valid until the next call. */
static struct bytes value_of(sd_journal *handle, const char *field)
{
    const void *data;
    size_t size, name = strlen(field) + 1;

    if (sd_journal_get_data(handle, field, &data, &size) < 0 || size < name) {
        return (struct bytes){"", 0};
    }
    return (struct bytes){(const char *)data + name, size - name};
}

/* Checks the match again: a journal that is rotated meanwhile may return other records. */
static bool names_task(const struct journal *journal)
{
    return bytes_equal(value_of(journal->handle, "LEAT_TASK"), journal->task->tid) &&
           logs_sender_is_leatd(journal->sender, journal->handle);
}

/* Adds matches for the batches of the task. Output of a batch has only the id of its first task;
 * the record of each task's end names the batch. */
static int match_batches(struct journal *journal)
{
    char *batches[BATCHES_MOST];
    size_t count = 0;
    int result = match_task(journal);

    SD_JOURNAL_FOREACH_BACKWARDS(journal->handle)
    {
        bool wanted = count < BATCHES_MOST && names_task(journal);
        struct bytes id = value_of(journal->handle, "LEAT_BATCH_ID");
        char *copy = wanted && id.size > 0 ? strndup(id.data, id.size) : NULL;
        if (copy) {
            batches[count++] = copy;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (result >= 0) {
            result = sd_journal_add_disjunction(journal->handle);
        }
        if (result >= 0) {
            result = match_queue(journal->handle, journal->cli, "LEAT_BATCH_ID", batches[i]);
        }
        add_match(journal->handle, "LEAT_EVENT", "output", &result);
        free(batches[i]);
    }
    return result;
}

/* ---- reading */

static int64_t number_of(struct bytes value)
{
    char text[32];
    int64_t number;

    bytes_copy(value, text, sizeof text);
    return units_parse_integer(text, 0, INT64_MAX, &number) == 0 ? number : -1;
}

static bool is_new(const struct journal *journal)
{
    uint64_t at_us;

    return sd_journal_get_realtime_usec(journal->handle, &at_us) >= 0 &&
           (int64_t)at_us >= journal->begun_us;
}

static bool is_of_task(const struct journal *journal)
{
    return names_task(journal) || (value_of(journal->handle, "LEAT_BATCH_ID").size > 0 &&
                                   logs_sender_is_leatd(journal->sender, journal->handle));
}

/* Returns true if the current record is a line to print. Notes the end of the task. */
static bool is_wanted(struct journal *journal)
{
    struct bytes event;

    if (!is_of_task(journal)) {
        return false;
    }
    event = value_of(journal->handle, "LEAT_EVENT");
    if (!bytes_equal(event, "output") && !bytes_equal(event, "check-output")) {
        journal->ended = !journal->task->known || is_new(journal);
        return false;
    }
    return journal->options->attempt == 0 ||
           number_of(value_of(journal->handle, "LEAT_ATTEMPT")) == journal->options->attempt;
}

/* Prints the current record. Fields are copied, since the journal may unmap one while it reads the
 * next. */
static int print_record(struct journal *journal)
{
    sd_journal *handle = journal->handle;
    struct bytes text = value_of(handle, "MESSAGE"), host;
    struct logs_line line = {.attempt = -1, .at_us = -1};
    struct buffer copy = BUFFER_INIT;
    uint64_t at_us;
    char name[256];
    int status;

    if (buffer_append(&copy, text.data, text.size) != 0) {
        return cli_no_memory();
    }
    host = value_of(handle, "_HOSTNAME");
    bytes_copy(host, name, sizeof name);
    line.attempt = number_of(value_of(handle, "LEAT_ATTEMPT"));
    line.is_error = bytes_equal(value_of(handle, "LEAT_STREAM"), "stderr");
    line.cut = bytes_equal(value_of(handle, "LEAT_CUT"), "1");
    if (sd_journal_get_realtime_usec(handle, &at_us) >= 0) {
        line.at_us = (int64_t)at_us;
    }
    line.text = (struct bytes){copy.data ? copy.data : "", copy.size};
    line.host = bytes_of(name);
    status = logs_print(&journal->printer, &line);
    buffer_free(&copy);
    return status;
}

/* Moves to the record before the first one to print. */
static int seek(struct journal *journal)
{
    int64_t left = journal->options->lines;
    int result;

    if (left == LOGS_ALL) {
        return sd_journal_seek_head(journal->handle);
    }
    result = sd_journal_seek_tail(journal->handle);
    while (result >= 0 && (result = sd_journal_previous(journal->handle)) > 0) {
        if (left == 0) {
            return 0;
        }
        left -= is_wanted(journal);
    }
    return result < 0 ? result : sd_journal_seek_head(journal->handle);
}

static int print_rest(struct journal *journal)
{
    int status = EX_OK, result;

    while (status == EX_OK && (result = sd_journal_next(journal->handle)) > 0) {
        if (is_wanted(journal)) {
            status = print_record(journal);
        }
    }
    if (status == EX_OK && result < 0) {
        return fail("next record", result);
    }
    return status == EX_OK ? cli_flush() : status;
}

/* Prints records until one tells of the task's end, for so long at most. Each wait ends with any
 * change of the journal. */
static int print_late(struct journal *journal, int64_t most_ms)
{
    int64_t until_ns = clock_boot_ns() + most_ms * CLOCK_NS_PER_MS, left_ns;
    int status = EX_OK, result;

    while (status == EX_OK && !journal->ended && (left_ns = until_ns - clock_boot_ns()) > 0) {
        result = sd_journal_wait(journal->handle, (uint64_t)(left_ns / 1000 + 1));
        status = result < 0 ? fail("wait", result) : print_rest(journal);
    }
    return status;
}

static int follow(struct journal *journal)
{
    int64_t lag_ms = LAG_SHORT_MS;
    int status = EX_OK, result;

    while (status == EX_OK && !journal->ended && !logs_has_ended(journal->cli, journal->task)) {
        lag_ms = LAG_MS;
        if (journal->task->elsewhere && journal->printer.printed == 0 &&
            !journal->options->directory) {
            return LOGS_ELSEWHERE;
        }
        result = sd_journal_wait(journal->handle, WAIT_US);
        if (result < 0) {
            return fail("wait", result);
        }
        status = print_rest(journal);
    }
    /* Redis knows the end before journald has written all records */
    return status == EX_OK ? print_late(journal, lag_ms) : status;
}

/* ---- no output */

/* Prints an error if there is no output because the journal is not readable, and notes it if there
 * is none although the queue's output goes there. Returns the exit status. */
static int explain_nothing(const struct cli *cli, struct logs_task *task,
                           const struct logs_options *options)
{
    glob_t found = {0};
    bool any = false, unreadable = false;

    if (options->directory) {
        return LOGS_NOTHING;
    }
    /* without memory to look, nothing is explained */
    any = glob("/{var,run}/log/journal/*{,/system.journal}", GLOB_BRACE, NULL, &found) == 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        unreadable = unreadable || access(found.gl_pathv[i], R_OK) != 0;
    }
    globfree(&found);
    if (unreadable) {
        cli_error(
            "cannot read this host's journal: permission denied; run as root, or join the group "
            "systemd-journal or adm");
        return EX_NOPERM;
    }
    task->no_journal = !any && cli->config->output.to == CONFIG_OUTPUT_JOURNAL;
    return LOGS_NOTHING;
}

/* Returns 0 or a negative errno. */
static int open_handle(const struct logs_options *options, sd_journal **handle)
{
    int result = options->directory ? sd_journal_open_directory(handle, options->directory, 0)
                                    : sd_journal_open(handle, SD_JOURNAL_LOCAL_ONLY);

    if (result < 0) {
        *handle = NULL;
    }
    return result;
}

/* Returns the id of the newest task with that label, for free(), or NULL. Records of ends have
 * labels. */
static char *find_label(sd_journal *handle, const struct cli *cli, const struct logs_sender *sender,
                        const char *label)
{
    char *tid = NULL;
    int result = match_queue(handle, cli, "LEAT_ID", label);

    if (result >= 0) {
        result = sd_journal_seek_tail(handle);
    }
    while (result >= 0 && !tid && (result = sd_journal_previous(handle)) > 0) {
        struct bytes value = value_of(handle, "LEAT_TASK");
        bool is_found = value.size > 0 && logs_sender_is_leatd(sender, handle);
        tid = is_found ? strndup(value.data, value.size) : NULL;
    }
    return tid;
}

void logs_resolve_label(const struct cli *cli, struct logs_task *task,
                        const struct logs_options *options)
{
    struct logs_sender *sender = logs_sender_new(cli->config, !options->directory);
    sd_journal *handle = NULL;
    char *tid = NULL;

    /* logs_show_journal reports a journal that cannot be opened, and a lack of memory */
    if (sender && open_handle(options, &handle) >= 0) {
        tid = find_label(handle, cli, sender, task->tid);
    }
    if (tid) {
        free(task->tid);
        task->tid = tid;
        task->found = true;
    }
    sd_journal_close(handle);
    logs_sender_free(sender);
}

static int open_journal(struct journal *journal)
{
    const char *directory = journal->options->directory;
    int result = open_handle(journal->options, &journal->handle);

    if (result < 0) {
        cli_error("cannot open %s: %s", directory ? directory : "the journal",
                  result == -ELIBACC ? "libsystemd cannot be loaded" : strerror(-result));
        return result == -EACCES || result == -EPERM ? EX_NOPERM : EX_NOINPUT;
    }
    /* no limit: print whole lines */
    result = sd_journal_set_data_threshold(journal->handle, 0);
    if (result >= 0) {
        result = match_batches(journal);
    }
    if (result >= 0) {
        result = seek(journal);
    }
    return result < 0 ? fail("search for the task", result) : EX_OK;
}

int logs_show_journal(struct cli *cli, struct logs_task *task, const struct logs_options *options)
{
    struct journal journal = {.cli = cli,
                              .task = task,
                              .options = options,
                              .sender = logs_sender_new(cli->config, !options->directory),
                              .begun_us = clock_wall_ms() * 1000};
    int status = journal.sender ? open_journal(&journal) : cli_no_memory();

    if (status == EX_OK) {
        logs_printer_init(&journal.printer, options);
        status = print_rest(&journal);
        if (status == EX_OK && options->follow) {
            status = follow(&journal);
        }
        logs_print_end(&journal.printer);
    }
    sd_journal_close(journal.handle);
    logs_sender_free(journal.sender);
    if (status == EX_OK && journal.printer.printed == 0 && options->lines != 0) {
        status = explain_nothing(cli, task, options);
    }
    return status;
}
