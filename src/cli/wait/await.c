#include "cli/wait/await.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/lib/reply_fields.h"
#include "cli/wait/retry_call.h"
#include "cli/wait/stall.h"
#include "queue/result_streams.h"

#define WINDOW 1000 /* tasks in one blocking read */
#define GATHER_MS                                                                                  \
    20 /* ends that come closer together are read at once: each read names the window */
#define BLOCK_MS 20000  /* then those beyond the window are looked at: results stay for a minute */
#define RENEW_MS 60000  /* so often it is said that somebody waits, */
#define AWAIT_MS 150000 /* and for so long */

struct item {
    const char *asked;
    char *tid; /* owned; as asked until the queue has told it */
    bool ended;
    bool alive; /* within look: found so */
    bool ask;   /* within look: to be asked for */
};

struct await {
    struct cli *cli;
    struct await_events events;
    struct item *items;
    size_t count;
    struct item **by_tid;  /* sorted, once tids are known */
    struct item **pending; /* in the order given */
    size_t pending_count;
    int64_t renewed_ns, swept_ns, read_ns; /* when that was done last */
    struct command command;
    struct patience patience;
    struct stall stall;
};

/* Steps return 0, or -1 where a call failed or patience.status was set. */

static void fail(struct await *await, int status)
{
    if (await->patience.status == EX_OK) {
        await->patience.status = status;
    }
}

static bool has_failed(const struct await *await)
{
    return await->patience.status != EX_OK;
}

static struct redisReply *call(struct await *await, size_t elements)
{
    return patience_call(&await->patience, await->cli, &await->command, elements);
}

/* ---- ends */

static int compare_tids(const void *a, const void *b)
{
    return strcmp((*(struct item *const *)a)->tid, (*(struct item *const *)b)->tid);
}

/* The first item of that task in by_tid, or NULL. */
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

/* A task may have been asked for twice, by its id and its label. */
static void settle(struct await *await, const char *tid, const struct ended *ended)
{
    struct item **at = find_tid(await, tid), **end = await->by_tid + await->count;

    for (; at && at < end && strcmp((*at)->tid, tid) == 0; at++) {
        if ((*at)->ended) {
            continue;
        }
        (*at)->ended = true;
        fail(await, await->events.ended(await->events.context, tid, (*at)->asked, ended));
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
    struct ended ended;

    ended_read_result(entry->fields, &ended);
    settle(await, entry->tid, &ended);
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
        cli_error("Redis answered in a form that this leat does not know: install the same "
                  "version everywhere");
        fail(await, EX_PROTOCOL);
    }
    return has_failed(await) ? -1 : 0;
}

/* Those that are there already. */
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

/* ---- saying that somebody waits */

/* ms 0: not any more. The queue answers tids: labels hold no longer than their tasks live. */
static int tell_some(struct await *await, struct item *const *items, size_t count, int64_t ms)
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

static int tell_all(struct await *await)
{
    int64_t now_ns = clock_boot_ns();

    for (size_t i = 0; i < await->pending_count; i += QUEUE_NAMED_MAX) {
        size_t left = await->pending_count - i;
        if (tell_some(await, await->pending + i, left < QUEUE_NAMED_MAX ? left : QUEUE_NAMED_MAX,
                      AWAIT_MS)) {
            return -1;
        }
    }
    await->renewed_ns = now_ns;
    return await->by_tid ? 0 : sort_items(await);
}

/* ---- where tasks are: some of `pending` at a time */

struct group {
    struct item **items;
    size_t count;
};

/* Marks those that are neither alive nor ended as to be asked for; answers how many. */
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
        struct ended ended;
        bytes_copy(fields_bytes(row, "tid"), tid, sizeof tid);
        at = find_tid(await, tid);
        if (at && bytes_equal(fields_bytes(row, "state"), "alive")) {
            for (; at < await->by_tid + await->count && strcmp((*at)->tid, tid) == 0; at++) {
                (*at)->alive = true;
            }
        } else if (at) {
            ended_read_letter(row, &ended);
            settle(await, tid, &ended);
        }
    }
}

/* Only these are left to ask for: they stand in the order of the group. */
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

/* Goes on from the cursor to the end of what it leads through, for those to be asked for. */
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

/* Nothing tells what became of them. Of the others that live no more no end will be told, either.
 */
static int give_up(struct await *await, const struct group *group)
{
    struct item *gone[QUEUE_NAMED_MAX];
    struct ended unknown;
    size_t count = 0;

    ended_set_unknown(&unknown);
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
    return count > 0 && tell_some(await, gone, count, 0) ? -1 : 0;
}

/* Whoever is not found among the living, in a walk through them that misses nobody, has ended: a
 * dead letter, or a result that came meanwhile, says how. */
static int look_group(struct await *await, const struct group *group)
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
    /* who was called back from the dead stands behind the first walk's end */
    if (mark_missing(group) > 0 && scan(await, group, alive)) {
        return -1;
    }
    if (mark_missing(group) > 0 && read_results(await, group->items, group->count)) {
        return -1;
    }
    return give_up(await, group);
}

static int look(struct await *await)
{
    for (size_t i = 0; i < await->pending_count; i += WINDOW) {
        size_t left = await->pending_count - i;
        const struct group group = {await->pending + i, left < WINDOW ? left : WINDOW};
        if (look_group(await, &group)) {
            return -1;
        }
    }
    drop_ended(await);
    return 0;
}

/* From now on no end is missed, and what has ended before is known. */
static int begin(struct await *await)
{
    return tell_all(await) || sweep(await) || look(await) ? -1 : 0;
}

/* ---- waiting */

static void gather(const struct await *await)
{
    int64_t wait_ns = await->read_ns + GATHER_MS * CLOCK_NS_PER_MS - clock_boot_ns();
    struct timespec wait = {.tv_nsec = (long)wait_ns};

    /* interrupted, it is shorter */
    if (await->pending_count > 1 && wait_ns > 0) {
        (void)nanosleep(&wait, NULL);
    }
}

/* Until one of the window has ended, or it is time for something else. */
static int block(struct await *await)
{
    int64_t block_ms = patience_left_ms(&await->patience, stall_left_ms(&await->stall, BLOCK_MS));
    size_t count = await->pending_count < WINDOW ? await->pending_count : WINDOW;
    size_t before = await->pending_count;
    struct redisReply *reply;

    ask_results(await, await->pending, count, block_ms);
    reply = patience_block(&await->patience, await->cli, &await->command, block_ms);
    await->read_ns = clock_boot_ns();
    if (!reply || take_results(await, reply)) {
        return -1;
    }
    drop_ended(await);
    if (await->pending_count == before && stall_is_due(&await->stall)) {
        stall_look(&await->stall, await->cli);
    }
    return 0;
}

static bool is_over(int64_t since_ns, int64_t ms)
{
    return clock_boot_ns() - since_ns >= ms * CLOCK_NS_PER_MS;
}

/* Until all have ended, or the deadline. */
static int follow(struct await *await)
{
    if (begin(await)) {
        return -1;
    }
    patience_end(&await->patience);
    while (await->pending_count > 0 && clock_boot_ns() < await->patience.deadline_ns) {
        gather(await);
        if (block(await)) {
            return -1;
        }
        /* looked, too: tasks are deleted by hand, and machines sleep for longer than AWAIT_MS */
        if (is_over(await->renewed_ns, RENEW_MS) && begin(await)) {
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
        status = await->patience.status;
        drop_ended(await);
        if (status == EX_OK) {
            status = patience_reconnect(&await->patience, await->cli);
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
        .patience = {.what = "cannot wait for the tasks", .deadline_ns = deadline_ns},
    };
    int status = make_items(&await, ids) ? cli_no_memory() : run(&await);

    *left = await.pending_count;
    for (size_t i = 0; i < count && await.items; i++) {
        free(await.items[i].tid);
    }
    free(await.items);
    free((void *)await.by_tid);
    free((void *)await.pending);
    command_free(&await.command);
    return status;
}
