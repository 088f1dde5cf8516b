/*
 * Waiting until tasks have ended. Workers write the result of a task to a stream if somebody has
 * announced that they wait for it; one blocking read covers up to WINDOW of these streams. Tasks
 * that ended before, or that nobody will report, are found by looking for them in the queue.
 */
#include "cli/wait/await.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/wait/retry_call.h"
#include "cli/wait/stall.h"
#include "queue/calls.h"
#include "queue/replies.h"
#include "queue/result_streams.h"
#include "view/reply_fields.h"

#define WINDOW 1000  /* tasks per blocking read */
#define GATHER_MS 20 /* at least between two reads, each of which names all tasks of the window */
/* The longest blocking read. Tasks outside the window are read after it, in time: their results
 * stay for a minute. */
#define BLOCK_MS 20000
#define RENEW_MS 60000  /* between announcements that somebody waits */
#define AWAIT_MS 150000 /* how long an announcement is valid */

struct item {
    const char *asked;
    char *tid; /* owned; `asked` until Redis resolves it */
    bool ended;
    bool alive; /* in check_group: it was found in the queue */
    bool ask;   /* in check_group: to be looked for */
};

struct await {
    struct cli *cli;
    struct await_events events;
    struct item *items;
    size_t count;
    struct item **by_tid;  /* sorted; NULL until the tids are known */
    struct item **pending; /* have not ended, in the order given */
    size_t pending_count;
    int64_t renewed_ns, swept_ns, read_ns; /* time of the last one */
    int64_t expires_ns; /* when the first task expires if it has not started; INT64_MAX: never */
    struct command command;
    struct retry retry;
    struct stall stall;
};

/* Steps return 0, or -1 if a call failed or retry.status was set. */

static void fail(struct await *await, int status)
{
    if (await->retry.status == EX_OK) {
        await->retry.status = status;
    }
}

static bool has_failed(const struct await *await)
{
    return await->retry.status != EX_OK;
}

static struct redisReply *call(struct await *await, size_t elements)
{
    return retry_call(&await->retry, await->cli, &await->command, elements);
}

/* ---- tasks that have ended */

static int compare_tids(const void *a, const void *b)
{
    return strcmp((*(struct item *const *)a)->tid, (*(struct item *const *)b)->tid);
}

/* Returns the first item of that task in by_tid, or NULL. */
static struct item **find_tid(const struct await *await, const char *tid)
{
    size_t low = 0, high = await->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(await->by_tid[middle]->tid, tid) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < await->count && strcmp(await->by_tid[low]->tid, tid) == 0 ? &await->by_tid[low]
                                                                           : NULL;
}

/* Reports the result for each item of the task: it may have been given by its id and by its label.
 */
static void settle(struct await *await, const char *tid, const struct result *result)
{
    struct item **at = find_tid(await, tid), **end = await->by_tid + await->count;

    for (; at && at < end && strcmp((*at)->tid, tid) == 0; at++) {
        if ((*at)->ended) {
            continue;
        }
        (*at)->ended = true;
        fail(await, await->events.ended(await->events.context, tid, (*at)->asked, result));
    }
}

static void drop_ended(struct await *await)
{
    size_t kept = 0;

    for (size_t i = 0; i < await->pending_count; i++) {
        if (!await->pending[i]->ended) {
            await->pending[kept++] = await->pending[i];
        }
    }
    await->pending_count = kept;
}

static void on_result(void *context, const struct queue_entry *entry)
{
    struct await *await = context;
    struct result result;

    result_read(entry->fields, &result);
    settle(await, entry->tid, &result);
}

/* ---- results */

static void ask_results(struct await *await, struct item *const *items, size_t count,
                        int64_t block_ms)
{
    struct queue_source sources[WINDOW];

    for (size_t i = 0; i < count; i++) {
        sources[i] = (struct queue_source){QUEUE_RESULT, items[i]->tid, QUEUE_FROM_START};
    }
    queue_read(&await->command, &await->cli->queue, sources, count, 1, block_ms);
}

static int take_results(struct await *await, struct redisReply *reply)
{
    int result = queue_read_entries(&await->cli->queue, reply, on_result, await);

    freeReplyObject(reply);
    if (result < 0) {
        fail(await, cli_unexpected_reply());
    }
    return has_failed(await) ? -1 : 0;
}

/* Reads the results that exist already. */
static int read_results(struct await *await, struct item *const *items, size_t count)
{
    struct redisReply *reply;

    ask_results(await, items, count, 0);
    reply = call(await, 0);
    return reply ? take_results(await, reply) : -1;
}

static int sweep(struct await *await)
{
    await->swept_ns = clock_boot_ns();
    for (size_t i = 0; i < await->pending_count; i += WINDOW) {
        size_t left = await->pending_count - i;
        if (read_results(await, await->pending + i, left < WINDOW ? left : WINDOW)) {
            return -1;
        }
    }
    drop_ended(await);
    return 0;
}

/* ---- announcing that somebody waits */

/* ms: until one of the tasks expires; -1: none of them does. */
static void note_expiry(struct await *await, int64_t ms)
{
    int64_t at_ns = clock_boot_ns() + (ms + 1) * CLOCK_NS_PER_MS;

    if (ms >= 0 && at_ns < await->expires_ns) {
        await->expires_ns = at_ns;
    }
}

/* Announces for ms; 0 withdraws. The reply has the tids, since a label is gone when its task ends.
 */
static int announce_some(struct await *await, struct item *const *items, size_t count, int64_t ms)
{
    struct redisReply *reply;

    queue_await_begin(&await->command, &await->cli->queue, ms);
    for (size_t i = 0; i < count; i++) {
        queue_await_add(&await->command, items[i]->tid);
    }
    reply = call(await, 2 + count);
    if (!reply) {
        return -1;
    }
    note_expiry(await, queue_await_expires_ms(reply, count));
    for (size_t i = 0; i < count && !await->by_tid; i++) {
        struct bytes tid = fields_value(reply->element[2 + i]);
        free(items[i]->tid);
        items[i]->tid = strndup(tid.data, tid.size);
        if (!items[i]->tid) {
            fail(await, cli_no_memory());
        }
    }
    freeReplyObject(reply);
    return has_failed(await) ? -1 : 0;
}

static int sort_items(struct await *await)
{
    await->by_tid = calloc(await->count, sizeof(struct item *));
    if (!await->by_tid) {
        fail(await, cli_no_memory());
        return -1;
    }
    for (size_t i = 0; i < await->count; i++) {
        await->by_tid[i] = &await->items[i];
    }
    qsort((void *)await->by_tid, await->count, sizeof(struct item *), compare_tids);
    return 0;
}

static int announce_all(struct await *await)
{
    int64_t now_ns = clock_boot_ns();

    await->expires_ns = INT64_MAX;
    for (size_t i = 0; i < await->pending_count; i += QUEUE_NAMED_MAX) {
        size_t left = await->pending_count - i;
        if (announce_some(await, await->pending + i,
                          left < QUEUE_NAMED_MAX ? left : QUEUE_NAMED_MAX, AWAIT_MS)) {
            return -1;
        }
    }
    await->renewed_ns = now_ns;
    return await->by_tid ? 0 : sort_items(await);
}

/* ---- looking for tasks in the queue, a group of `pending` at a time */

struct group {
    struct item **items;
    size_t count;
};

/* Marks the items that are neither alive nor ended, to be looked for. Returns their number. */
static size_t mark_missing(const struct group *group)
{
    size_t missing = 0;

    for (size_t i = 0; i < group->count; i++) {
        struct item *item = group->items[i];
        item->ask = !item->alive && !item->ended;
        missing += item->ask;
    }
    return missing;
}

static void take_rows(struct await *await, const struct redisReply *rows)
{
    for (size_t i = 0; i < rows->elements; i++) {
        const struct redisReply *row = rows->element[i];
        char tid[QUEUE_CURSOR_SIZE];
        struct item **at;
        struct result result;
        bytes_copy(fields_bytes(row, "tid"), tid, sizeof tid);
        at = find_tid(await, tid);
        if (at && bytes_equal(fields_bytes(row, "state"), "alive")) {
            for (; at < await->by_tid + await->count && strcmp((*at)->tid, tid) == 0; at++) {
                (*at)->alive = true;
            }
        } else if (at) {
            result_read_letter(row, &result);
            settle(await, tid, &result);
        }
    }
}

/* Marks only the items that the reply names as not searched for completely. They are in the order
 * of the group. Returns their number. */
static size_t mark_later(const struct group *group, const struct redisReply *later)
{
    size_t found = 0;

    for (size_t i = 0; i < group->count; i++) {
        struct item *item = group->items[i];
        item->ask =
            found < later->elements && bytes_equal(fields_value(later->element[found]), item->tid);
        found += item->ask;
    }
    return found;
}

/* Looks for the marked items from the cursor to the end of its list. */
static int scan(struct await *await, const struct group *group, char cursor[QUEUE_CURSOR_SIZE])
{
    bool at_end = false;

    for (size_t left = 1; !at_end || left > 0;) {
        struct redisReply *reply;
        queue_find_begin(&await->command, &await->cli->queue, cursor);
        for (size_t i = 0; i < group->count; i++) {
            if (group->items[i]->ask) {
                queue_find_add(&await->command, group->items[i]->tid);
            }
        }
        reply = call(await, 5);
        if (!reply) {
            return -1;
        }
        bytes_copy(fields_value(reply->element[1]), cursor, QUEUE_CURSOR_SIZE);
        at_end = fields_integer(reply->element[2], 1) != 0;
        take_rows(await, reply->element[3]);
        left = at_end ? mark_later(group, reply->element[4]) : 1;
        freeReplyObject(reply);
        if (has_failed(await)) {
            return -1;
        }
    }
    return 0;
}

/* Reports items whose result nobody knows, and withdraws the announcements for all that are gone.
 */
static int report_unknown(struct await *await, const struct group *group)
{
    struct item *gone[QUEUE_NAMED_MAX];
    struct result unknown;
    size_t count = 0;

    result_set_unknown(&unknown);
    for (size_t i = 0; i < group->count; i++) {
        struct item *item = group->items[i];
        if (item->alive) {
            continue;
        }
        gone[count++] = item;
        if (!item->ended) {
            settle(await, item->tid, &unknown);
        }
    }
    return count > 0 && announce_some(await, gone, count, 0) ? -1 : 0;
}

/* Looks for each item of the group. A task that a complete scan of the queue does not find has
 * ended: a dead letter, or a result that came meanwhile, tells how. */
static int check_group(struct await *await, const struct group *group)
{
    char alive[QUEUE_CURSOR_SIZE] = QUEUE_FIND_ALIVE, dead[QUEUE_CURSOR_SIZE] = QUEUE_FIND_DEAD;

    for (size_t i = 0; i < group->count; i++) {
        group->items[i]->alive = false;
    }
    if (mark_missing(group) > 0 && scan(await, group, alive)) {
        return -1;
    }
    if (mark_missing(group) > 0 && scan(await, group, dead)) {
        return -1;
    }
    /* a dead letter that was retried meanwhile is after the end of the first scan */
    if (mark_missing(group) > 0 && scan(await, group, alive)) {
        return -1;
    }
    if (mark_missing(group) > 0 && read_results(await, group->items, group->count)) {
        return -1;
    }
    return report_unknown(await, group);
}

static int check_all(struct await *await)
{
    for (size_t i = 0; i < await->pending_count; i += WINDOW) {
        size_t left = await->pending_count - i;
        const struct group group = {await->pending + i, left < WINDOW ? left : WINDOW};
        if (check_group(await, &group)) {
            return -1;
        }
    }
    drop_ended(await);
    return 0;
}

/* Announces, so that no result is missed from now on, and finds tasks that have ended before. */
static int begin(struct await *await)
{
    return announce_all(await) || sweep(await) || check_all(await) ? -1 : 0;
}

/* ---- waiting */

static void gather(const struct await *await)
{
    int64_t wait_ns = await->read_ns + GATHER_MS * CLOCK_NS_PER_MS - clock_boot_ns();
    struct timespec wait = {.tv_nsec = (long)wait_ns};

    /* a signal may cut it short */
    if (await->pending_count > 1 && wait_ns > 0) {
        (void)nanosleep(&wait, NULL);
    }
}

/* Waits until a task of the window has ended, or for block_ms. */
static int block(struct await *await)
{
    int64_t most_ms = retry_until_ms(await->expires_ns, stall_left_ms(&await->stall, BLOCK_MS));
    int64_t block_ms = retry_left_ms(&await->retry, most_ms);
    size_t count = await->pending_count < WINDOW ? await->pending_count : WINDOW;
    size_t before = await->pending_count;
    struct redisReply *reply;

    ask_results(await, await->pending, count, block_ms);
    reply = retry_blocking_call(&await->retry, await->cli, &await->command, block_ms);
    await->read_ns = clock_boot_ns();
    if (!reply || take_results(await, reply)) {
        return -1;
    }
    drop_ended(await);
    if (await->pending_count == before && stall_is_due(&await->stall)) {
        stall_check(&await->stall, await->cli);
    }
    return 0;
}

static bool is_over(int64_t since_ns, int64_t ms)
{
    return clock_boot_ns() - since_ns >= ms * CLOCK_NS_PER_MS;
}

/* Waits until all tasks have ended, or until the deadline. */
static int follow(struct await *await)
{
    if (begin(await)) {
        return -1;
    }
    retry_recovered(&await->retry);
    while (await->pending_count > 0 && clock_boot_ns() < await->retry.deadline_ns) {
        gather(await);
        if (block(await)) {
            return -1;
        }
        /* check again, too: operators delete entries, and a suspended machine may miss AWAIT_MS */
        if ((is_over(await->renewed_ns, RENEW_MS) || clock_boot_ns() >= await->expires_ns) &&
            begin(await)) {
            return -1;
        }
        if (await->pending_count > WINDOW && is_over(await->swept_ns, BLOCK_MS) && sweep(await)) {
            return -1;
        }
    }
    return 0;
}

static int make_items(struct await *await, char *const *ids)
{
    await->items = calloc(await->count + 1, sizeof *await->items);
    await->pending = calloc(await->count + 1, sizeof(struct item *));
    if (!await->items || !await->pending) {
        return -1;
    }
    for (size_t i = 0; i < await->count; i++) {
        struct item *item = &await->items[i];
        *item = (struct item){.asked = ids[i], .tid = strdup(ids[i])};
        await->pending[await->pending_count++] = item;
        if (!item->tid) {
            return -1;
        }
    }
    return 0;
}

static int run(struct await *await)
{
    int status = cli_connect(await->cli);

    while (status == EX_OK && follow(await)) {
        status = await->retry.status;
        drop_ended(await);
        if (status == EX_OK) {
            status = retry_reconnect(&await->retry, await->cli);
        }
    }
    return status == EX_OK && await->pending_count > 0 ? EX_TEMPFAIL : status;
}

int await_tasks(struct cli *cli, char *const *ids, size_t count, int64_t deadline_ns,
                const struct await_events *events, size_t *left)
{
    struct await await = {
        .cli = cli,
        .events = *events,
        .count = count,
        .expires_ns = INT64_MAX,
        .retry = {.what = "cannot wait for the tasks", .deadline_ns = deadline_ns},
    };
    int status = make_items(&await, ids) ? cli_no_memory() : run(&await);

    *left = await.pending_count;
    if (events->expires_ns) {
        *events->expires_ns = await.expires_ns;
    }
    for (size_t i = 0; i < count && await.items; i++) {
        free(await.items[i].tid);
    }
    free(await.items);
    free((void *)await.by_tid);
    free((void *)await.pending);
    command_free(&await.command);
    return status;
}
