/*
 * leat try: hands records to the queue's resident command in the terminal, and shows its reports.
 * Needs no Redis.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/escape.h"
#include "base/process/descriptor.h"
#include "cli/enqueue/draft.h"
#include "cli/lib/cli.h"
#include "queue/batch.h"

static const char help[] =
    "Usage: leat try [OPTION]... [--] PAYLOAD...\n"
    "Start the queue's resident command ([task] resident = yes) here, hand it a\n"
    "record for each PAYLOAD, one after the other, and show what it reports. Its\n"
    "output goes to the terminal. Redis is not used, and nothing is added to the\n"
    "queue.\n"
    "\n"
    "Options:\n"
    "  --field NAME=VALUE  add a field to each record; may be repeated\n"
    "  -q, -c, -h          see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails try a.jpg b.jpg\n"
    "  leat -c ./thumbnails.ini try --field size=100 a.jpg\n"
    "\n"
    "Exit codes:\n"
    "  0   it has reported success for each record\n"
    "  1   it has not\n"
    "  64  wrong usage\n"
    "  65  leatd would refuse the task\n"
    "  71  the command cannot be started\n"
    "  78  the configuration is wrong, or the queue has no resident command\n";

enum { FAILED = 1, DAY_MS = 24 * 60 * 60 * 1000 };

#define FOREVER_MS (INT64_C(365) * DAY_MS)

/* The process, and the line of descriptor 3 that is being read. */
struct trial {
    const struct config *config;
    pid_t pid;
    int records, reports; /* leat's ends of the pipes */
    bool is_ready;        /* and has reported each record so far */
    char line[BATCH_LINE_MOST];
    size_t size;
};

/* ---- the process ---- */

/* Sets the variables that are the same for all tasks, and enters the directory. Returns false after
 * printing the error. */
static bool prepare(const struct config *config)
{
    const struct config_task *task = &config->task;
    char batch[24];
    int failed = setenv("PATH", task->path, 1) | setenv("SHELL", task->shell, 1) |
                 setenv("LEAT_QUEUE", config->queue.name, 1);

    for (char **entry = task->environment; entry && *entry; entry++) {
        failed |= putenv(*entry);
    }
    (void)snprintf(batch, sizeof batch, "%lld", (long long)task->batch);
    failed |= setenv("LEAT_BATCH", batch, 1);
    if (failed) {
        cli_error("cannot prepare the command: %s", strerror(errno));
        return false;
    }
    if (task->directory && chdir(task->directory) < 0) {
        cli_error("cannot change to directory %s: %s", task->directory, strerror(errno));
        return false;
    }
    return true;
}

/* Becomes the command. Descriptors 0 and 3 are its ends of the pipes. Writes a byte to `faults` if
 * that fails. */
static _Noreturn void become(const struct config *config, int records, int reports, int faults)
{
    const struct config_task *task = &config->task;

    records = descriptor_above(records, 4);
    reports = descriptor_above(reports, 4);
    faults = descriptor_above(faults, 4);
    if (prepare(config)) {
        (void)signal(SIGPIPE, SIG_DFL);
        if (records >= 0 && reports >= 0 && faults >= 0 && dup2(records, STDIN_FILENO) >= 0 &&
            dup2(reports, 3) >= 0) {
            (void)execl(task->shell, task->shell, "-c", task->command, (char *)NULL);
        }
        cli_error("%s: cannot be executed: %s", task->shell, strerror(errno));
    }
    (void)!write(faults, "", 1);
    _exit(EX_OSERR);
}

static int start(struct trial *trial)
{
    int records[2] = {-1, -1}, reports[2] = {-1, -1}, faults[2] = {-1, -1};
    char fault;
    bool is_started;

    if (pipe2(records, O_CLOEXEC) == 0 && pipe2(reports, O_CLOEXEC) == 0 &&
        pipe2(faults, O_CLOEXEC) == 0) {
        trial->pid = fork();
        if (trial->pid == 0) {
            become(trial->config, records[0], reports[1], faults[1]);
        }
    }
    trial->records = records[1];
    trial->reports = reports[0];
    descriptor_close(&records[0]);
    descriptor_close(&reports[1]);
    descriptor_close(&faults[1]);
    if (trial->pid < 0) {
        cli_error("the command cannot be started: %s", strerror(errno));
    }
    /* the pipe ends without a byte when the command is executed */
    is_started = trial->pid > 0 && descriptor_read(faults[0], &fault, 1) == 0;
    descriptor_close(&faults[0]);
    return is_started ? EX_OK : EX_OSERR;
}

/* ---- reports ---- */

/* Prints a line of descriptor 3. */
static void show(const char *line, size_t size, const char *remark)
{
    struct buffer text = BUFFER_INIT;

    if (escape_append(&text, line, size) == 0) {
        (void)fprintf(stderr, "descriptor 3: %.*s%s\n", (int)text.size, text.data ? text.data : "",
                      remark);
    }
    buffer_free(&text);
}

/* Reads the next line, without its newline, into trial->line. Returns its length; or -1 with an
 * error at the end of the stream, or after `until_ns`. */
static ssize_t read_line(struct trial *trial, int64_t until_ns)
{
    trial->size = 0;
    while (trial->size < sizeof trial->line) {
        int64_t left_ms = (until_ns - clock_boot_ns()) / CLOCK_NS_PER_MS;
        struct pollfd ready = {.fd = trial->reports, .events = POLLIN};
        int wait_ms = left_ms > DAY_MS ? DAY_MS : left_ms > 0 ? (int)left_ms : 0;

        if (poll(&ready, 1, wait_ms) == 0) {
            cli_error("the command has written nothing on descriptor 3 in time; see RESIDENT "
                      "PROCESSES in leatd(8)");
            trial->is_ready = false;
            return -1;
        }
        ssize_t size = read(trial->reports, &trial->line[trial->size], 1);
        if (size == 0 || (size < 0 && errno != EINTR)) {
            cli_error("the command has closed descriptor 3, or has ended");
            trial->is_ready = false;
            return -1;
        }
        if (size > 0 && trial->line[trial->size] == '\n') {
            return (ssize_t)trial->size;
        }
        trial->size += size > 0;
    }
    return (ssize_t)trial->size;
}

static int await_ready(struct trial *trial)
{
    int64_t until_ns =
        clock_boot_ns() + trial->config->task.resident_start_timeout_ms * CLOCK_NS_PER_MS;

    for (ssize_t size; (size = read_line(trial, until_ns)) >= 0;) {
        bool is_ready = size == 5 && memcmp(trial->line, "ready", 5) == 0;
        show(trial->line, (size_t)size, is_ready ? "" : " (ignored: not \"ready\")");
        if (is_ready) {
            trial->is_ready = true;
            return EX_OK;
        }
    }
    return FAILED;
}

static int await_report(struct trial *trial, size_t number)
{
    int64_t timeout_ms = trial->config->task.timeout_ms;
    int64_t until_ns =
        clock_boot_ns() + (timeout_ms > 0 ? timeout_ms : FOREVER_MS) * CLOCK_NS_PER_MS;

    for (ssize_t size; (size = read_line(trial, until_ns)) >= 0;) {
        struct batch_verdict verdict;
        bool fits = batch_read(trial->line, (size_t)size, number, true, &verdict) &&
                    verdict.index == number;
        show(trial->line, (size_t)size, fits ? "" : " (ignored: no report on this record)");
        if (fits) {
            return verdict.verdict == VERDICT_SUCCESS ? EX_OK : FAILED;
        }
    }
    return FAILED;
}

/* ---- records ---- */

/* Makes the record of a task. Returns 0, or an exit status after printing the error. */
static int append_record(const struct config *config, const struct draft *draft, size_t number,
                         struct buffer *record)
{
    char tid[32], reason[160];
    struct task task = {.tid = tid,
                        .token = "",
                        .attempt = 1,
                        .fence = 1,
                        .enqueued_ms = clock_wall_ms(),
                        .field_count = draft->count,
                        .fields = draft->fields};
    int64_t timeout_ms = config->task.timeout_ms;
    struct batch_record more = {.number = number,
                                .max_attempts = config->retry.max_attempts,
                                .deadline_wall_ms =
                                    timeout_ms > 0 ? task.enqueued_ms + timeout_ms : 0};

    (void)snprintf(tid, sizeof tid, "try-%zu", number);
    if (!task_check(&task, true, reason, sizeof reason) ||
        !batch_fits(config->task.batch_format, &task, reason, sizeof reason)) {
        cli_error("record %zu: leatd would refuse the task: %s", number, reason);
        return EX_DATAERR;
    }
    return batch_append(record, config->task.batch_format, &task, &more) ? cli_no_memory() : EX_OK;
}

/* As append_record, of a payload and the fields that all records have. */
static int make_record(const struct config *config, const struct draft *common, const char *payload,
                       size_t number, struct buffer *record)
{
    struct draft draft = {0};
    int failed = draft_add_text(&draft, "payload", payload);

    for (size_t i = 0; i < common->count; i++) {
        failed |= draft_add(&draft, common->fields[i].name, common->fields[i].value);
    }
    int status = failed ? cli_no_memory() : append_record(config, &draft, number, record);
    draft_free(&draft);
    return status;
}

/* Finds the first payload that leatd would refuse, before the process starts. */
static int check_payloads(const struct config *config, const struct draft *common, char **payloads,
                          int count)
{
    int status = EX_OK;

    for (int i = 0; i < count && status == EX_OK; i++) {
        struct buffer record = BUFFER_INIT;
        status = make_record(config, common, payloads[i], (size_t)i + 1, &record);
        buffer_free(&record);
    }
    return status;
}

static int send_record(const struct trial *trial, const struct buffer *record)
{
    for (size_t done = 0; done < record->size;) {
        ssize_t size = write(trial->records, record->data + done, record->size - done);

        if (size < 0 && errno != EINTR) {
            cli_error("the command does not read its standard input: %s", strerror(errno));
            return FAILED;
        }
        done += size > 0 ? (size_t)size : 0;
    }
    return EX_OK;
}

static int try_record(struct trial *trial, const struct draft *common, const char *payload,
                      size_t number)
{
    struct buffer record = BUFFER_INIT;
    int status = make_record(trial->config, common, payload, number, &record);

    status = status == EX_OK ? send_record(trial, &record) : status;
    status = status == EX_OK ? await_report(trial, number) : status;
    buffer_free(&record);
    return status;
}

/* ---- the end ---- */

/* Lets the process read the end of the file, and gives it the grace period to end. */
static int finish(struct trial *trial)
{
    const struct timespec step = {.tv_nsec = 10 * CLOCK_NS_PER_MS};
    int64_t until_ns = clock_boot_ns() + trial->config->task.kill_grace_ms * CLOCK_NS_PER_MS;
    int how, status = EX_OK;

    descriptor_close(&trial->records);
    while (waitpid(trial->pid, &how, WNOHANG) == 0) {
        if (clock_boot_ns() >= until_ns && status == EX_OK) {
            cli_error("the command has not ended within [task] kill_grace after the end of its "
                      "standard input; exit at the end of the file");
            (void)kill(trial->pid, SIGKILL); /* it is not reaped yet */
            status = FAILED;
        }
        nanosleep(&step, NULL);
    }
    descriptor_close(&trial->reports);
    return status;
}

static int try_all(struct trial *trial, const struct draft *common, char **payloads, int count)
{
    int status = await_ready(trial), result = status;

    for (int i = 0; i < count && trial->is_ready && status <= FAILED; i++) {
        status = try_record(trial, common, payloads[i], (size_t)i + 1);
        result = status != EX_OK ? status : result;
    }
    status = finish(trial);
    return result != EX_OK ? result : status;
}

/* Takes NAME=VALUE. free_fields frees the copy. */
static int take_field(const struct cli *cli, const struct cli_option *option, const char *value)
{
    const char *end = strchr(value, '=');

    if (!end) {
        return cli_usage(cli, "--field: \"%s\" is not a field; write NAME=VALUE", value);
    }
    char *copy = strdup(value); /* names of records end in a NUL */
    size_t size = (size_t)(end - value);
    if (copy) {
        copy[size] = '\0';
    }
    if (!copy || draft_add_text(option->context, copy, copy + size + 1)) {
        free(copy);
        return cli_no_memory();
    }
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): free_fields frees the copy */
    return EX_OK;
}

static void free_fields(struct draft *draft)
{
    for (size_t i = 0; i < draft->count; i++) {
        free((char *)draft->fields[i].name.data);
    }
    draft_free(draft);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct draft common = {0};
    const struct cli_option known[] = {
        {"--field", .take = take_field, .repeats = true, .context = &common}, {0}};
    int status = cli_options(cli, argc, argv, CLI_OPERANDS, known);

    if (status == EX_OK && optind == argc) {
        status = cli_usage(cli, "missing operand: give a payload");
    }
    status = status == EX_OK ? cli_load(cli) : status;
    if (status == EX_OK && !cli->config->task.resident) {
        cli_error("%s: the queue has no resident command; add resident = yes under [task]",
                  cli->config->path);
        status = EX_CONFIG;
    }
    if (status == EX_OK) {
        status = check_payloads(cli->config, &common, argv + optind, argc - optind);
    }
    if (status == EX_OK) {
        struct trial trial = {.config = cli->config, .pid = -1, .records = -1, .reports = -1};
        status = start(&trial);
        status = status == EX_OK ? try_all(&trial, &common, argv + optind, argc - optind) : status;
    }
    free_fields(&common);
    return status;
}

const struct subcommand try_command = {"try", "Try a resident command in the terminal", help, run};
