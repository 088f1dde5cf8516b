/*
 * leat doctor: examines everything but the keys: the server, the function library, the workers and
 * their shared settings.
 */
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/join.h"
#include "cli/control/conf.h"
#include "cli/doctor/doctor.h"
#include "cli/lib/queues.h"
#include "cli/status/status.h"
#include "queue/calls.h"
#include "queue/library.h"
#include "queue/replies.h"
#include "redis/error.h"
#include "redis/server_command.h"

#define WHY_SIZE 256

static void found(struct doctor_report *report, const char *kind, const char *subject,
                  const char *detail)
{
    doctor_add_text(report, kind, subject, DOCTOR_FOUND, NULL, "%s", detail);
}

/* Sends and frees the command. Returns the reply, or NULL after setting *error and why. */
static struct redisReply *call(struct cli *cli, struct command *command, enum redis_error *error,
                               char *why)
{
    struct redisReply *reply = client_call(cli->client, command, error, why, WHY_SIZE);

    command_free(command);
    return reply;
}

/* Connects, but does not load the library, which is examined. */
static int connect_only(struct cli *cli)
{
    enum redis_error error = REDIS_ERROR_OTHER;
    char why[WHY_SIZE] = "";
    int status = cli_load(cli);

    if (status != EX_OK) {
        return status;
    }
    cli->client = library_client_open(&cli->library, &cli->config->redis, CONFIG_LIBRARY_NEVER,
                                      &error, why, sizeof why);
    if (cli->client) {
        return EX_OK;
    }
    status = cli_call_failed(cli, "cannot connect to Redis", error, why);
    return error == REDIS_ERROR_CALLER ? EX_CONFIG : status;
}

/* ---- the server */

static void judge_server(struct doctor_report *report, const struct server_info *server)
{
    if (server->is_master && report->cli->config->redis.sentinels && !server->needs_replicas) {
        found(report, "lone-master", "min-replicas-to-write", "0");
    }
    if (!server->is_master) {
        found(report, "replica", server->version, "");
    }
    if (server->maxmemory > 0 && strcmp(server->maxmemory_policy, "noeviction") != 0) {
        found(report, "eviction", "maxmemory-policy", server->maxmemory_policy);
    }
    if (server->saves_fail) {
        found(report, "saves-fail", server->version, "");
    }
    if (server->refused > 0) {
        doctor_add_text(report, "refused-data", server->version, DOCTOR_FOUND, NULL,
                        "%lld commands", (long long)server->refused);
    }
    if (server->aof_enabled) {
        return;
    }
    found(report, server->rdb_enabled ? "snapshots-only" : "no-persistence", "appendonly", "no");
}

static int examine_server(struct doctor_report *report)
{
    enum redis_error error = REDIS_ERROR_OTHER;
    struct command command = {0};
    struct server_info server;
    struct redisReply *reply;
    char why[WHY_SIZE] = "";
    int result;

    server_info(&command);
    reply = call(report->cli, &command, &error, why);
    if (!reply && error != REDIS_ERROR_DENIED) {
        return cli_call_failed(report->cli, "cannot read the state of Redis", error, why);
    }
    result = server_info_read(reply, &server);
    freeReplyObject(reply);
    if (result == 0) {
        judge_server(report, &server);
    } else {
        found(report, "no-info", "INFO", why);
    }
    return EX_OK;
}

/* ---- the function library */

/* Reports the library, and with --repair loads the built-in one. Returns true if it was loaded. */
static bool repair_library(struct doctor_report *report, const char *kind, const char *detail)
{
    enum redis_error error = REDIS_ERROR_OTHER;
    struct command command = {0};
    struct redisReply *reply;
    char why[WHY_SIZE] = "";

    if (!report->repair) {
        found(report, kind, "leat", detail);
        return false;
    }
    queue_load_library(&command, true);
    reply = call(report->cli, &command, &error, why);
    doctor_add_text(report, kind, "leat", reply ? DOCTOR_REPAIRED : DOCTOR_LEFT, reply ? NULL : why,
                    "%s", detail);
    freeReplyObject(reply);
    return reply;
}

/* Compares the code of a library of the same version. Reports nothing if the user may not read it.
 */
static void compare_library(struct doctor_report *report)
{
    enum redis_error error = REDIS_ERROR_OTHER;
    struct command command = {0};
    const struct redisReply *code;
    struct redisReply *reply;
    char why[WHY_SIZE] = "";

    queue_library_code(&command);
    reply = call(report->cli, &command, &error, why);
    code = queue_library_code_read(reply);
    if (code && ((size_t)code->len != library_size() ||
                 memcmp(code->str, library_source, library_size()) != 0)) {
        (void)repair_library(report, "library-differs", "its code is not that of this leat");
    }
    freeReplyObject(reply);
}

/* *go_on: it has the functions that examine keys. */
static int examine_library(struct doctor_report *report, bool *go_on)
{
    enum redis_error error = REDIS_ERROR_OTHER;
    int64_t protocol = 0, version = 0;
    struct command command = {0};
    struct redisReply *reply;
    char why[WHY_SIZE] = "", detail[80];

    queue_version(&command);
    reply = call(report->cli, &command, &error, why);
    if (!reply && error != REDIS_ERROR_NO_LIBRARY) {
        return cli_call_failed(report->cli, "cannot read the version of the function library",
                               error, why);
    }
    if (!reply) {
        *go_on = repair_library(report, "library-missing", "not in this Redis");
        return EX_OK;
    }
    /* an invalid reply counts as version 0 */
    (void)queue_version_read(reply, &protocol, &version);
    freeReplyObject(reply);

    (void)snprintf(detail, sizeof detail, "version %lld, this leat has %lld", (long long)version,
                   (long long)library_version());
    *go_on = true;
    if (version < library_version()) {
        *go_on = repair_library(report, "library-old", detail);
    } else if (version > library_version()) {
        found(report, "library-new", "leat", detail);
    } else {
        compare_library(report);
    }
    return EX_OK;
}

/* ---- workers and shared settings */

/* True if an earlier live worker has the same version. */
static bool is_repeated(const struct status *status, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        const struct status_worker *worker = &status->workers[i];
        if (worker->live && strcmp(worker->version, status->workers[index].version) == 0) {
            return true;
        }
    }
    return false;
}

static void report_version(struct doctor_report *report, const struct status *status,
                           const char *version)
{
    char hosts[256] = "";
    size_t count = 0;

    for (size_t i = 0; i < status->worker_count; i++) {
        const struct status_worker *worker = &status->workers[i];
        if (worker->live && strcmp(worker->version, version) == 0) {
            /* hosts that do not fit are left out; the finding has their number */
            join_word(hosts, sizeof hosts, ", ", worker->host);
            count++;
        }
    }
    doctor_add_text(report, "version-skew", version, DOCTOR_FOUND, NULL, "%zu worker%s: %s", count,
                    count == 1 ? "" : "s", hosts);
}

static void compare_versions(struct doctor_report *report, const struct status *status)
{
    size_t versions = 0;

    for (size_t i = 0; i < status->worker_count; i++) {
        versions += status->workers[i].live && !is_repeated(status, i);
    }
    for (size_t i = 0; i < status->worker_count && versions > 1; i++) {
        if (status->workers[i].live && !is_repeated(status, i)) {
            report_version(report, status, status->workers[i].version);
        }
    }
}

static void on_difference(void *context, const char *name, const char *agreed,
                          const char *configured)
{
    doctor_add_text(context, "conf-differs", name, DOCTOR_FOUND, NULL, "%s, the file has %s",
                    agreed, configured);
}

static int examine_workers(struct doctor_report *report)
{
    struct cli *cli = report->cli;
    struct status status;
    int result;
    struct redisReply *reply = status_call(cli, &result);

    if (!reply) {
        return result;
    }
    result = status_read(reply, cli->config->queue.lease_ms, &status) == 0 ? EX_OK : EX_OSERR;
    if (result == EX_OK) {
        compare_versions(report, &status);
        if (queues_reads_file(cli)) {
            conf_compare(cli, status.conf, on_difference, report);
        }
        status_free(&status);
    } else {
        (void)cli_no_memory();
    }
    freeReplyObject(reply);
    return result;
}

int doctor_examine_server(struct doctor_report *report, bool *go_on)
{
    int status = connect_only(report->cli);

    *go_on = false;
    status = status == EX_OK ? examine_server(report) : status;
    if (status == EX_OK) {
        doctor_examine_login(report);
    }
    status = status == EX_OK ? examine_library(report, go_on) : status;
    if (status == EX_OK && *go_on) {
        status = examine_workers(report);
    }
    return status;
}
