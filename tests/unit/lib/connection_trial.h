/* One connection, its server and its events, for the unit tests of connections. Include cmocka.h
 * and its requirements before. */
#ifndef LEAT_TESTS_CONNECTION_TRIAL_H
#define LEAT_TESTS_CONNECTION_TRIAL_H

#include <ev.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "redis/connection/connection.h"
#include "server.h"

enum at { NOWHERE, AT_UP, AT_REPLY, AT_NULL, AT_LOST };

struct trial {
    struct server server;
    struct ev_loop *loop;
    struct connection *connection;
    struct config_redis config;
    struct command command;
    int ups, losts, replies, nulls;
    enum redis_error error;
    char why[256];
    enum at close_at, reopen_at;
    bool in_order; /* each reply is the number of the one before it, plus one */
    long long last;
    struct buffer texts; /* replies that are text, one per line */
};

static inline void act(struct trial *trial, enum at here)
{
    if (trial->close_at == here) {
        connection_close(trial->connection);
    }
    if (trial->reopen_at == here) {
        trial->reopen_at = NOWHERE;
        connection_close(trial->connection);
        connection_open(trial->connection);
    }
}

static inline void on_up(void *context, struct connection *connection)
{
    struct trial *trial = context;
    assert_true(connection_is_up(connection));
    trial->ups++;
    act(trial, AT_UP);
    ev_break(trial->loop, EVBREAK_ALL);
}

static inline void on_lost(void *context, struct connection *connection, enum redis_error error,
                           const char *why)
{
    struct trial *trial = context;
    assert_false(connection_is_up(connection));
    trial->losts++;
    trial->error = error;
    assert_true(snprintf(trial->why, sizeof trial->why, "%s", why) > 0);
    act(trial, AT_LOST);
    ev_break(trial->loop, EVBREAK_ALL);
}

static inline void on_reply(void *context, const struct redisReply *reply)
{
    struct trial *trial = context;
    if (!reply) {
        assert_int_equal(trial->losts, 0);
        trial->nulls++;
        act(trial, AT_NULL);
        ev_break(trial->loop, EVBREAK_ALL);
        return;
    }
    trial->replies++;
    if (reply->type == REDIS_REPLY_INTEGER) {
        trial->in_order = trial->in_order && reply->integer == trial->last + 1;
        trial->last = reply->integer;
    } else if (reply->str) {
        assert_int_equal(buffer_printf(&trial->texts, "%s\n", reply->str), 0);
    }
    act(trial, AT_REPLY);
    ev_break(trial->loop, EVBREAK_ALL);
}

static inline int trial_setup(void **state)
{
    static struct trial trial;
    trial = (struct trial){.in_order = true};
    *state = &trial;
    server_start(&trial.server);
    trial.loop = ev_loop_new(EVFLAG_AUTO);
    trial.config = trial.server.config;
    struct connection_events events = {.up = on_up, .lost = on_lost, .context = &trial};
    trial.connection = connection_new(trial.loop, &trial.config, "leat:q q:work", &events);
    return trial.loop && trial.connection ? 0 : -1;
}

static inline int trial_teardown(void **state)
{
    struct trial *trial = *state;
    connection_free(trial->connection);
    command_free(&trial->command);
    buffer_free(&trial->texts);
    ev_loop_destroy(trial->loop);
    server_stop(&trial->server);
    return 0;
}

/* Runs the loop until *count has reached the number; fails after a minute. */
static inline void run_until(struct trial *trial, const int *count, int number)
{
    int64_t deadline_ns = clock_boot_ns() + 60 * CLOCK_NS_PER_S;
    while (*count < number) {
        if (clock_boot_ns() > deadline_ns) {
            fail_msg("ups %d, losts %d (%s), replies %d, nulls %d", trial->ups, trial->losts,
                     trial->why, trial->replies, trial->nulls);
        }
        /* a callback breaks it; if nothing is left to wait for it returns at once */
        (void)ev_run(trial->loop, EVRUN_ONCE);
    }
}

/* Runs the loop for a while, so that replies that are on their way can arrive. */
static inline void run_a_while(struct trial *trial)
{
    for (int i = 0; i < 20; i++) {
        (void)ev_run(trial->loop, EVRUN_NOWAIT);
        (void)poll(NULL, 0, 1); /* nothing to wait for: a reply must not come */
    }
}

static inline void open_up(struct trial *trial)
{
    connection_open(trial->connection);
    assert_int_equal(trial->ups + trial->losts, 0);
    run_until(trial, &trial->ups, 1);
}

static inline void assert_lost(struct trial *trial, enum redis_error error, const char *text)
{
    run_until(trial, &trial->losts, 1);
    run_a_while(trial);
    assert_int_equal(trial->losts, 1);
    assert_int_equal(trial->ups, 0);
    if (trial->error != error || !strstr(trial->why, text)) {
        fail_msg("%s: %s", redis_error_name(trial->error), trial->why);
    }
    assert_int_equal(connection_send(trial->connection, &trial->command, 0, on_reply, trial), -1);
}

static inline void send_text(struct trial *trial, int64_t timeout_ms, const char *first,
                             const char *second)
{
    command_begin(&trial->command);
    command_add_text(&trial->command, first);
    if (second) {
        command_add_text(&trial->command, second);
    }
    assert_int_equal(
        connection_send(trial->connection, &trial->command, timeout_ms, on_reply, trial), 0);
}

static inline void assert_texts(const struct trial *trial, const char *expected)
{
    assert_int_equal(trial->texts.size, strlen(expected));
    assert_memory_equal(trial->texts.data, expected, trial->texts.size);
}

#define TRIAL(function) cmocka_unit_test_setup_teardown(function, trial_setup, trial_teardown)

#endif
