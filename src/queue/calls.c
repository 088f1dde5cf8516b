/* Builds the calls of the function library. */
#include "queue/calls.h"

#include "base/units.h"
#include "queue/library.h"

/* ---- workers' functions ---- */

static void begin_function(struct command *command, const struct queue *queue, const char *name,
                           size_t keys)
{
    queue_begin(command, queue, name, keys, 0);
}

/* Workers' functions take the group and the consumer first. */
static void begin_worker(struct command *command, const struct queue *queue, const char *name,
                         const char *consumer)
{
    begin_function(command, queue, name, QUEUE_KEYS);
    COMMAND_ADD(command, queue->group, consumer);
}

void queue_claim(struct command *command, const struct queue *queue, const char *consumer,
                 int64_t wanted, int64_t running, const char *cursor, const char *const *tokens,
                 size_t token_count)
{
    begin_worker(command, queue, "leat_claim", consumer);
    command_add_number(command, wanted);
    command_add_number(command, running);
    command_add_text(command, cursor);
    command_add_texts(command, tokens, token_count);
}

void queue_renew(struct command *command, const struct queue *queue, const char *consumer,
                 const char *heartbeat, const char *const *tokens, size_t token_count)
{
    begin_worker(command, queue, "leat_renew", consumer);
    command_add_text(command, heartbeat);
    command_add_texts(command, tokens, token_count);
}

void queue_report(struct command *command, const struct queue *queue, const char *consumer,
                  const char *heartbeat)
{
    begin_worker(command, queue, "leat_report", consumer);
    command_add_text(command, heartbeat);
}

void queue_register(struct command *command, const struct queue *queue, const char *consumer,
                    const char *heartbeat, const struct queue_default *defaults,
                    size_t default_count, const char *const *tokens, size_t token_count)
{
    begin_worker(command, queue, "leat_register", consumer);
    command_add_text(command, heartbeat);
    command_add_number(command, (int64_t)default_count);
    for (size_t i = 0; i < default_count; i++) {
        COMMAND_ADD(command, defaults[i].name, defaults[i].value);
    }
    command_add_texts(command, tokens, token_count);
}

void queue_finish_begin(struct command *command, const struct queue *queue, const char *consumer)
{
    begin_worker(command, queue, "leat_finish", consumer);
}

struct pair {
    const char *name;
    struct bytes value;
};

/* The number as text in `text`, of size UNITS_INTEGER_SIZE, which must live as long as the result.
 */
static struct bytes number_of(int64_t number, char *text)
{
    return (struct bytes){text, units_format_integer(number, text)};
}

/* Empty values are not sent: each argument costs Redis a microsecond. */
void queue_finish_add(struct command *command, const struct queue_result *result)
{
    const struct bytes nothing = bytes_of(NULL);
    char delay[UNITS_INTEGER_SIZE], duration[UNITS_INTEGER_SIZE], ttl[UNITS_INTEGER_SIZE];
    bool delays = result->outcome == VERDICT_RETRY ||
                  (result->outcome == VERDICT_RELEASE && result->delay_ms > 0);
    const struct pair pairs[] = {
        {"cause", bytes_of(result->cause)},
        {"status", bytes_of(result->status)},
        {"reason", bytes_of(result->reason)},
        {"delay_ms", delays ? number_of(result->delay_ms, delay) : nothing},
        {"duration_us", result->duration_us ? number_of(result->duration_us, duration) : nothing},
        {"stdout", result->stdout_tail},
        {"stderr", result->stderr_tail},
        {"usage", bytes_of(result->usage)},
        {"again", bytes_of(result->again ? "1" : "")},
        {"unclaimed", bytes_of(result->unclaimed ? "1" : "")},
        {"result_ttl_ms", result->result_ttl_ms ? number_of(result->result_ttl_ms, ttl) : nothing},
        {"history", result->history},
    };
    const size_t count = sizeof pairs / sizeof pairs[0];
    size_t told = 0;

    for (size_t i = 0; i < count; i++) {
        told += pairs[i].value.size > 0;
    }
    COMMAND_ADD(command, result->token, verdict_name(result->outcome));
    command_add_number(command, (int64_t)told);
    for (size_t i = 0; i < count; i++) {
        if (pairs[i].value.size > 0) {
            command_add_text(command, pairs[i].name);
            command_add_bytes(command, pairs[i].value);
        }
    }
}

void queue_finish_add_successes(struct command *command, struct bytes records)
{
    command_add_text(command, "successes");
    command_add_bytes(command, records);
}

/* WAIT covers the writes of its own connection only. This counter is such a write, and a replica
 * that has it has everything that Redis did before it. */
void queue_mark(struct command *command, const struct queue *queue, const char *counter,
                int64_t count)
{
    COMMAND_BEGIN(command, "HINCRBY", queue->keys[QUEUE_KEY_STATS], counter);
    command_add_number(command, count);
}

void queue_write_nothing(struct command *command, const struct queue *queue)
{
    COMMAND_BEGIN(command, "HDEL", queue->keys[QUEUE_KEY_STATS], "nothing");
}

void queue_wait_replicas(struct command *command, int64_t replicas, int64_t timeout_ms)
{
    COMMAND_BEGIN(command, "WAIT");
    command_add_number(command, replicas);
    command_add_number(command, timeout_ms);
}

void queue_requeue(struct command *command, const struct queue *queue, const char *consumer,
                   bool died)
{
    begin_worker(command, queue, "leat_requeue", consumer);
    command_add_text(command, died ? "1" : "0");
}

void queue_tell(struct command *command, const struct queue *queue, int64_t wanted, int64_t wait_ms,
                char *const *settled, size_t settled_count)
{
    begin_function(command, queue, "leat_tell", QUEUE_KEYS);
    command_add_number(command, wanted);
    command_add_number(command, wait_ms);
    command_add_texts(command, (const char *const *)settled, settled_count);
}

/* ---- plain commands ---- */

void queue_block(struct command *command, const struct queue *queue, const char *consumer,
                 int64_t count, int64_t block_ms)
{
    COMMAND_BEGIN(command, "XREADGROUP", "GROUP", queue->group, consumer, "COUNT");
    command_add_number(command, count);
    COMMAND_ADD(command, "BLOCK");
    command_add_number(command, block_ms);
    COMMAND_ADD(command, "STREAMS", queue->keys[QUEUE_KEY_GO], queue->keys[QUEUE_KEY_STREAM], ">",
                ">");
}

void queue_listen(struct command *command, const struct queue *queue, const char *wakeup_id,
                  int64_t block_ms)
{
    COMMAND_BEGIN(command, "XREAD", "BLOCK");
    command_add_number(command, block_ms);
    COMMAND_ADD(command, "STREAMS", queue->keys[QUEUE_KEY_BELL], wakeup_id);
}

void queue_probe(struct command *command, const struct queue *queue, enum queue_probe probe)
{
    const char *stream = queue->keys[QUEUE_KEY_STREAM];

    switch (probe) {
    case QUEUE_PROBE_READ:
        /* from the greatest id to the smallest: nothing */
        COMMAND_BEGIN(command, "XRANGE", stream, "+", "-");
        break;
    case QUEUE_PROBE_ADD:
        COMMAND_BEGIN(command, "XADD", stream, "no-id", "command", "false");
        break;
    case QUEUE_PROBE_LOAD:
        COMMAND_BEGIN(command, "FUNCTION", "LOAD", "no library");
        break;
    case QUEUE_PROBE_CONFIGURE:
        COMMAND_BEGIN(command, "CONFIG", "SET", "no-setting-of-redis", "0");
        break;
    }
}

void queue_version(struct command *command)
{
    COMMAND_BEGIN(command, "FCALL", "leat_version", "0");
}

void queue_load_library(struct command *command, bool replace)
{
    COMMAND_BEGIN(command, "FUNCTION", "LOAD");
    if (replace) {
        command_add_text(command, "REPLACE");
    }
    command_add(command, library_source, library_size());
}

void queue_library_code(struct command *command)
{
    COMMAND_BEGIN(command, "FUNCTION", "LIST", "LIBRARYNAME", "leat", "WITHCODE");
}

/* ---- producers' and operators' functions ---- */

void queue_enqueue_begin(struct command *command, const struct queue *queue)
{
    begin_function(command, queue, "leat_enqueue", QUEUE_PRODUCER_KEYS);
}

void queue_enqueue_task(struct command *command, const char *due, size_t field_count)
{
    command_add_text(command, due);
    command_add_number(command, (int64_t)field_count);
}

void queue_enqueue_field(struct command *command, struct bytes name, struct bytes value)
{
    command_add_bytes(command, name);
    command_add_bytes(command, value);
}

void queue_init_group(struct command *command, const struct queue *queue)
{
    begin_function(command, queue, "leat_init", QUEUE_KEYS);
    command_add_text(command, queue->group);
}

void queue_status(struct command *command, const struct queue *queue)
{
    begin_function(command, queue, "leat_status", QUEUE_KEYS);
    command_add_text(command, queue->group);
}

void queue_lanes(struct command *command, const struct queue *queue, struct bytes cursor,
                 int64_t limit)
{
    begin_function(command, queue, "leat_lanes", QUEUE_KEYS);
    command_add_bytes(command, cursor);
    command_add_number(command, limit);
}

void queue_list(struct command *command, const struct queue *queue, const char *what,
                const char *cursor, int64_t limit, bool whole)
{
    begin_function(command, queue, "leat_list", QUEUE_KEYS);
    COMMAND_ADD(command, queue->group, what, cursor);
    command_add_number(command, limit);
    command_add_text(command, whole ? "1" : "0");
}

void queue_dead_last(struct command *command, const struct queue *queue)
{
    COMMAND_BEGIN(command, "XREVRANGE", queue->keys[QUEUE_KEY_DEAD], "+", "-", "COUNT", "1");
}

void queue_dead_entry(struct command *command, const struct queue *queue, const char *id)
{
    COMMAND_BEGIN(command, "XRANGE", queue->keys[QUEUE_KEY_DEAD], id, id);
}

void queue_show(struct command *command, const struct queue *queue, const char *tid,
                const char *cursor)
{
    begin_function(command, queue, "leat_show", QUEUE_KEYS);
    COMMAND_ADD(command, queue->group, tid, cursor);
}

void queue_ask_why(struct command *command, const struct queue *queue, const char *what,
                   struct bytes name)
{
    begin_function(command, queue, "leat_explain", QUEUE_KEYS);
    COMMAND_ADD(command, queue->group, what);
    command_add_bytes(command, name);
}

void queue_match(struct command *command, const struct queue *queue, const char *digits,
                 const char *cursor)
{
    begin_function(command, queue, "leat_match", QUEUE_KEYS);
    COMMAND_ADD(command, queue->group, cursor, digits);
}

void queue_conf(struct command *command, const struct queue *queue, const char *name,
                const char *value)
{
    begin_function(command, queue, "leat_conf", QUEUE_KEYS);
    if (name) {
        COMMAND_ADD(command, name, value);
    }
}

void queue_pause(struct command *command, const struct queue *queue, const char *name, bool on,
                 const char *by)
{
    begin_function(command, queue, "leat_gate", QUEUE_KEYS);
    COMMAND_ADD(command, name, on ? "1" : "0", by);
}

void queue_cancel_begin(struct command *command, const struct queue *queue, bool now)
{
    begin_function(command, queue, "leat_cancel", QUEUE_KEYS);
    COMMAND_ADD(command, queue->group, now ? "1" : "0");
}

void queue_cancel_add(struct command *command, const char *id, const char *token)
{
    COMMAND_ADD(command, id, token);
}

void queue_change_begin(struct command *command, const struct queue *queue, const struct queue *to,
                        const char *due, size_t fields)
{
    queue_begin(command, queue, "leat_change", QUEUE_KEYS, to ? QUEUE_KEYS : 0);
    if (to) {
        command_add_texts(command, (const char *const *)to->keys, QUEUE_KEYS);
    }
    COMMAND_ADD(command, queue->group, due);
    command_add_number(command, (int64_t)fields);
}

void queue_change_field(struct command *command, struct bytes name, struct bytes value)
{
    struct buffer change = BUFFER_INIT;

    if (buffer_append_text(&change, value.data ? "+" : "-") != 0 ||
        buffer_append(&change, name.data, name.size) != 0) {
        command->wire.failed = true; /* as for each argument that does not fit */
    } else {
        command_add(command, change.data, change.size);
        command_add_bytes(command, value.data ? value : bytes_of(""));
    }
    buffer_free(&change);
}

void queue_import_begin(struct command *command, const struct queue *queue)
{
    begin_function(command, queue, "leat_import", QUEUE_KEYS);
}

void queue_await_begin(struct command *command, const struct queue *queue, int64_t ms)
{
    begin_function(command, queue, "leat_await", QUEUE_KEYS);
    command_add_number(command, ms);
}

void queue_await_add(struct command *command, const char *tid)
{
    command_add_text(command, tid);
}

void queue_follow(struct command *command, const struct queue *queue, int64_t ms, const char *id)
{
    begin_function(command, queue, "leat_follow", QUEUE_KEYS);
    command_add_number(command, ms);
    command_add_text(command, id);
}

void queue_find_begin(struct command *command, const struct queue *queue, const char *cursor)
{
    begin_function(command, queue, "leat_find", QUEUE_KEYS);
    COMMAND_ADD(command, queue->group, cursor);
}

void queue_find_add(struct command *command, const char *tid)
{
    command_add_text(command, tid);
}

void queue_dead(struct command *command, const struct queue *queue, bool retry,
                const char *const *ids, size_t count)
{
    begin_function(command, queue, retry ? "leat_dead_retry" : "leat_dead_drop", QUEUE_KEYS);
    command_add_texts(command, ids, count);
}

void queue_doctor(struct command *command, const struct queue *queue, struct bytes cursor)
{
    begin_function(command, queue, "leat_doctor", QUEUE_KEYS);
    command_add_text(command, queue->group);
    command_add_bytes(command, cursor);
}

/* Older libraries read what they had told the caller before; the empty texts stand for that. */
void queue_repair_begin(struct command *command, const struct queue *queue)
{
    begin_function(command, queue, "leat_repair", QUEUE_KEYS);
    COMMAND_ADD(command, queue->group, "");
}

void queue_repair_add(struct command *command, struct bytes kind, struct bytes subject)
{
    command_add_bytes(command, kind);
    command_add_bytes(command, subject);
    command_add_text(command, "");
}
