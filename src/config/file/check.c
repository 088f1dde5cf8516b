/* Checks rules between keys, and fills in values that depend on other keys. */
#include "config/file/check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash_slot.h"
#include "base/units.h"
#include "config/lease_rule.h"
#include "config/types/addresses.h"
#include "config/types/commands.h"
#include "config/types/rules.h"
#include "config/types/scalar.h"
#include "config/types/secret.h"
#include "config/types/strings.h"
#include "queue/shared/task_fields.h"

enum { DURATION_TEXT = 48, CONNECT_MS = 5000 };

#define NAME(name) #name,

static size_t line_of(const struct key_lines *lines, const char *section, const char *name)
{
    return lines->keys[table_index(table_find(section, name))];
}

static size_t later(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void check_grace(const struct config *config, const struct key_lines *lines,
                        struct report *report)
{
    char grace[DURATION_TEXT], lease[DURATION_TEXT], most[DURATION_TEXT];
    int64_t lease_ms = config->queue.lease_ms;

    if (lease_rule_fits(config->task.kill_grace_ms, lease_ms)) {
        return;
    }
    units_format_duration(config->task.kill_grace_ms, grace, sizeof grace);
    units_format_duration(lease_ms, lease, sizeof lease);
    units_format_duration(lease_rule_longest_grace_ms(lease_ms), most, sizeof most);
    report_add(report,
               later(line_of(lines, "queue", "lease"), line_of(lines, "task", "kill_grace")),
               "kill_grace: %s does not fit into a lease of %s: a task must be dead before its "
               "lease passes; set [task] kill_grace to %s or less, or raise [queue] lease",
               grace, lease, most);
}

/* Reports two keys that cannot be combined. */
static void check_pair(const struct key_lines *lines, struct report *report, const char *section,
                       const char *first, const char *second)
{
    size_t a = line_of(lines, section, first), b = line_of(lines, section, second);

    if (a != 0 && b != 0) {
        report_add(report, later(a, b), "%s: cannot be combined with %s; remove one of them", first,
                   second);
    }
}

/* Reports a low value that exceeds the high one. */
static void check_order(const struct key_lines *lines, struct report *report, const char *section,
                        const char *low, int64_t low_ms, const char *high, int64_t high_ms)
{
    char low_text[DURATION_TEXT], high_text[DURATION_TEXT];

    if (low_ms <= high_ms) {
        return;
    }
    units_format_duration(low_ms, low_text, sizeof low_text);
    units_format_duration(high_ms, high_text, sizeof high_text);
    report_add(report, later(line_of(lines, section, low), line_of(lines, section, high)),
               "%s: %s is longer than %s (%s); lower %s or raise %s", low, low_text, high,
               high_text, low, high);
}

static void check_ranges(const struct config_retry *retry, const struct config_codes *list,
                         const char *name, size_t line, struct report *report)
{
    int code = rules_listed_twice(retry, list);

    if (code >= 0) {
        report_add(report, line,
                   "%s: exit code %d is also in a range of exit codes; remove it from one of them",
                   name, code);
    }
}

static void check_codes(const struct config_retry *retry, const struct key_lines *lines,
                        struct report *report)
{
    size_t permanent = line_of(lines, "retry", "permanent");
    size_t success = line_of(lines, "retry", "success");
    size_t exits = line_of(lines, "retry", "exit.CODE");

    if (config_codes_has(&retry->permanent, 0)) {
        report_add(report, permanent, "permanent: exit code 0 always means success; remove it");
    }
    for (int code = 1; code < CONFIG_CODES; code++) {
        if (config_codes_has(&retry->permanent, code) && config_codes_has(&retry->success, code)) {
            report_add(report, later(permanent, success),
                       "permanent: exit code %d is also in success; remove it from one of them",
                       code);
        }
    }
    check_ranges(retry, &retry->permanent, "permanent", later(permanent, exits), report);
    check_ranges(retry, &retry->success, "success", later(success, exits), report);
}

static bool is_variable(const char *field)
{
    static const char *const known[] = {TASK_FIELDS(NAME) TASK_BOUND_FIELDS(NAME)};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(field, known[i]) == 0) {
            return false;
        }
    }
    return strspn(field, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
           strlen(field);
}

/* Items come from programs that know nothing of leat. They may become the input, the command or a
 * variable of a task, but no field that leat itself acts on. */
static void check_item_field(const struct config *config, const struct key_lines *lines,
                             struct report *report, size_t line)
{
    const char *field = config->intake.field;
    bool runs = strcmp(field, "command") == 0, is_payload = strcmp(field, "payload") == 0;
    bool own = config->task.command || line_of(lines, "task", "command") != 0;

    if (!runs && !is_payload && !is_variable(field)) {
        report_add(
            report, line,
            "field: an item cannot become %s; use payload, command or the name of a variable",
            field);
    } else if (runs && own) {
        report_add(report, later(line, line_of(lines, "task", "command")),
                   "field: command cannot be combined with [task] command; remove one of them");
    } else if (!runs && !own) {
        report_add(report, line,
                   "field: no command runs for items that become the field %s; add command = ... "
                   "under [task]",
                   field);
    }
}

static void check_intake(const struct config *config, const struct key_lines *lines,
                         struct report *report)
{
    const struct config_intake *intake = &config->intake;
    const char *stream = config->queue.stream ? config->queue.stream : config->queue.name;
    size_t lists = line_of(lines, "intake", "lists"), prefix = line_of(lines, "intake", "prefix");
    size_t lane_from = line_of(lines, "intake", "lane_from");

    if (intake->lane_from == CONFIG_LANE_FROM_SUFFIX && prefix == 0) {
        report_add(report, lane_from,
                   "lane_from: suffix requires prefix; add prefix or remove lane_from");
    }
    if (lists == 0 && prefix == 0) {
        return;
    }
    for (size_t i = 0; intake->lists && intake->lists[i]; i++) {
        const char *list = intake->lists[i];
        if (stream && strcmp(list, stream) == 0) {
            report_add(report, lists,
                       "lists: %s is the stream of the queue; use another key for one of them",
                       stream);
        }
        if (list[strlen(list) - 1] == ',') {
            report_add(report, lists,
                       "lists: %s ends with a comma; separate the keys by spaces only", list);
        }
    }
    if (intake->field) {
        check_item_field(config, lines, report,
                         later(later(lists, prefix), line_of(lines, "intake", "field")));
    }
}

/* A batch requires a command that reads tasks from standard input. */
static void check_batch(const struct config_task *task, const struct key_lines *lines,
                        struct report *report)
{
    size_t batch = line_of(lines, "task", "batch");

    if (task->batch == 1) {
        return;
    }
    if (!task->command && line_of(lines, "task", "command") == 0) {
        report_add(report, batch,
                   "batch: requires a command that reads many tasks; add command or remove batch");
    }
    if (task->stdin_from == CONFIG_STDIN_NULL) {
        report_add(report, later(batch, line_of(lines, "task", "stdin")),
                   "batch: the command reads tasks from standard input, but stdin is null; remove "
                   "one of them");
    }
}

/* Resident processes require a command that reads tasks from standard input. */
static void check_resident(const struct config *config, const struct key_lines *lines,
                           struct report *report)
{
    static const char *const details[] = {"resident_start_timeout", "resident_tasks",
                                          "resident_age", "resident_memory", "resident_idle"};
    const struct config_task *task = &config->task;
    size_t line = line_of(lines, "task", "resident");

    for (size_t i = 0; i < sizeof details / sizeof *details && !task->resident; i++) {
        if (line_of(lines, "task", details[i]) != 0) {
            report_add(report, line_of(lines, "task", details[i]),
                       "%s: has no effect without resident processes; add resident = yes",
                       details[i]);
        }
    }
    if (!task->resident) {
        return;
    }
    if (!task->command && line_of(lines, "task", "command") == 0) {
        report_add(report, line,
                   "resident: requires a command that stays and reads tasks; add command or remove "
                   "resident");
    }
    if (task->stdin_from == CONFIG_STDIN_NULL) {
        report_add(report, later(line, line_of(lines, "task", "stdin")),
                   "resident: the command reads tasks from standard input, but stdin is null; "
                   "remove one of them");
    }
    if (config->queue.concurrency > CONFIG_RESIDENT_MOST) {
        report_add(report, later(line, line_of(lines, "queue", "concurrency")),
                   "resident: at most %d slots can have resident processes; set [queue] "
                   "concurrency to %d or less",
                   CONFIG_RESIDENT_MOST, CONFIG_RESIDENT_MOST);
    }
}

/* Limits require that leat reads the output. */
static void check_output(const struct config_output *output, const struct key_lines *lines,
                         struct report *report)
{
    static const char *const limits[] = {"max_output", "rate"};

    for (size_t i = 0; i < 2 && output->to == CONFIG_OUTPUT_INHERIT; i++) {
        if (line_of(lines, "output", limits[i]) != 0) {
            report_add(report, line_of(lines, "output", limits[i]),
                       "%s: has no effect with to = inherit, since leatd does not see the output; "
                       "remove one of them",
                       limits[i]);
        }
    }
}

static bool is_set(const struct key_lines *lines, const char *section, const char *name)
{
    return line_of(lines, section, name) != 0;
}

static void check_commands(const struct config *config, const struct key_lines *lines,
                           struct report *report)
{
    const struct config_command *command = &config->command;
    bool listed = config->security.commands == CONFIG_COMMANDS_LISTED;
    size_t line = line_of(lines, "security", "commands");
    size_t own = line_of(lines, "task", "command");

    if (listed && own != 0) {
        report_add(report, later(line, own),
                   "commands: listed cannot be combined with [task] command; remove one of them");
    }
    if (listed && !is_set(lines, "command.NAME", "program")) {
        report_add(
            report, line,
            "commands: no command is listed; add a section [command.NAME] with program = ...");
    }
    if (!listed && is_set(lines, "command.NAME", "program")) {
        report_add(report, line_of(lines, "command.NAME", "program"),
                   "program: has no effect, since tasks may run any command; add commands = listed "
                   "under [security]");
    }
    for (char **entry = command->arguments; entry && *entry; entry++) {
        const char *end = strchr(*entry, '=');
        char name[COMMANDS_NAME_MOST + 1] = "";

        if (end && (size_t)(end - *entry) < sizeof name) {
            memcpy(name, *entry, (size_t)(end - *entry));
        }
        if (!config_command_value(command->program, name)) {
            report_add(report, line_of(lines, "command.NAME", "arguments"),
                       "arguments: [command.%s] has no program; add program = ...", name);
        }
    }
}

static void check_signatures(const struct config *config, const struct key_lines *lines,
                             struct report *report)
{
    const struct config_security *security = &config->security;
    size_t line = line_of(lines, "security", "signatures");
    size_t credentials = line_of(lines, "security", "key_credentials");

    for (char **entry = security->key_credentials; entry && *entry; entry++) {
        size_t length = strcspn(*entry, ":");

        if (strings_find(security->key_files, *entry, length, ':')) {
            report_add(report, later(credentials, line_of(lines, "security", "key_files")),
                       "key_credentials: the key %.*s is also in key_files; remove one of them",
                       (int)length, *entry);
        }
    }
    if (security->signatures != CONFIG_SIGNATURES_REQUIRED) {
        return;
    }
    if (!is_set(lines, "security", "key_files") && credentials == 0) {
        report_add(report, line, "signatures: there is no key; add key_files = NAME:FILE");
    }
    if (is_set(lines, "intake", "lists") || is_set(lines, "intake", "prefix")) {
        report_add(report,
                   later(line, later(line_of(lines, "intake", "lists"),
                                     line_of(lines, "intake", "prefix"))),
                   "signatures: cannot be combined with [intake], since items of lists are not "
                   "signed; remove one of them");
    }
}

/* These limits require a cgroup. */
static void check_isolation(const struct config_isolation *isolation, const struct key_lines *lines,
                            struct report *report)
{
    static const char *const bounds[] = {TASK_BOUND_FIELDS(NAME)};

    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        if (isolation->cgroup == CONFIG_CGROUP_OFF && line_of(lines, "isolation", bounds[i]) != 0) {
            report_add(report, line_of(lines, "isolation", bounds[i]),
                       "%s: requires cgroups, but cgroup is off; remove one of them", bounds[i]);
        }
    }
    if (isolation->memory_max > 0 && isolation->memory_high > isolation->memory_max) {
        report_add(
            report,
            later(line_of(lines, "isolation", "memory_high"),
                  line_of(lines, "isolation", "memory_max")),
            "memory_high: has no effect above memory_max; lower memory_high or raise memory_max");
    }
}

/* True if the stream shares its hash slot with leat's other keys, {STREAM}:dead and so on. */
static bool has_own_slot(const char *stream)
{
    const char *open = strchr(stream, '{');
    const char *shut = open ? strchr(open, '}') : NULL;

    return !strchr(stream, '}') || (shut && shut > open + 1);
}

static void check_names(const struct config_queue *queue, const struct key_lines *lines,
                        struct report *report)
{
    if (!queue->name && line_of(lines, "queue", "name") == 0) {
        report_add(report, later(lines->last_line, 1),
                   "name: is required; add name = NAME under [queue]");
    }
    if (queue->stream && !has_own_slot(queue->stream)) {
        report_add(report, line_of(lines, "queue", "stream"),
                   "stream: a } without a {tag} keeps leat's other keys out of its hash slot in a "
                   "Cluster; remove it, or write {tag}");
    }
}

/* Reports a key of the section that requires a second one. */
static void check_need(const struct key_lines *lines, struct report *report, const char *section,
                       const char *first, const char *second)
{
    if (is_set(lines, section, first) && !is_set(lines, section, second)) {
        report_add(report, line_of(lines, section, first), "%s: requires %s; add %s or remove %s",
                   first, second, second, first);
    }
}

/* In a Cluster, one call can move an item from a list to the queue only if both are in the same
 * hash slot. */
static void check_slots(const struct config *config, const struct key_lines *lines,
                        struct report *report)
{
    const struct config_intake *intake = &config->intake;
    const char *stream = config->queue.stream ? config->queue.stream : config->queue.name;
    const char *prefix = intake->prefix;

    if (!config->redis.cluster || !stream) {
        return;
    }
    for (size_t i = 0; intake->lists && intake->lists[i]; i++) {
        if (hash_slot_of(intake->lists[i]) != hash_slot_of(stream)) {
            report_add(report, line_of(lines, "intake", "lists"),
                       "lists: %s is not in the hash slot of the stream %s, as a Cluster requires; "
                       "use the same {tag} in both",
                       intake->lists[i], stream);
        }
    }
    if (prefix && (!hash_slot_is_tagged(prefix) || hash_slot_of(prefix) != hash_slot_of(stream))) {
        report_add(report, line_of(lines, "intake", "prefix"),
                   "prefix: a Cluster requires the {tag} of the stream %s; add it to the prefix",
                   stream);
    }
}

static void check_socket(const struct config_redis *redis, const struct key_lines *lines,
                         struct report *report)
{
    if (redis->socket && strlen(redis->socket) >= ADDRESSES_SOCKET_SIZE) {
        report_add(report, line_of(lines, "redis", "socket"),
                   "socket: a path of more than 107 bytes; use a shorter one, such as that of a "
                   "symbolic link");
    }
}

/* Exactly one way to find the server may be configured. */
static void check_server(const struct config *config, const struct key_lines *lines,
                         struct report *report)
{
    static const char *const ways[] = {"socket", "host", "port"};

    check_pair(lines, report, "redis", "socket", "host");
    check_pair(lines, report, "redis", "socket", "port");
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        check_pair(lines, report, "redis", "sentinels", ways[i]);
        check_pair(lines, report, "redis", "cluster", ways[i]);
    }
    check_pair(lines, report, "redis", "sentinels", "cluster");
    check_need(lines, report, "redis", "sentinels", "master");
    check_need(lines, report, "redis", "master", "sentinels");
    check_need(lines, report, "redis", "sentinel_user", "sentinels");
    check_need(lines, report, "redis", "sentinel_password", "sentinels");
    check_need(lines, report, "redis", "sentinel_password_file", "sentinels");
    check_need(lines, report, "redis", "sentinel_password_credential", "sentinels");
    if (config->redis.db != 0) {
        check_pair(lines, report, "redis", "cluster", "db");
    }
    check_slots(config, lines, report);
    check_socket(&config->redis, lines, report);
}

static void check_tls(const struct config_redis *redis, const struct key_lines *lines,
                      struct report *report)
{
    static const char *const details[] = {"tls_ca", "tls_cert", "tls_key", "tls_server_name",
                                          "tls_versions"};
    size_t line = line_of(lines, "redis", "tls");

    for (size_t i = 0; i < sizeof details / sizeof details[0] && !redis->tls; i++) {
        if (line_of(lines, "redis", details[i]) != 0) {
            report_add(report, line_of(lines, "redis", details[i]),
                       "%s: has no effect without TLS; add tls = yes", details[i]);
        }
    }
    if (!redis->tls) {
        return;
    }
#ifndef LEAT_TLS
    report_add(report, line,
               "tls: this leat was built without TLS, since its hiredis has no hiredis_ssl; set "
               "socket to a tunnel instead, see TLS in leatd(8)");
#endif
    if (line_of(lines, "redis", "socket") != 0) {
        report_add(report, later(line, line_of(lines, "redis", "socket")),
                   "tls: cannot be combined with socket; remove tls, or set host and port instead "
                   "of socket");
    }
    check_need(lines, report, "redis", "tls_cert", "tls_key");
    check_need(lines, report, "redis", "tls_key", "tls_cert");
}

void check_rules(const struct config *config, const struct key_lines *lines, struct report *report)
{
    check_names(&config->queue, lines, report);
    check_server(config, lines, report);
    check_pair(lines, report, "redis", "sentinel_password", "sentinel_password_file");
    check_pair(lines, report, "redis", "sentinel_password", "sentinel_password_credential");
    check_pair(lines, report, "redis", "sentinel_password_file", "sentinel_password_credential");
    check_pair(lines, report, "redis", "password", "password_file");
    check_pair(lines, report, "redis", "password", "password_credential");
    check_pair(lines, report, "redis", "password_file", "password_credential");
    check_tls(&config->redis, lines, report);
    check_order(lines, report, "redis", "backoff_base", config->redis.backoff_base_ms,
                "backoff_cap", config->redis.backoff_cap_ms);
    if (config->redis.wait_replicas > 0) {
        check_order(lines, report, "redis", "wait_timeout", config->redis.wait_timeout_ms,
                    "command_timeout", config->redis.command_timeout_ms);
    }
    check_order(lines, report, "retry", "base", config->retry.base_ms, "cap", config->retry.cap_ms);
    check_grace(config, lines, report);
    check_codes(&config->retry, lines, report);
    check_intake(config, lines, report);
    check_batch(&config->task, lines, report);
    check_resident(config, lines, report);
    check_output(&config->output, lines, report);
    check_commands(config, lines, report);
    check_signatures(config, lines, report);
    check_isolation(&config->isolation, lines, report);
}

/* Reads the password from its file or credential, if one of them is set. */
static void resolve_password(char **password, const char *file, const char *file_key,
                             const char *credential, const char *credential_key,
                             bool skip_credentials, const struct key_lines *lines,
                             struct report *report)
{
    struct buffer why = BUFFER_INIT;
    const char *key = file ? file_key : credential_key;

    /* check_rules reports two sources at once */
    if (*password || (!file) == (!credential) || (credential && skip_credentials)) {
        return;
    }
    *password =
        file ? secret_read_file(file, true, &why) : secret_read_credential(credential, &why);
    if (!*password) {
        report_reason(report, line_of(lines, "redis", key), key, &why);
    }
    buffer_free(&why);
}

static void resolve_redis(struct config_redis *redis, const char *stream, bool skip_credentials,
                          const struct key_lines *lines, struct report *report)
{
    if (stream) {
        redis->slot = hash_slot_of(stream);
    }
    resolve_password(&redis->password, redis->password_file, "password_file",
                     redis->password_credential, "password_credential", skip_credentials, lines,
                     report);
    resolve_password(&redis->sentinel_password, redis->sentinel_password_file,
                     "sentinel_password_file", redis->sentinel_password_credential,
                     "sentinel_password_credential", skip_credentials, lines, report);
}

static int64_t count_cpus(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    return count > 0 ? count : 1;
}

void check_resolve(struct config *config, bool skip_credentials, const struct key_lines *lines,
                   struct report *report)
{
    struct config_queue *queue = &config->queue;

    if (!queue->stream && queue->name) {
        queue->stream = strdup(queue->name);
        if (!queue->stream) {
            report_no_memory(report);
        }
    }
    if (queue->concurrency == 0) {
        queue->concurrency = count_cpus();
    }
    config->redis.connect_in_lease = config->redis.connect_timeout_ms == 0;
    if (config->redis.connect_in_lease) {
        config->redis.connect_timeout_ms = CONNECT_MS;
    }
    config->retry.success.bits[0] |= 1; /* exit code 0 always means success */
    rules_resolve(&config->retry);
    resolve_redis(&config->redis, queue->stream, skip_credentials, lines, report);
}
