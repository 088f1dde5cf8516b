/* Goal: the synchronous client connects or says why not, loads the library, and carries the
 * queue's calls to a real server and their replies back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/server.h"
#include "queue/calls.h"
#include "queue/library.h"
#include "queue/library_load.h"
#include "queue/replies.h"
#include "redis/server_command.h"

struct trial {
    struct server server;
    struct config_redis config;
    struct queue queue;
    struct command command;
    struct library_load library;
    enum redis_error error;
    char why[256];
};

static int setup(void **state)
{
    static struct trial trial;
    trial = (struct trial){0};
    *state = &trial;
    server_start(&trial.server);
    trial.config = trial.server.config;
    return queue_init(&trial.queue, "q", "leat");
}

static int teardown(void **state)
{
    struct trial *trial = *state;
    queue_free(&trial->queue);
    command_free(&trial->command);
    server_stop(&trial->server);
    return 0;
}

static struct client *try_open(struct trial *trial, enum config_library library)
{
    return library_client_open(&trial->library, &trial->config, library, &trial->error, trial->why,
                               sizeof trial->why);
}

static struct client *open_up(struct trial *trial)
{
    struct client *client = try_open(trial, CONFIG_LIBRARY_AUTO);
    if (!client) {
        fail_msg("%s: %s", redis_error_name(trial->error), trial->why);
    }
    return client;
}

static redisReply *try_call(struct trial *trial, struct client *client)
{
    return client_call(client, &trial->command, &trial->error, trial->why, sizeof trial->why);
}

static redisReply *call(struct trial *trial, struct client *client)
{
    redisReply *reply = try_call(trial, client);
    if (!reply) {
        fail_msg("%s: %s", redis_error_name(trial->error), trial->why);
    }
    return reply;
}

static void assert_trouble(const struct trial *trial, enum redis_error error, const char *text)
{
    if (trial->error != error || !strstr(trial->why, text)) {
        fail_msg("%s: %s", redis_error_name(trial->error), trial->why);
    }
}

/* The version in Redis, or 0. */
static int64_t loaded_version(struct trial *trial)
{
    struct client *client = try_open(trial, CONFIG_LIBRARY_NEVER);
    int64_t protocol = 0, version = 0;
    assert_non_null(client);
    queue_version(&trial->command);
    redisReply *reply = try_call(trial, client);
    if (reply) {
        assert_int_equal(queue_version_read(reply, &protocol, &version), 0);
        freeReplyObject(reply);
    } else {
        assert_trouble(trial, REDIS_ERROR_NO_LIBRARY, "Function not found");
    }
    client_close(client);
    return version;
}

/* Replaces leat's library by one that only has its protocol and version. */
static void load_other(struct trial *trial, int protocol, int version)
{
    char code[256];
    assert_true(snprintf(code, sizeof code,
                         "#!lua name=leat\nredis.register_function{function_name='leat_version',"
                         "callback=function() return {%d, %d} end, flags={'no-writes'}}",
                         protocol, version) > 0);
    redisContext *redis = redisConnectUnix(trial->server.socket);
    redisReply *reply = redisCommand(redis, "FUNCTION LOAD REPLACE %s", code);
    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    freeReplyObject(reply);
    redisFree(redis);
}

/* ---- opening ---- */

static void loads_what_is_missing_or_older(void **state)
{
    struct trial *trial = *state;
    assert_int_equal(loaded_version(trial), 0);
    client_close(open_up(trial));
    assert_int_equal(loaded_version(trial), library_version());

    load_other(trial, QUEUE_PROTOCOL, 0);
    client_close(open_up(trial));
    assert_int_equal(loaded_version(trial), library_version());
    load_other(trial, QUEUE_PROTOCOL - 1, 0);
    client_close(open_up(trial));
    assert_int_equal(loaded_version(trial), library_version());

    load_other(trial, QUEUE_PROTOCOL, 1000000);
    client_close(open_up(trial));
    assert_int_equal(loaded_version(trial), 1000000);
    client_close(NULL);
}

static void refuses_another_protocol(void **state)
{
    struct trial *trial = *state;
    load_other(trial, QUEUE_PROTOCOL + 1, 1000000);
    assert_null(try_open(trial, CONFIG_LIBRARY_AUTO));
    assert_trouble(trial, REDIS_ERROR_OTHER, "protocol");
}

/* Goal: the library is loaded again if Redis was restarted without it while the client was
 * connected. */
static void loads_again_in_a_call(void **state)
{
    struct trial *trial = *state;
    struct client *client = open_up(trial);
    server_do(&trial->server, "FUNCTION FLUSH");
    queue_conf(&trial->command, &trial->queue, NULL, NULL);
    freeReplyObject(call(trial, client));
    client_close(client);

    client = try_open(trial, CONFIG_LIBRARY_NEVER);
    assert_non_null(client);
    server_do(&trial->server, "FUNCTION FLUSH");
    assert_null(try_call(trial, client));
    assert_trouble(trial, REDIS_ERROR_NO_LIBRARY, "Function not found");
    client_close(client);
}

/* Goal: a client that may not load uses an older library with the same protocol. */
static void respects_the_acl(void **state)
{
    struct trial *trial = *state;
    server_do(&trial->server, "ACL SETUSER w on >p~ssw0rd +@all -function ~*");
    trial->config.user = (char[]){"w"};
    trial->config.password = (char[]){"p~ssw0rd"};
    assert_null(try_open(trial, CONFIG_LIBRARY_AUTO));
    assert_trouble(trial, REDIS_ERROR_NO_LOAD, "loading the function library: NOPERM");
    load_other(trial, QUEUE_PROTOCOL, 0);
    client_close(open_up(trial));

    trial->config.password = (char[]){"p~ssw0rd?"};
    assert_null(try_open(trial, CONFIG_LIBRARY_AUTO));
    assert_trouble(trial, REDIS_ERROR_DENIED, "AUTH: WRONGPASS");
    assert_null(strstr(trial->why, "ssw0rd"));
}

static void tells_why_it_cannot_open(void **state)
{
    struct trial *trial = *state;
    trial->config.db = 99;
    assert_null(try_open(trial, CONFIG_LIBRARY_AUTO));
    assert_trouble(trial, REDIS_ERROR_CALLER, "SELECT: DB index");
    trial->config.db = 0;

    trial->config.socket = (char[]){"/nonexistent/redis.sock"};
    assert_null(try_open(trial, CONFIG_LIBRARY_AUTO));
    assert_trouble(trial, REDIS_ERROR_LOST, "connecting to /nonexistent/redis.sock: No such file");
    trial->config.socket = trial->server.socket;

    /* a server that does not answer */
    trial->config.command_timeout_ms = 150;
    assert_int_equal(kill(trial->server.pid, SIGSTOP), 0);
    assert_null(try_open(trial, CONFIG_LIBRARY_AUTO));
    assert_int_equal(kill(trial->server.pid, SIGCONT), 0);
    assert_trouble(trial, REDIS_ERROR_LOST, "no answer within 150ms");

    /* the login belongs to connecting */
    trial->config.command_timeout_ms = 30000;
    trial->config.connect_timeout_ms = 140;
    trial->config.password = (char[]){"x"};
    assert_int_equal(kill(trial->server.pid, SIGSTOP), 0);
    assert_null(try_open(trial, CONFIG_LIBRARY_AUTO));
    assert_int_equal(kill(trial->server.pid, SIGCONT), 0);
    assert_trouble(trial, REDIS_ERROR_LOST, "AUTH: no answer within 140ms");
}

static void tells_that_the_connection_broke(void **state)
{
    struct trial *trial = *state;
    struct client *client = open_up(trial);
    server_kill(&trial->server);
    server_info(&trial->command);
    assert_null(try_call(trial, client));
    assert_int_equal(trial->error, REDIS_ERROR_LOST);
    assert_null(try_call(trial, client));
    assert_int_equal(trial->error, REDIS_ERROR_LOST);
    client_close(client);
}

/* ---- calls ---- */

static void enqueue_text(struct trial *trial, const char *due, const char *text)
{
    struct bytes name = {.data = "command", .size = 7},
                 value = {.data = text, .size = strlen(text)};
    queue_enqueue_begin(&trial->command, &trial->queue);
    queue_enqueue_task(&trial->command, due, 1);
    queue_enqueue_field(&trial->command, name, value);
}

static void sends_many_before_it_reads(void **state)
{
    enum { MANY = 3000 };
    struct trial *trial = *state;
    struct client *client = open_up(trial);
    for (int i = 0; i < MANY; i++) {
        /* every tenth is refused, which does not stop the others */
        enqueue_text(trial, i % 10 == 0 ? "soon" : "0", "true");
        assert_int_equal(client_append(client, &trial->command), 0);
    }
    for (int i = 0; i < MANY; i++) {
        redisReply *reply = client_receive(client, &trial->error, trial->why, sizeof trial->why);
        assert_int_equal(!reply, i % 10 == 0);
        if (reply) {
            freeReplyObject(reply);
        } else {
            assert_int_equal(trial->error, REDIS_ERROR_CALLER);
            assert_string_equal(trial->why, "BADARG the due time is not a number: soon");
        }
    }
    client_close(client);
    assert_int_equal(server_do(&trial->server, "XLEN q"), MANY - MANY / 10);
}

static void registers(struct trial *trial, struct client *client)
{
    const struct queue_default seed = {"lease_ms", "7000"};
    struct queue_renew_reply joined;
    queue_register(&trial->command, &trial->queue, "c", "{}", &seed, 1, NULL, 0);
    redisReply *reply = call(trial, client);
    assert_int_equal(queue_register_read(reply, &joined), 0);
    assert_int_equal(joined.lease_ms, 7000);
    assert_string_equal(joined.settings->element[1]->str, "7000");
    assert_false(joined.more);
    assert_string_not_equal(joined.wakeup_id, "0-0"); /* that of its own number */
    assert_true(joined.joined > 0);
    freeReplyObject(reply);
}

static void claims(struct trial *trial, struct client *client, struct queue_claim_reply *claimed)
{
    queue_claim(&trial->command, &trial->queue, "c", 10, 0, QUEUE_SCAN_START, NULL, 0);
    redisReply *reply = call(trial, client);
    assert_int_equal(queue_claim_read(reply, claimed), 0);
    freeReplyObject(reply);
}

static void settles(struct trial *trial, struct client *client, const char *token,
                    enum queue_settled expected)
{
    struct queue_result result = {.token = token, .outcome = VERDICT_SUCCESS};
    enum queue_settled settled = QUEUE_KEPT;
    const char *error = NULL;
    queue_finish_begin(&trial->command, &trial->queue, "c");
    queue_finish_add(&trial->command, &result);
    redisReply *reply = call(trial, client);
    assert_int_equal(queue_finish_read(reply, 0, &settled, &error), 0);
    assert_int_equal(settled, expected);
    freeReplyObject(reply);
}

/* Goal: a task goes from its enqueue to its end. */
static void carries_a_task(void **state)
{
    struct trial *trial = *state;
    struct client *client = open_up(trial);
    struct queue_claim_reply claimed;
    struct queue_renew_reply renewed;
    char reason[80] = "";
    registers(trial, client);
    enqueue_text(trial, "0", "echo now");
    freeReplyObject(call(trial, client));
    enqueue_text(trial, "+60000", "echo later");
    freeReplyObject(call(trial, client));

    claims(trial, client, &claimed);
    assert_int_equal(claimed.task_count, 1);
    assert_int_equal(claimed.closed_until_ms, 0);
    assert_int_equal(claimed.lease_ms, 7000);
    assert_in_range(claimed.next_due_ms - claimed.now_ms, 50000, 60000);
    struct task *task = claimed.tasks[0];
    assert_int_equal(task->attempt, 1);
    assert_true(task_check(task, false, reason, sizeof reason));
    assert_string_equal(task->command->data, "echo now");

    const char *const tokens[] = {task->token, "s1-1"};
    queue_renew(&trial->command, &trial->queue, "c", "{}", tokens, 2);
    redisReply *reply = call(trial, client);
    assert_int_equal(queue_renew_read(reply, &renewed), 0);
    assert_int_equal(renewed.lost->elements, 1);
    assert_string_equal(renewed.lost->element[0]->str, "s1-1");
    freeReplyObject(reply);

    settles(trial, client, task->token, QUEUE_OK);
    settles(trial, client, task->token, QUEUE_GONE);
    queue_claim_reply_free(&claimed);
    client_close(client);
}

static void reads_info_of_a_real_server(void **state)
{
    struct trial *trial = *state;
    struct client *client = open_up(trial);
    struct server_info server;
    server_do(&trial->server, "CONFIG SET maxmemory 100mb");
    server_info(&trial->command);
    redisReply *reply = call(trial, client);
    assert_int_equal(server_info_read(reply, &server), 0);
    freeReplyObject(reply);
    assert_true(server.major >= 7);
    assert_true(server.is_master);
    assert_false(server.loading);
    assert_false(server.aof_enabled);
    assert_int_equal(server.maxmemory, 100 * 1024 * 1024);
    assert_string_equal(server.maxmemory_policy, "noeviction");
    client_close(client);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* cannot fail */
#define TRIAL(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
    const struct CMUnitTest tests[] = {
        TRIAL(loads_what_is_missing_or_older), TRIAL(refuses_another_protocol),
        TRIAL(loads_again_in_a_call),          TRIAL(respects_the_acl),
        TRIAL(tells_why_it_cannot_open),       TRIAL(tells_that_the_connection_broke),
        TRIAL(sends_many_before_it_reads),     TRIAL(carries_a_task),
        TRIAL(reads_info_of_a_real_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
