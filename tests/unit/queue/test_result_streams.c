/* Goal: reads of results and live output have Redis's form, and their replies are read
 * completely or refused; a read can be waited for without a limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/resp.h"
#include "../lib/server.h"
#include "base/clock.h"
#include "queue/library_load.h"
#include "queue/result_streams.h"

struct heard {
    struct queue_entry entries[4];
    int count;
};

static void hear(void *context, const struct queue_entry *entry)
{
    struct heard *heard = context;
    assert_in_range(heard->count, 0, 3);
    heard->entries[heard->count++] = *entry;
}

static int read_all(const char *stream, const redisReply *reply, struct heard *heard)
{
    struct queue queue;
    assert_int_equal(queue_init(&queue, stream, "leat"), 0);
    *heard = (struct heard){0};
    int result = queue_read_entries(&queue, reply, hear, heard);
    queue_free(&queue);
    return result;
}

/* ---- commands ---- */

static void assert_wire(struct command *command, const char *expected)
{
    const char *data = NULL;
    size_t size = 0;
    assert_int_equal(command_finish(command, &data, &size), 0);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(data, expected, size);
}

static void asks_for_many_streams(void **state)
{
    (void)state;
    struct queue queue;
    struct command command = {0};
    const struct queue_source sources[] = {{QUEUE_RESULT, "1-1", QUEUE_FROM_START},
                                           {QUEUE_OUTPUT, "1-1", "7-3"},
                                           {QUEUE_RESULT, "*", "9-9"}};
    assert_int_equal(queue_init(&queue, "q", "leat"), 0);
    queue_read(&command, &queue, sources, 3, 50, 1500);
    assert_wire(&command,
                "*12\r\n$5\r\nXREAD\r\n$5\r\nCOUNT\r\n$2\r\n50\r\n$5\r\nBLOCK\r\n$4\r\n1500\r\n"
                "$7\r\nSTREAMS\r\n$14\r\n{q}:result:1-1\r\n$14\r\n{q}:output:1-1\r\n"
                "$12\r\n{q}:result:*\r\n$3\r\n0-0\r\n$3\r\n7-3\r\n$3\r\n9-9\r\n");
    queue_read(&command, &queue, sources, 1, 1, 0);
    assert_wire(&command, "*6\r\n$5\r\nXREAD\r\n$5\r\nCOUNT\r\n$1\r\n1\r\n$7\r\nSTREAMS\r\n"
                          "$14\r\n{q}:result:1-1\r\n$3\r\n0-0\r\n");
    command_free(&command);
    queue_free(&queue);
}

/* ---- replies ---- */

static void reads_entries(void **state)
{
    (void)state;
    struct heard heard;
    redisReply *reply = RESP("*2\r\n*2\r\n$14\r\n{q}:output:1-1\r\n*2\r\n"
                             "*2\r\n$3\r\n5-0\r\n*2\r\n$1\r\na\r\n$3\r\n\0b\n\r\n"
                             "*2\r\n$3\r\n6-0\r\n*0\r\n"
                             "*2\r\n$14\r\n{q}:result:1-1\r\n*1\r\n*2\r\n$3\r\n7-0\r\n*0\r\n");
    assert_int_equal(read_all("q", reply, &heard), 3);
    assert_int_equal(heard.count, 3);
    assert_int_equal(heard.entries[0].kind, QUEUE_OUTPUT);
    assert_string_equal(heard.entries[0].tid, "1-1");
    assert_string_equal(heard.entries[0].id, "5-0");
    assert_int_equal(heard.entries[0].fields->elements, 2);
    assert_int_equal(heard.entries[0].fields->element[1]->len, 3);
    assert_int_equal(heard.entries[2].kind, QUEUE_RESULT);
    assert_string_equal(heard.entries[2].id, "7-0");
    freeReplyObject(reply);

    reply = RESP("*1\r\n*2\r\n$12\r\n{a}b:result:\r\n*1\r\n*2\r\n$3\r\n7-0\r\n*0\r\n");
    assert_int_equal(read_all("{a}b", reply, &heard), 1);
    assert_string_equal(heard.entries[0].tid, "");
    freeReplyObject(reply);

    reply = RESP("*-1\r\n");
    assert_int_equal(read_all("q", reply, &heard), 0);
    freeReplyObject(reply);
}

/* Goal: if the whole, or one entry among good ones, has another form, there is no callback. */
static void reads_nothing_of_another_form(void **state)
{
    (void)state;
    static const char good[] = "*2\r\n$14\r\n{q}:result:1-1\r\n*1\r\n*2\r\n$3\r\n7-0\r\n*0\r\n";
    static const char *const bad[] = {
        ":1\r\n",
        "$1\r\na\r\n",
        "*1\r\n$14\r\n{q}:result:1-1\r\n",
        "*2\r\n$14\r\n{p}:result:1-1\r\n*0\r\n",
        "*2\r\n$11\r\n{q}:odd:1-1\r\n*0\r\n",
        "*2\r\n:1\r\n*0\r\n",
        "*2\r\n$14\r\n{q}:result:1-1\r\n:1\r\n",
        "*2\r\n$14\r\n{q}:result:1-1\r\n*1\r\n*1\r\n$3\r\n7-0\r\n",
        "*2\r\n$14\r\n{q}:result:1-1\r\n*1\r\n*2\r\n:7\r\n*0\r\n",
        "*2\r\n$14\r\n{q}:result:1-1\r\n*1\r\n*2\r\n$3\r\n7-0\r\n*1\r\n$1\r\na\r\n",
        "*2\r\n$14\r\n{q}:result:1-1\r\n*1\r\n*2\r\n$3\r\n7-0\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*2\r\n$14\r\n{q}:result:1-1\r\n*1\r\n*2\r\n$3\r\n7-0\r\n*-1\r\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct buffer built = BUFFER_INIT;
        struct heard heard;
        (void)buffer_printf(&built, "*2\r\n%s%s", good, bad[i]); /* parsed below */
        redisReply *reply = resp_take(&built);
        assert_int_equal(read_all("q", reply, &heard), -1);
        assert_int_equal(heard.count, 0);
        freeReplyObject(reply);
    }
    redisReply *reply = RESP(":1\r\n");
    struct heard heard;
    assert_int_equal(read_all("q", reply, &heard), -1);
    freeReplyObject(reply);
}

/* ---- waiting ---- */

struct trial {
    struct server server;
    struct queue queue;
    struct client *client;
    struct library_load library;
    struct command command;
    enum redis_error error;
    char why[256];
};

static int setup(void **state)
{
    static struct trial trial;
    trial = (struct trial){0};
    *state = &trial;
    server_start(&trial.server);
    trial.client = library_client_open(&trial.library, &trial.server.config, CONFIG_LIBRARY_AUTO,
                                       &trial.error, trial.why, sizeof trial.why);
    return trial.client ? queue_init(&trial.queue, "q", "leat") : -1;
}

static int teardown(void **state)
{
    struct trial *trial = *state;
    client_close(trial->client);
    queue_free(&trial->queue);
    command_free(&trial->command);
    server_stop(&trial->server);
    return 0;
}

static void ask(struct trial *trial, int64_t block_ms)
{
    const struct queue_source source = {QUEUE_RESULT, "1-1", QUEUE_FROM_START};
    queue_read(&trial->command, &trial->queue, &source, 1, 1, block_ms);
    assert_int_equal(client_append(trial->client, &trial->command), 0);
}

static redisReply *await(struct trial *trial, int64_t ms, const sigset_t *mask)
{
    return client_wait(trial->client, clock_boot_ns() + ms * CLOCK_NS_PER_MS, mask, &trial->error,
                       trial->why, sizeof trial->why);
}

static void waits_again_and_again(void **state)
{
    struct trial *trial = *state;
    ask(trial, 60000);
    for (int i = 0; i < 3; i++) {
        assert_null(await(trial, 20, NULL));
        assert_int_equal(trial->error, REDIS_ERROR_NONE);
    }
    server_do(&trial->server, "XADD {q}:result:1-1 7-1 state success");
    redisReply *reply = await(trial, 20000, NULL);
    struct heard heard;
    assert_non_null(reply);
    assert_int_equal(read_all("q", reply, &heard), 1);
    assert_string_equal(heard.entries[0].tid, "1-1");
    freeReplyObject(reply);

    /* later calls work as usual; with a past deadline a read takes only what is there */
    ask(trial, 0);
    reply = await(trial, 20000, NULL);
    assert_non_null(reply);
    freeReplyObject(reply);
    ask(trial, 1);
    freeReplyObject(await(trial, -1, NULL)); /* whether it is there already, or not yet */
}

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    (void)number;
    signals++;
}

static void waits_until_a_signal(void **state)
{
    struct trial *trial = *state;
    const struct sigaction action = {.sa_handler = on_signal};
    sigset_t blocked, before;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGUSR1);
    assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, &before), 0);
    ask(trial, 60000);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_int_equal(signals, 0);
    assert_null(await(trial, 20000, &before));
    assert_int_equal(trial->error, REDIS_ERROR_NONE);
    assert_int_equal(signals, 1);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

static void waits_in_vain(void **state)
{
    struct trial *trial = *state;
    ask(trial, 60000);
    assert_null(await(trial, 20, NULL));
    server_kill(&trial->server);
    assert_null(await(trial, 20000, NULL));
    assert_int_equal(trial->error, REDIS_ERROR_LOST);
}

static void hears_of_errors(void **state)
{
    struct trial *trial = *state;
    server_do(&trial->server, "SET {q}:result:1-1 x");
    ask(trial, 60000);
    assert_null(await(trial, 20000, NULL));
    assert_int_equal(trial->error, REDIS_ERROR_FOREIGN);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* cannot fail */
#define TRIAL(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_for_many_streams),
        cmocka_unit_test(reads_entries),
        cmocka_unit_test(reads_nothing_of_another_form),
        TRIAL(waits_again_and_again),
        TRIAL(waits_until_a_signal),
        TRIAL(waits_in_vain),
        TRIAL(hears_of_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
