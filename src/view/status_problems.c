/*
 * Problems of a queue and of its workers.
 */
#include "base/escape.h"
#include "base/units.h"
#include "view/moment.h"
#include "view/reply_fields.h"
#include "view/status.h"

/* Live workers come before lost ones. */
static void check_workers(const struct status *status, struct buffer *problems)
{
    size_t disabled = 0;

    while (disabled < status->live_count && status_is_disabled(&status->workers[disabled])) {
        disabled++;
    }
    /* a failed append marks the buffer */
    if (status->worker_count == 0) {
        (void)buffer_append_text(problems, "no live worker\n");
    } else if (status->live_count == 0) {
        (void)buffer_append_text(problems, "no live worker: all workers are silent\n");
    } else if (disabled == status->live_count) {
        (void)buffer_printf(problems, "no worker can take tasks: %s; its log says why\n",
                            status->workers[0].state);
    }
}

/* Workers refuse to start if another group reads the stream. */
static void check_group(const struct status *status, const char *group, struct buffer *problems)
{
    struct bytes theirs = fields_bytes(status->conf, "group");

    /* a failed append marks the buffer */
    if (theirs.size > 0 && !bytes_equal(theirs, group)) {
        (void)buffer_append_text(problems, "the workers' group is ");
        (void)escape_append(problems, theirs.data, theirs.size);
        (void)buffer_printf(problems, ", not %s; change [queue] group in the configuration\n",
                            group);
    } else if (status_figure(status, "other_groups") > 0) {
        (void)buffer_append_text(problems,
                                 "another group reads the stream: no worker starts there; "
                                 "leat doctor names it\n");
    }
}

static void check_limit(const struct status *status, const char *name, int64_t limit,
                        struct buffer *problems)
{
    int64_t figure = status_figure(status, name);

    /* a failed append marks the buffer */
    if (limit >= 0 && figure > limit) {
        (void)buffer_printf(problems, "%s: %lld, more than %lld\n", name, (long long)figure,
                            (long long)limit);
    }
}

int status_problems(const struct status *status, const char *group,
                    const struct status_limits *limits, struct buffer *problems)
{
    int64_t oldest_ms = status_figure(status, "oldest_ready_ms");
    char age[MOMENT_SIZE], limit[MOMENT_SIZE];

    /* a failed append marks the buffer */
    check_workers(status, problems);
    check_group(status, group, problems);
    check_limit(status, "ready", limits->max_ready, problems);
    check_limit(status, "dead", limits->max_dead, problems);
    if (limits->max_oldest_ms >= 0 && oldest_ms > limits->max_oldest_ms) {
        moment_span(oldest_ms, age, sizeof age);
        units_format_duration(limits->max_oldest_ms, limit, sizeof limit);
        (void)buffer_printf(problems, "oldest ready task: %s, more than %s\n", age, limit);
    }
    return problems->failed ? -1 : 0;
}
