/*
 * The part of the runner that has resident processes.
 */
#include "exec/runner.h"

#include <stdio.h>
#include <stdlib.h>

#include "exec/attempt/child.h"
#include "exec/runner_state.h"

static void on_settled(struct child_host *host, struct child *child, struct attempt *attempt)
{
    struct runner *runner = (struct runner *)host;
    runner_list_remove(runner, attempt);
    residents_update(&runner->residents, child, resident_count(child) + 1);
    runner->events.ended(runner->events.context, attempt);
}

static void on_resident(struct child_host *host, struct child *child, enum resident_news news,
                        const char *text)
{
    struct runner *runner = (struct runner *)host;
    residents_news(&runner->residents, child, news, text);
}

static void on_residents_event(void *context, enum residents_event event, pid_t pid,
                               const char *text)
{
    struct runner *runner = context;
    if (runner->events.resident) {
        runner->events.resident(runner->events.context, event == RESIDENTS_CANNOT_RUN, pid, text);
    }
}

static int start_resident(void *context, struct child *child, char *reason, size_t reason_size)
{
    struct runner *runner = context;
    bool ready = runner_make_recipe(runner) == 0 &&
                 slot_index_take(runner->slot_indexes, &child->slot_index) == 0;
    if (ready && runner_launch(runner, child) == 0) {
        return 0;
    }
    (void)snprintf(reason, reason_size, "%s", ready ? child->attempt.reason : "out of memory");
    resident_free(child->resident);
    free(child->others);
    attempt_free(&child->attempt);
    return -1;
}

void runner_keep_residents(struct runner *runner, size_t waiting)
{
    size_t each = (size_t)runner->host.config->task.batch;
    size_t needed = waiting > 0 ? runner->residents.busy + (waiting + each - 1) / each : 0;
    residents_keep(&runner->residents, needed);
}

size_t runner_room(const struct runner *runner, size_t slots)
{
    return residents_room(&runner->residents, slots);
}

bool runner_can_hand_over(const struct runner *runner, bool slot)
{
    return residents_find(&runner->residents, slot);
}

bool runner_reads_residents(const struct runner *runner)
{
    struct outlet outlet;
    outlet_begin(&outlet, runner->host.config, NULL, false, 0);
    return outlet_ends(&outlet, runner->host.config, false) == START_PIPES;
}

int runner_hand_over(struct runner *runner, const struct claimed_task *claimed, bool slot)
{
    struct child *child = residents_find(&runner->residents, slot);
    size_t former = resident_count(child);
    struct attempt *attempt = resident_take(child, claimed);
    if (!attempt) {
        return -1;
    }
    runner_list_add(runner, attempt);
    residents_update(&runner->residents, child, former);
    return 0;
}

size_t runner_residents(const struct runner *runner)
{
    return runner->residents.count;
}

void runner_close_residents(struct runner *runner)
{
    residents_close(&runner->residents);
}

void runner_end_residents(struct runner *runner, enum job_event event)
{
    residents_end(&runner->residents, event);
}

void runner_init_residents(struct runner *runner)
{
    runner->host.settled = on_settled;
    runner->host.resident = on_resident;
    residents_init(&runner->residents, &runner->host);
    runner->residents.start = start_resident;
    runner->residents.event = on_residents_event;
    runner->residents.context = runner;
}
