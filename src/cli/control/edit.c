/*
 * leat edit: changes the fields of a waiting task.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/control/change.h"
#include "cli/control/targets.h"
#include "cli/enqueue/enqueue.h"
#include "cli/show/expand_id.h"
#include "cli/show/show.h"
#include "view/reply_fields.h"

static const char help[] =
    "Usage: leat edit [OPTION]... ID\n"
    "Change fields of a waiting task, or its due time. ID is its id, or its label\n"
    "(--id). The other fields stay as they are. The task waits in a lane afterwards,\n"
    "or until it is due. Of a signed task, only the due time can be changed.\n"
    "\n"
    "Options; those that leat enqueue has, too, have the same values:\n"
    "  --command TEXT       run this command\n"
    "  --unset NAME         remove the field NAME, such as lane\n"
    "  --payload TEXT       pass TEXT to the task's stdin; '-' passes leat's stdin\n"
    "  --payload-file FILE  pass the content of FILE to the task's stdin\n"
    "  --field NAME=VALUE   set a field; the task sees it as $TASK_NAME\n"
    "  --delay DURATION     start no earlier than DURATION from now, such as 5m\n"
    "  --at TIME            start no earlier than TIME\n"
    "  --id ID              label the task\n"
    "  --lane NAME          put the task into this lane\n"
    "  --unique KEY         add no other task with this key meanwhile\n"
    "  --unique-for DUR     refuse the key for this long after a success, too\n"
    "  --directory DIR      start in DIR\n"
    "  --timeout DURATION   stop an attempt that runs longer\n"
    "  --max-attempts N     give up after N attempts\n"
    "  --max-output SIZE    limit the output of an attempt\n"
    "  --result-ttl DUR     keep the result for this long\n"
    "  --expires WHEN       dead-letter the task if it has not started by WHEN\n"
    "  --json               print a JSON object: id, state, tid, worker\n"
    "  -q, -c, -h           see leat --help\n"
    "\n"
    "Examples:\n"
    "  leat -q thumbnails edit 1769860800000-0 --timeout 1h --field SIZE=200\n"
    "  leat -q thumbnails edit order-17 --unset lane --payload-file order.json\n"
    "\n"
    "Exit codes:\n"
    "  0   the task is as it should be\n"
    "  64  wrong usage\n"
    "  65  the task runs, is a dead letter or signed, or workers would refuse it\n"
    "  66  the task was not found, or the payload cannot be read\n" CLI_EXITS;

struct edit {
    struct change change;
    struct enqueue_options options;
};

static int take_command(const struct cli *cli, const struct cli_option *option, const char *text)
{
    (void)cli;
    return task_add_text(option->context, "command", text);
}

static int take_unset(const struct cli *cli, const struct cli_option *option, const char *text)
{
    struct edit *edit = option->context;

    if (!*text) {
        return cli_usage(cli, "--unset: give the name of a field");
    }
    return draft_add(&edit->change.fields, bytes_of(text), (struct bytes){NULL, 0}) == 0
               ? EX_OK
               : cli_no_memory();
}

static bool has(const struct draft *draft, size_t count, struct bytes name)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes_compare(draft->fields[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds the fields of the options to the changes, each name once. */
static int take_fields(struct edit *edit)
{
    struct draft *fields = &edit->change.fields;

    for (size_t i = 0; i < edit->options.common.count; i++) {
        const struct task_field *field = &edit->options.common.fields[i];
        if (draft_add(fields, field->name, field->value) != 0) {
            return cli_no_memory();
        }
    }
    for (size_t i = 0; i < fields->count; i++) {
        struct bytes name = fields->fields[i].name;
        if (has(fields, i, name)) {
            return cli_usage(edit->change.cli, "field %.*s is given twice; give it once",
                             (int)name.size, name.data);
        }
    }
    return EX_OK;
}

/* The fields of the task after the changes. Returns 0, or -1 without memory. */
static int merge(const struct edit *edit, const struct redisReply *fields, struct draft *merged)
{
    const struct draft *changes = &edit->change.fields;
    int failed = 0;

    for (size_t i = 0; i < fields_count(fields) && failed == 0; i++) {
        struct bytes name = fields_name_at(fields, i);
        if (!has(changes, changes->count, name)) {
            failed = draft_add(merged, name, fields_value(fields_value_at(fields, i)));
        }
    }
    for (size_t i = 0; i < changes->count && failed == 0; i++) {
        if (changes->fields[i].value.data) {
            failed = draft_add(merged, changes->fields[i].name, changes->fields[i].value);
        }
    }
    return failed;
}

static bool would_run(const struct config *config, const struct draft *task, char *reason,
                      size_t size)
{
    if (config->security.signatures == CONFIG_SIGNATURES_REQUIRED &&
        !draft_has(task, "signature")) {
        (void)snprintf(reason, size, "it is not signed");
        return false;
    }
    return draft_check(task, &config->task, reason, size) &&
           draft_is_listed(task, config, reason, size);
}

/* Checks the changed task as leatd does. A task that is not found is left to the call. Returns 0,
 * or an exit status after printing the error. */
static int check(const struct edit *edit, const char *typed)
{
    struct cli *cli = edit->change.cli;
    struct draft merged = {0};
    struct expanded_id expanded;
    struct redisReply *found = NULL;
    char reason[256];
    int status = cli_connect(cli);

    status = status == EX_OK ? expand_id(cli, typed, &expanded) : status;
    if (status == EX_OK) {
        found = show_locate_live(cli, expanded.id, &status);
    }
    if (found && merge(edit, found->element[3], &merged) != 0) {
        status = cli_no_memory();
    } else if (found && !would_run(cli->config, &merged, reason, sizeof reason)) {
        cli_error("cannot edit %s: workers would refuse the task: %s", expanded.id, reason);
        status = targets_print_failed(expanded.id, edit->change.json);
        status = status == EX_OK ? EX_DATAERR : status;
    }
    draft_free(&merged);
    freeReplyObject(found);
    return status;
}

/* Writes the names of the changed fields for the audit record, such as " (lane, payload)". */
static void list_names(const struct draft *fields, const char *due, char *text, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < fields->count && used < size; i++) {
        int wrote = snprintf(text + used, size - used, "%s%.*s", i == 0 ? " (" : ", ",
                             (int)fields->fields[i].name.size, fields->fields[i].name.data);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    /* a long list is cut */
    if (used < size) {
        (void)snprintf(text + used, size - used, "%s%s",
                       !*due               ? ""
                       : fields->count > 0 ? ", due time"
                                           : " (due time",
                       fields->count > 0 || *due ? ")" : "");
    }
}

static int edit_task(struct edit *edit, char *const *ids)
{
    struct change *change = &edit->change;
    char names[200] = "";
    int status = EX_OK;

    if (strcmp(ids[0], "-") == 0) {
        return cli_usage(change->cli, "give the id of one task; '-' is none");
    }
    if (edit->options.sign || edit->options.valid_ms > 0 ||
        draft_has(&edit->options.common, "unique_next")) {
        return cli_usage(change->cli, "--sign, --valid and --unique-next are for new tasks only");
    }
    status = task_read_payload(&edit->options);
    status = status == EX_OK ? take_fields(edit) : status;
    if (status == EX_OK && change->fields.count == 0 && !edit->options.due[0]) {
        status =
            cli_usage(change->cli, "nothing to change: give --command, --field or another option");
    }
    if (status == EX_OK && change->fields.count > 0) {
        status = check(edit, ids[0]);
    }
    if (status != EX_OK) {
        return status;
    }
    list_names(&change->fields, edit->options.due, names, sizeof names);
    change->due = edit->options.due;
    return change_tasks(change, ids, "edited", names);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct edit edit = {.change = {.cli = cli,
                                   .verb = "edit",
                                   .event = "operator-edit",
                                   .state = "edited",
                                   .done = "edited",
                                   .same = "is so already"}};
    const struct cli_option options[] = {
        {"--command", .take = take_command, .context = &edit.options},
        {"--unset", .repeats = true, .take = take_unset, .context = &edit},
        {"--json", .flag = &edit.change.json},
        {.more = task_options, .context = &edit.options}};
    int status = cli_options(cli, argc, argv, CLI_ONE_TASK, options);

    status = status == EX_OK ? edit_task(&edit, argv + optind) : status;
    draft_free(&edit.change.fields);
    task_options_free(&edit.options);
    return status;
}

const struct subcommand edit_command = {"edit", "Change the fields of a waiting task", help, run};
