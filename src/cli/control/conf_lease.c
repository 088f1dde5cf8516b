/*
 * leat conf: a lease is refused if a worker that is known could not take tasks with it.
 */
#include <hiredis/hiredis.h>

#include "base/units.h"
#include "cli/control/conf.h"
#include "cli/lib/queues.h"
#include "cli/status/status.h"
#include "config/lease_rule.h"

#define TEXT_SIZE 64

/* Returns EX_DATAERR after printing the numbers. whose: "FILE has", "worker HOST:PID has". */
static int refuse(int64_t lease_ms, const char *whose, int64_t kill_grace_ms)
{
    char lease[TEXT_SIZE], grace[TEXT_SIZE], shortest[TEXT_SIZE], longest[TEXT_SIZE] = "0";
    int64_t longest_ms = lease_rule_longest_grace_ms(lease_ms);

    units_format_duration(lease_ms, lease, sizeof lease);
    units_format_duration(kill_grace_ms, grace, sizeof grace);
    units_format_duration(lease_rule_shortest_ms(kill_grace_ms), shortest, sizeof shortest);
    if (longest_ms > 0) {
        units_format_duration(longest_ms, longest, sizeof longest);
    }
    cli_error("cannot set lease to %s: %s kill_grace %s, which requires a lease of at least %s; "
              "set that, or first lower [task] kill_grace to %s and reload the workers",
              lease, whose, grace, shortest, longest);
    return EX_DATAERR;
}

/* Without a file, the configuration says nothing about the workers. */
static int check_file(const struct cli *cli, int64_t lease_ms)
{
    int64_t grace_ms = cli->config->task.kill_grace_ms;
    char whose[512];

    if (!queues_reads_file(cli) || lease_rule_fits(grace_ms, lease_ms)) {
        return EX_OK;
    }
    (void)snprintf(whose, sizeof whose, "%s has", cli->config->path);
    return refuse(lease_ms, whose, grace_ms);
}

/* The live worker with the longest kill_grace decides; an older leatd does not report its own. */
static int check_workers(const struct status *status, int64_t lease_ms)
{
    const struct status_worker *worst = NULL;
    char whose[sizeof worst->host + TEXT_SIZE];

    for (size_t i = 0; i < status->live_count; i++) {
        const struct status_worker *worker = &status->workers[i];
        if (!worst || worker->kill_grace_ms > worst->kill_grace_ms) {
            worst = worker;
        }
    }
    if (!worst || worst->kill_grace_ms < 0 || lease_rule_fits(worst->kill_grace_ms, lease_ms)) {
        return EX_OK;
    }
    (void)snprintf(whose, sizeof whose, "the worker %s:%lld has", worst->host,
                   (long long)worst->pid);
    return refuse(lease_ms, whose, worst->kill_grace_ms);
}

int conf_check_lease(struct cli *cli, int64_t lease_ms)
{
    struct redisReply *reply;
    struct status status;
    int result;

    reply = status_call(cli, &result);
    if (!reply) {
        return result;
    }
    if (status_read(reply, cli->config->queue.lease_ms, &status) == 0) {
        result = check_workers(&status, lease_ms);
        result = result == EX_OK ? check_file(cli, lease_ms) : result;
        status_free(&status);
    } else {
        result = cli_no_memory();
    }
    freeReplyObject(reply);
    return result;
}
