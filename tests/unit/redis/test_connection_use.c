/* Goal: a connection answers in order, keeps the deadlines of its commands and calls back in the
 * documented order, whatever the server does and wherever its owner closes it. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "../lib/connection_trial.h"
#include "queue/calls.h"

/* ---- commands ---- */

static void answers_thousands_in_order(void **state)
{
    enum { MANY = 20000 };
    struct trial *trial = *state;
    open_up(trial);
    for (int i = 0; i < MANY; i++) {
        send_text(trial, i % 3 == 0 ? 0 : 50000 + i % 7, "INCR", "counter");
    }
    assert_int_equal(trial->replies, 0);
    run_until(trial, &trial->replies, MANY);
    assert_true(trial->in_order);
    assert_int_equal(trial->last, MANY);
}

static void carries_megabytes(void **state)
{
    enum { SIZE = 8 * 1024 * 1024 };
    struct trial *trial = *state;
    static char value[SIZE];
    memset(value, 'v', sizeof value);
    open_up(trial);
    command_begin(&trial->command);
    command_add_text(&trial->command, "ECHO");
    command_add(&trial->command, value, sizeof value);
    assert_int_equal(connection_send(trial->connection, &trial->command, 20000, on_reply, trial),
                     0);
    send_text(trial, 20000, "ECHO", "after");
    run_until(trial, &trial->replies, 2);
    assert_int_equal(trial->texts.size, SIZE + 1 + 6);
    assert_memory_equal(trial->texts.data, value, SIZE);
}

static void ends_with_the_deadline_of_a_command(void **state)
{
    struct trial *trial = *state;
    open_up(trial);
    trial->config.command_timeout_ms = 200;
    send_text(trial, 20000, "PING", NULL);
    run_until(trial, &trial->replies, 1);

    /* an earlier command with a longer deadline does not hide the shorter one */
    assert_int_equal(kill(trial->server.pid, SIGSTOP), 0);
    int64_t begun_ns = clock_boot_ns();
    send_text(trial, 60000, "PING", NULL);
    send_text(trial, 200, "PING", NULL);
    run_until(trial, &trial->losts, 1);
    int64_t taken_ns = clock_boot_ns() - begun_ns;
    assert_int_equal(kill(trial->server.pid, SIGCONT), 0);
    assert_in_range(taken_ns, 200 * CLOCK_NS_PER_MS, 30 * CLOCK_NS_PER_S);
    assert_int_equal(trial->nulls, 2);
    assert_int_equal(trial->error, REDIS_ERROR_LOST);
    assert_non_null(strstr(trial->why, "no answer within 200ms"));
    assert_true(connection_is_late(trial->connection));
    run_a_while(trial);
    assert_int_equal(trial->losts, 1);
    assert_int_equal(trial->replies, 1);
}

/* A server whose answers the test itself writes. Returns its end of the established connection. */
static int open_to_us(struct trial *trial)
{
    static struct sockaddr_un address; /* the connection names it in its messages */
    address.sun_family = AF_UNIX;
    int size = snprintf(address.sun_path, sizeof address.sun_path, "%s.ours", trial->config.socket);
    assert_in_range(size, 1, sizeof address.sun_path - 1);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    trial->config.socket = address.sun_path;
    connection_open(trial->connection);
    int ours = accept(listener, NULL, NULL);
    assert_true(ours >= 0);
    assert_int_equal(write(ours, "+OK\r\n:7\r\n", 9), 9);
    run_until(trial, &trial->ups, 1);
    /* not earlier: hiredis 1.0 and later connects a second time to see that it is connected */
    (void)close(listener); /* nothing was written */
    assert_int_equal(unlink(address.sun_path), 0);
    return ours;
}

static void run_ms(struct trial *trial, int64_t ms)
{
    int64_t end_ns = clock_boot_ns() + ms * CLOCK_NS_PER_MS;
    while (clock_boot_ns() < end_ns) {
        run_a_while(trial);
    }
}

/* Goal: a large task over a slow link takes longer than any deadline, and still arrives. */
static void waits_for_what_is_still_coming_in(void **state)
{
    enum { PIECE = 50000, PIECES = 8, PIECE_MS = 600, TIMEOUT_MS = 3500 };
    struct trial *trial = *state;
    static char piece[PIECE];
    memset(piece, 'v', sizeof piece);
    int ours = open_to_us(trial);
    send_text(trial, TIMEOUT_MS, "PING", NULL);
    run_a_while(trial);
    assert_int_equal(write(ours, "$400000\r\n", 9), 9);
    for (int i = 0; i < PIECES; i++) {
        assert_int_equal(write(ours, piece, sizeof piece), PIECE);
        run_ms(trial, PIECE_MS);
    }
    assert_int_equal(trial->losts, 0);
    assert_int_equal(write(ours, "\r\n", 2), 2);
    run_until(trial, &trial->replies, 1);
    assert_int_equal(trial->texts.size, PIECE * PIECES + 1);

    /* a reply that stops is a loss */
    send_text(trial, 300, "PING", NULL);
    assert_int_equal(write(ours, "$400000\r\nv", 10), 10);
    run_until(trial, &trial->losts, 1);
    assert_int_equal(trial->error, REDIS_ERROR_LOST);
    (void)close(ours); /* everything was written */
}

/* Goal: a server whose answer never ends is lost after a hundred timeouts. */
static void gives_up_an_answer_that_never_ends(void **state)
{
    enum { TIMEOUT_MS = 10 };
    struct trial *trial = *state;
    int ours = open_to_us(trial);
    int64_t begun_ns = clock_boot_ns();
    send_text(trial, TIMEOUT_MS, "PING", NULL);
    assert_int_equal(write(ours, "$500000000\r\n", 12), 12);
    while (trial->losts == 0 && clock_boot_ns() - begun_ns < 60 * CLOCK_NS_PER_S) {
        /* each turn reads something before it looks at the deadline, however late it is */
        (void)send(ours, "v", 1, MSG_NOSIGNAL); /* fails after the loss */
        (void)ev_run(trial->loop, EVRUN_NOWAIT);
    }
    assert_int_equal(trial->losts, 1);
    assert_int_equal(trial->error, REDIS_ERROR_LOST);
    assert_true(clock_boot_ns() - begun_ns >= 100 * TIMEOUT_MS * CLOCK_NS_PER_MS);
    (void)close(ours); /* everything was written */
}

/* Goal: a blocked read has no deadline, and CLIENT UNBLOCK leaves the connection as it was. */
static void ends_a_blocked_read(void **state)
{
    struct trial *trial = *state;
    struct queue queue;
    assert_int_equal(queue_init(&queue, "q", "leat"), 0);
    server_do(&trial->server, "XGROUP CREATE q leat 0 MKSTREAM");
    server_do(&trial->server, "XGROUP CREATE {q}:go leat 0 MKSTREAM");
    open_up(trial);
    queue_block(&trial->command, &queue, "c", 1, 0);
    assert_int_equal(connection_send(trial->connection, &trial->command, 0, on_reply, trial), 0);
    run_a_while(trial);
    assert_int_equal(trial->replies + trial->losts, 0);

    char words[64];
    int64_t id = connection_client_id(trial->connection);
    assert_true(snprintf(words, sizeof words, "CLIENT UNBLOCK %lld", (long long)id) > 0);
    while (server_do(&trial->server, words) == 0) {
        (void)ev_run(trial->loop, EVRUN_NOWAIT);
    }
    run_until(trial, &trial->replies, 1);
    assert_int_equal(trial->texts.size, 0);
    send_text(trial, 20000, "ECHO", "still here");
    run_until(trial, &trial->replies, 2);
    assert_texts(trial, "still here\n");
    queue_free(&queue);
}

/* ---- ends ---- */

static void reports_nulls_before_the_loss(void **state)
{
    struct trial *trial = *state;
    open_up(trial);
    assert_int_equal(kill(trial->server.pid, SIGSTOP), 0);
    for (int i = 0; i < 100; i++) {
        send_text(trial, 20000, "PING", NULL);
    }
    (void)ev_run(trial->loop, EVRUN_NOWAIT);
    server_kill(&trial->server);
    run_until(trial, &trial->losts, 1);
    assert_int_equal(trial->nulls, 100);
    assert_int_equal(trial->replies, 0);
    assert_int_equal(trial->error, REDIS_ERROR_LOST);
}

/* ---- servers that break the protocol ---- */

/* The server of the test sends these bytes, which must end the connection. */
static void assert_broken_by(struct trial *trial, int ours, const char *bytes)
{
    size_t size = strlen(bytes);
    assert_int_equal(write(ours, bytes, size), size);
    run_until(trial, &trial->losts, 1);
    run_a_while(trial);
    assert_int_equal(trial->losts, 1);
    assert_int_equal(trial->error, REDIS_ERROR_LOST);
    (void)close(ours); /* everything was written */
    trial->ups = trial->losts = trial->replies = trial->nulls = 0;
}

/* Goal: a reply to no command ends the connection, and not the process, as hiredis would. */
static void a_reply_to_no_command_is_a_loss(void **state)
{
    static const char *const replies[] = {
        "+OK\r\n", ":1\r\n",       "$1\r\nx\r\n",        "$-1\r\n",          "*0\r\n",
        "*-1\r\n", "*1\r\n:1\r\n", "*2\r\n*0\r\n*0\r\n", "*1\r\n$9\r\nhalf", "?\r\n",
    };
    struct trial *trial = *state;
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        assert_broken_by(trial, open_to_us(trial), replies[i]);

        /* the first answers a command, the second none */
        char twice[64];
        int ours = open_to_us(trial);
        send_text(trial, 20000, "PING", NULL);
        run_a_while(trial);
        assert_true(snprintf(twice, sizeof twice, "+PONG\r\n%s", replies[i]) > 0);
        assert_broken_by(trial, ours, twice);
    }
}

/* Goal: a reply costs no more than the bytes that the server has sent, whatever number of elements
 * it announces, and arrays in arrays no stack. */
static void a_reply_without_bounds_is_a_loss(void **state)
{
    enum { DEEP = 2000 };
    static const char *const replies[] = {"*2147483647\r\n:1\r\n", "*4194305\r\n",
                                          "*1\r\n*1\r\n*2147483647\r\n"};
    struct trial *trial = *state;
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        int ours = open_to_us(trial);
        send_text(trial, 20000, "PING", NULL);
        run_a_while(trial);
        assert_broken_by(trial, ours, replies[i]);
        assert_non_null(strstr(trial->why, "too many elements"));
    }

    static char deep[DEEP * 4 + 1];
    for (size_t i = 0; i < DEEP; i++) {
        memcpy(deep + i * 4, "*1\r\n", 4);
    }
    int ours = open_to_us(trial);
    send_text(trial, 20000, "PING", NULL);
    run_a_while(trial);
    assert_broken_by(trial, ours, deep);
}

/* Goal: an error that answers no command is the server's last word. */
static void an_error_to_no_command_is_told(void **state)
{
    struct trial *trial = *state;
    int ours = open_to_us(trial);
    assert_int_equal(write(ours, "-ERR max\r\n", 10), 10);
    run_until(trial, &trial->losts, 1);
    assert_non_null(strstr(trial->why, "ERR max"));
    (void)close(ours); /* everything was written */
}

/* ---- subscriptions ---- */

static void subscribe(struct trial *trial)
{
    command_begin(&trial->command);
    command_add_text(&trial->command, "SUBSCRIBE");
    command_add_text(&trial->command, "news");
    assert_int_equal(connection_subscribe(trial->connection, &trial->command, on_reply, trial), 0);
}

static void publish(struct trial *trial)
{
    redisContext *redis = redisConnectUnix(trial->config.socket);
    redisReply *reply = redis ? redisCommand(redis, "PUBLISH news x") : NULL;
    assert_non_null(reply);
    freeReplyObject(reply);
    redisFree(redis);
}

static void hears_every_message(void **state)
{
    enum { MESSAGES = 100 };
    struct trial *trial = *state;
    open_up(trial);
    subscribe(trial);
    run_until(trial, &trial->replies, 1);
    for (int i = 1; i <= MESSAGES; i++) {
        publish(trial);
        run_until(trial, &trial->replies, 1 + i);
    }

    /* there is one NULL at the end, and afterwards it is a connection like any other */
    connection_close(trial->connection);
    assert_int_equal(trial->nulls, 1);
    trial->ups = 0;
    open_up(trial);
    send_text(trial, 20000, "INCR", "counter");
    send_text(trial, 20000, "INCR", "counter");
    assert_int_equal(connection_subscribe(trial->connection, &trial->command, on_reply, trial), -1);
    run_until(trial, &trial->replies, 1 + MESSAGES + 2);
    assert_true(trial->in_order);
}

static void a_refused_subscription_is_told(void **state)
{
    struct trial *trial = *state;
    open_up(trial);
    send_text(trial, 20000, "ECHO", "before");
    run_until(trial, &trial->replies, 1);
    command_begin(&trial->command);
    static const char *const words[] = {"ACL", "SETUSER", "default", "resetchannels"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        command_add_text(&trial->command, words[i]);
    }
    assert_int_equal(connection_send(trial->connection, &trial->command, 20000, on_reply, trial),
                     0);
    run_until(trial, &trial->replies, 2);
    subscribe(trial);
    run_until(trial, &trial->losts, 1);
    assert_int_equal(trial->error, REDIS_ERROR_DENIED);
    assert_non_null(strstr(trial->why, "NOPERM"));
    assert_int_equal(trial->nulls, 1);
}

/* Goal: a message of an unknown form ends the connection, and not the process, as hiredis would. */
static void a_mangled_message_is_a_loss(void **state)
{
    static const char *const messages[] = {
        "+OK\r\n",
        ":1\r\n",
        "*0\r\n",
        "*1\r\n$7\r\nmessage\r\n",
        "*2\r\n$7\r\nmessage\r\n$4\r\nnews\r\n",
        "*3\r\n:1\r\n$4\r\nnews\r\n$1\r\nx\r\n",
        "*3\r\n$-1\r\n$4\r\nnews\r\n$1\r\nx\r\n",
        "*3\r\n*0\r\n$4\r\nnews\r\n$1\r\nx\r\n",
        "*3\r\n$7\r\nmessage\r\n:4\r\n$1\r\nx\r\n",
        "*3\r\n$7\r\nmessage\r\n*1\r\n:1\r\n$1\r\nx\r\n",
        "*3\r\n$11\r\nunsubscribe\r\n$4\r\nnews\r\n$1\r\nx\r\n",
        "*3\r\n$12\r\nPUnsubscribe\r\n$4\r\nnews\r\n$1\r\nx\r\n",
    };
    static const char good[] = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"
                               "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n*2\r\n:1\r\n$-1\r\n";
    struct trial *trial = *state;
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        int ours = open_to_us(trial);
        subscribe(trial);
        assert_int_equal(write(ours, good, sizeof good - 1), sizeof good - 1);
        run_until(trial, &trial->replies, 2);
        assert_broken_by(trial, ours, messages[i]);
    }
}

static void closes_with_commands_pending(void **state)
{
    struct trial *trial = *state;
    open_up(trial);
    for (int i = 0; i < 100; i++) {
        send_text(trial, 20000, "PING", NULL);
    }
    connection_close(trial->connection);
    assert_int_equal(trial->nulls, 100);
    connection_close(trial->connection);
    run_a_while(trial);
    assert_int_equal(trial->losts + trial->replies, 0);
}

/* Goal: wherever it is closed, there is one end, no reported loss, and nothing afterwards. */
static void closes_within_callbacks(void **state)
{
    struct trial *trial = *state;
    trial->close_at = AT_UP;
    open_up(trial);
    run_a_while(trial);
    assert_false(connection_is_up(trial->connection));

    trial->close_at = AT_REPLY;
    trial->ups = 0;
    open_up(trial);
    for (int i = 0; i < 3; i++) {
        send_text(trial, 20000, "PING", NULL);
    }
    run_until(trial, &trial->replies, 1);
    run_a_while(trial);
    assert_int_equal(trial->replies, 1);
    assert_int_equal(trial->nulls, 2);

    trial->close_at = AT_NULL;
    trial->ups = trial->nulls = 0;
    open_up(trial);
    for (int i = 0; i < 3; i++) {
        send_text(trial, 20000, "PING", NULL);
    }
    assert_int_equal(kill(trial->server.pid, SIGSTOP), 0);
    server_kill(&trial->server);
    run_until(trial, &trial->nulls, 3);
    run_a_while(trial);
    assert_int_equal(trial->nulls, 3);
    assert_int_equal(trial->losts, 0);
}

static void opens_anew_within_callbacks(void **state)
{
    struct trial *trial = *state;
    static const enum at slot_indexes[] = {AT_UP, AT_REPLY, AT_NULL, AT_LOST};
    for (size_t i = 0; i < sizeof slot_indexes / sizeof slot_indexes[0]; i++) {
        trial->ups = trial->losts = trial->replies = trial->nulls = 0;
        trial->reopen_at = slot_indexes[i];
        open_up(trial);
        if (slot_indexes[i] != AT_UP) {
            send_text(trial, 20000, "PING", NULL);
            send_text(trial, 20000, "PING", NULL);
        }
        if (slot_indexes[i] == AT_NULL || slot_indexes[i] == AT_LOST) {
            server_kill(&trial->server);
            server_launch(&trial->server);
        }
        run_until(trial, &trial->ups, 2);
        trial->texts.size = 0;
        send_text(trial, 20000, "ECHO", "anew");
        int seen = trial->replies;
        run_until(trial, &trial->replies, seen + 1);
        assert_texts(trial, "anew\n");
        assert_int_equal(trial->losts, slot_indexes[i] == AT_LOST);
        connection_close(trial->connection);
    }
}

/* Goal: it can be closed in each state before it is established. */
static void closes_at_any_time(void **state)
{
    struct trial *trial = *state;
    for (int turns = 0; turns < 4; turns++) {
        connection_open(trial->connection);
        for (int i = 0; i < turns; i++) {
            (void)ev_run(trial->loop, EVRUN_NOWAIT);
        }
        connection_close(trial->connection);
    }
    trial->config.socket = (char[]){"/nonexistent/redis.sock"};
    connection_open(trial->connection);
    connection_close(trial->connection);
    run_a_while(trial);
    assert_int_equal(trial->losts, 0);
}

static int count_descriptors(bool *all_close_on_exec)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);
        count += flags >= 0;
        if (fd > 2 && flags >= 0 && !(flags & FD_CLOEXEC)) {
            *all_close_on_exec = false;
        }
    }
    return count;
}

static void leaves_no_descriptor(void **state)
{
    struct trial *trial = *state;
    bool before = true, during = true;
    open_up(trial);
    connection_close(trial->connection);
    int count = count_descriptors(&before);
    for (int i = 0; i < 50; i++) {
        trial->ups = 0;
        open_up(trial);
        assert_int_equal(count_descriptors(&during), count + 1);
        connection_close(trial->connection);
    }
    assert_int_equal(count_descriptors(&before), count);
    assert_int_equal(during, before);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* cannot fail */
    const struct CMUnitTest tests[] = {
        TRIAL(answers_thousands_in_order),
        TRIAL(carries_megabytes),
        TRIAL(ends_with_the_deadline_of_a_command),
        TRIAL(waits_for_what_is_still_coming_in),
        TRIAL(gives_up_an_answer_that_never_ends),
        TRIAL(ends_a_blocked_read),
        TRIAL(reports_nulls_before_the_loss),
        TRIAL(a_reply_to_no_command_is_a_loss),
        TRIAL(a_reply_without_bounds_is_a_loss),
        TRIAL(an_error_to_no_command_is_told),
        TRIAL(a_mangled_message_is_a_loss),
        TRIAL(hears_every_message),
        TRIAL(a_refused_subscription_is_told),
        TRIAL(closes_with_commands_pending),
        TRIAL(closes_within_callbacks),
        TRIAL(opens_anew_within_callbacks),
        TRIAL(closes_at_any_time),
        TRIAL(leaves_no_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
