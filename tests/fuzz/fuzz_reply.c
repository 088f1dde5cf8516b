/* Goal: no reply, in whatever form, breaks the functions that read replies. The bytes are RESP
 * as from a socket; each reply in them goes through every reader. */
#include <hiredis/hiredis.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "queue/dead_letter.h"
#include "queue/keys.h"
#include "queue/lists.h"
#include "queue/replies.h"
#include "queue/result_streams.h"
#include "redis/error.h"
#include "redis/server/endpoint.h"
#include "redis/server_command.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_token(void *context, const char *token)
{
    size_t *count = context;
    if ((token[0] != 's' && token[0] != 'g') || strlen(token) >= QUEUE_CURSOR_SIZE) {
        abort();
    }
    ++*count;
}

static void read_claim(const redisReply *reply)
{
    struct queue_claim_reply out;
    if (queue_claim_read(reply, &out) == 0) {
        for (size_t i = 0; i < out.task_count; i++) {
            char reason[64] = "";
            (void)task_check(out.tasks[i], false, reason, sizeof reason); /* it must return */
        }
        queue_claim_reply_free(&out);
    }
}

static void read_renewals(const redisReply *reply)
{
    struct queue_renew_reply out;
    if (queue_renew_read(reply, &out) == 0) {
        for (size_t i = 0; i < out.lost->elements; i++) {
            if (strlen(out.lost->element[i]->str) != out.lost->element[i]->len) {
                abort();
            }
        }
    }
    if (queue_register_read(reply, &out) == 0 && strlen(out.wakeup_id) > SIZE_MAX / 2) {
        abort();
    }
}

static void read_blocks(const struct queue *queue, const redisReply *reply)
{
    char id[QUEUE_CURSOR_SIZE] = "";
    size_t tokens = 0;
    int count = queue_block_read(queue, reply, check_token, &tokens);
    if (count >= 0 ? tokens != (size_t)count : tokens != 0) {
        abort();
    }
    struct queue_wakeup wakeup;
    if (queue_listen_read(reply, id, sizeof id, &wakeup) > 0 && !memchr(id, '\0', sizeof id)) {
        abort();
    }
}

static void read_endpoints(const redisReply *reply)
{
    struct endpoint out = {0};
    if ((endpoint_read_nodes(reply, 7, "host", &out) == 0 ||
         endpoint_read_master(reply, &out) == 0) &&
        (!*out.host || strlen(out.host) >= sizeof out.host || out.port < 1 || out.port > 65535 ||
         out.epoch < 0)) {
        abort();
    }
    struct endpoint list[2];
    for (size_t i = endpoint_list_nodes(reply, "host", list, 2); i-- > 0;) {
        if (!*list[i].host || strlen(list[i].host) >= sizeof list[i].host || list[i].port < 1) {
            abort();
        }
    }
    (void)endpoint_read_role(reply); /* it must return */
    if (endpoint_read_epoch(reply) < 0) {
        abort();
    }
}

static void read_letters(const redisReply *reply)
{
    struct dead_letter_reply out;
    if (dead_letter_read(reply, &out) == 0) {
        for (size_t i = 0; i < out.count; i++) {
            if (!out.letters[i]->end ||
                memchr(out.letters[i]->end->cause.data, '\0', out.letters[i]->end->cause.size)) {
                abort();
            }
        }
        dead_letter_reply_free(&out);
    }
}

static void sum_key(void *context, struct bytes key)
{
    uint64_t *sum = context;
    for (size_t i = 0; i < key.size; i++) {
        *sum += (unsigned char)key.data[i];
    }
}

static void sum_change(void *context, const struct bytes *key)
{
    if (key) {
        sum_key(context, *key);
    }
}

static void read_lists(const redisReply *reply)
{
    struct queue_intake_reply intake;
    char cursor[QUEUE_CURSOR_SIZE] = "";
    int64_t number = 0;
    uint64_t sum = 0;
    if (queue_intake_read(reply, &intake) == 0 &&
        (intake.taken < 0 || intake.added < 0 || intake.left < 0)) {
        abort();
    }
    if (queue_scan_lists_read(reply, cursor, sum_key, &sum) == 0 &&
        !memchr(cursor, '\0', sizeof cursor)) {
        abort();
    }
    if (queue_lists_turn_read(reply, &number) == 0 && number < 0) {
        abort();
    }
    if (queue_list_length_read(reply, &number) == 0 && number < 0) {
        abort();
    }
    (void)queue_watch_read(reply, sum_change, &sum); /* it must return */
}

static void on_entry(void *context, const struct queue_entry *entry)
{
    int *count = context;
    *count += strlen(entry->tid) < SIZE_MAX && entry->fields->elements % 2 == 0;
}

/* Each callback gets an entry of the reply. */
static void read_entries(const struct queue *queue, const redisReply *reply)
{
    int count = 0, result = queue_read_entries(queue, reply, on_entry, &count);
    if (count != (result > 0 ? result : 0)) {
        abort();
    }
}

static void read_rest(const redisReply *reply)
{
    int64_t first = 0, second = 0;
    struct queue_requeue_reply requeued;
    enum queue_settled settled = QUEUE_OK;
    const char *error = NULL, *text = NULL;
    struct server_info server;
    for (size_t i = 0; queue_finish_read(reply, i, &settled, &error) == 0; i++) {
        if (settled == QUEUE_KEPT && !error) {
            abort();
        }
    }
    (void)queue_version_read(reply, &first, &second); /* it must return */
    if (queue_requeue_read(reply, &requeued) == 0) {
        for (size_t i = 0; i < requeued.ended->elements; i++) {
            if (strlen(requeued.ended->element[i]->str) != requeued.ended->element[i]->len) {
                abort();
            }
        }
    }
    if (server_info_read(reply, &server) == 0 &&
        (!memchr(server.version, '\0', sizeof server.version) ||
         !memchr(server.maxmemory_policy, '\0', sizeof server.maxmemory_policy))) {
        abort();
    }
    enum queue_once once = QUEUE_ONCE_OK;
    for (size_t i = 0; queue_once_read(reply, i, &once, &text) == 0; i++) {
        if ((once == QUEUE_ONCE_SEEN) != (text == reply->element[i + 1]->str + strlen("seen "))) {
            abort();
        }
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        (void)redis_error_classify(reply->str, reply->len);
        if (redis_error_text(reply->str, reply->len, &text) > reply->len) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct queue queue;
    void *reply = NULL;
    if (!bounded_arrays(data, size)) {
        return 0;
    }
    redisReader *reader = redisReaderCreate();
    if (!reader || queue_init(&queue, "q", "leat")) {
        abort();
    }
    if (redisReaderFeed(reader, (const char *)data, size) == REDIS_OK) {
        while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
            read_claim(reply);
            read_renewals(reply);
            read_blocks(&queue, reply);
            read_letters(reply);
            read_endpoints(reply);
            read_lists(reply);
            read_entries(&queue, reply);
            read_rest(reply);
            freeReplyObject(reply);
        }
    }
    queue_free(&queue);
    redisReaderFree(reader);
    return 0;
}
