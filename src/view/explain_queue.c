/*
 * The reasons that stop a whole queue, or one lane.
 */
#include "view/explain_queue.h"

#include <hiredis/hiredis.h>

#include "config/config.h"
#include "view/reasons.h"
#include "view/reply_fields.h"

static void add_by(struct explain_reason *reason, struct bytes by)
{
    if (by.size > 0) {
        reasons_printf(reason, " by ");
        reasons_bytes(reason, by);
        reasons_put_text(reason, "by", by);
    }
}

static void explain_pause(struct explanation *explanation)
{
    const struct status *status = &explanation->status;
    struct explain_reason *reason;

    if (status->paused_ms == 0) {
        return;
    }
    reason = reasons_add(explanation, "paused", true, "the queue was paused ");
    reasons_time(reason, status->paused_ms, status->now_ms);
    reasons_put_number(reason, "since_ms", status->paused_ms);
    add_by(reason, status->paused_by);
    reasons_printf(reason, "; to start tasks again, run: leat resume");
}

/* Redis lets nothing start for a time, after it has lost a group or was replaced. */
static void explain_holds(struct explanation *explanation)
{
    const struct status *status = &explanation->status;
    int64_t hold_ms = fields_number(status->conf, "hold_until", 0);
    int64_t outage_ms = fields_number(status->conf, "outage_until", 0);
    const struct redisReply *awaited = fields_find(status->figures, "awaited");
    struct explain_reason *reason;

    if (hold_ms > status->now_ms) {
        reason = reasons_add(explanation, "hold", false,
                             "the consumer group was lost and created again, so tasks may still "
                             "run: tasks start ");
        reasons_time(reason, hold_ms, status->now_ms);
        reasons_put_number(reason, "until_ms", hold_ms);
    }
    if (outage_ms <= status->now_ms) {
        return;
    }
    reason = reasons_add(explanation, "outage", false,
                         "Redis was restarted or replaced: tasks start when all workers have "
                         "returned, at the latest ");
    reasons_time(reason, outage_ms, status->now_ms);
    reasons_put_number(reason, "until_ms", outage_ms);
    for (size_t i = 0; awaited && i < awaited->elements; i++) {
        reasons_printf(reason, i > 0 ? ", " : "; not back yet: ");
        reasons_bytes(reason, fields_value(awaited->element[i]));
    }
}

static void explain_rate(struct explanation *explanation)
{
    const struct status *status = &explanation->status;
    int64_t next_ms = status_figure(status, "rate_next_ms");
    struct bytes rate = fields_bytes(status->conf, "rate");
    struct explain_reason *reason;

    if (next_ms <= status->now_ms) {
        return;
    }
    reason = reasons_add(explanation, "rate", false, "the queue starts at most ");
    reasons_bytes(reason, rate);
    reasons_printf(reason, ": the next task starts in ");
    reasons_span(reason, next_ms - status->now_ms);
    reasons_put_text(reason, "rate", rate);
    reasons_put_number(reason, "next_ms", next_ms);
}

static void explain_group(struct explanation *explanation)
{
    const char *group = explanation->queue->group;
    const struct status *status = &explanation->status;
    struct bytes theirs = fields_bytes(status->conf, "group");
    struct explain_reason *reason;

    if (theirs.size > 0 && !bytes_equal(theirs, group)) {
        reason = reasons_add(explanation, "group", false, "the workers' group is ");
        reasons_bytes(reason, theirs);
        reasons_printf(reason, ", not %s, so this answer may be wrong; change [queue] group",
                       group);
        reasons_put_text(reason, "group", theirs);
    } else if (status_figure(status, "other_groups") > 0) {
        reason = reasons_add(explanation, "other-group", true,
                             "another consumer group reads the stream, so no worker starts there; "
                             "leat doctor names it");
        reasons_put_number(reason, "groups", status_figure(status, "other_groups"));
    }
}

void explain_queue(struct explanation *explanation)
{
    explain_pause(explanation);
    explain_group(explanation);
    explain_holds(explanation);
    explain_rate(explanation);
}

/* ---- a lane */

static void add_lane_name(struct explain_reason *reason, const struct status *status)
{
    struct bytes lane = fields_bytes(status->figures, "lane");

    if (lane.size == 0) {
        reasons_printf(reason, "the lane of tasks without one");
        return;
    }
    reasons_printf(reason, "lane ");
    reasons_bytes(reason, lane);
    reasons_put_text(reason, "lane", lane);
}

static void explain_cap(struct explanation *explanation)
{
    const struct status *status = &explanation->status;
    int64_t most = status_figure(status, "lane_most"), runs = status_figure(status, "lane_running");
    const struct redisReply *holders = fields_find(status->figures, "lane_holders");
    struct explain_reason *reason;

    if (most == 0 || runs < most) {
        return;
    }
    reason = reasons_add(explanation, "lane-full", false, "%s", "");
    add_lane_name(reason, status);
    reasons_printf(reason, " runs %lld of %lld", (long long)runs, (long long)most);
    if (fields_count(holders) > 0) {
        reasons_printf(reason, ": ");
        reasons_tasks(reason, holders);
    }
    reasons_put_number(reason, "running", runs);
    reasons_put_number(reason, "most", most);
}

static void explain_lane_rate(struct explanation *explanation)
{
    const struct status *status = &explanation->status;
    int64_t next_ms = status_figure(status, "lane_next_ms");
    struct bytes settings = fields_bytes(status->figures, "lane_settings");
    struct explain_reason *reason;

    if (next_ms <= status->now_ms) {
        return;
    }
    reason = reasons_add(explanation, "lane-rate", false, "the rate of ");
    add_lane_name(reason, status);
    reasons_printf(reason, " (");
    reasons_bytes(reason, settings);
    reasons_printf(reason, ") lets its next task start in ");
    reasons_span(reason, next_ms - status->now_ms);
    reasons_put_text(reason, "settings", settings);
    reasons_put_number(reason, "next_ms", next_ms);
}

/* The place of the task among those of its lane, and of the lane among all. */
static void explain_turn(struct explanation *explanation)
{
    const struct status *status = &explanation->status;
    int64_t place = fields_number(status->figures, "lane_place", -1);
    int64_t before = fields_number(status->figures, "lanes_before", -1);
    int64_t waiting = status_figure(status, "lane_waiting");
    struct explain_reason *reason;

    if (waiting == 0) {
        return;
    }
    reason = reasons_add(explanation, "lane-turn", false, "%s", "");
    add_lane_name(reason, status);
    if (place >= 0) {
        reasons_printf(reason, ": number %lld of %lld waiting tasks", (long long)place + 1,
                       (long long)waiting);
        reasons_put_number(reason, "before", place);
    } else {
        reasons_printf(reason, ": %lld waiting task%s", (long long)waiting,
                       waiting == 1 ? "" : "s");
    }
    reasons_put_number(reason, "waiting", waiting);
    if (before == 0) {
        reasons_printf(reason, "; this lane is next");
    } else if (before > 0) {
        reasons_printf(reason, "; lanes with an earlier turn: %lld", (long long)before);
    }
    if (before >= 0) {
        reasons_put_number(reason, "lanes_before", before);
    }
}

void explain_lane(struct explanation *explanation)
{
    if (!fields_find(explanation->status.figures, "lane")) {
        return;
    }
    explain_cap(explanation);
    explain_lane_rate(explanation);
    explain_turn(explanation);
}
