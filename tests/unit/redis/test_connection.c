/* Goal: an asynchronous connection is established, or reports within its deadline why it is not. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "../lib/connection_trial.h"

/* ---- established connections ---- */

static void comes_up_with_its_name(void **state)
{
    struct trial *trial = *state;
    assert_int_equal(connection_client_id(trial->connection), -1);
    assert_int_equal(connection_send(trial->connection, &trial->command, 0, on_reply, trial), -1);
    trial->config.db = 3;
    open_up(trial);
    int64_t id = connection_client_id(trial->connection);
    assert_true(id > 0);
    send_text(trial, 20000, "CLIENT", "GETNAME");
    send_text(trial, 20000, "CLIENT", "INFO");
    run_until(trial, &trial->replies, 2);
    assert_int_equal(buffer_append(&trial->texts, "", 1), 0);
    assert_memory_equal(trial->texts.data, "leat:q_q:work\n", 14);
    assert_non_null(strstr(trial->texts.data, " db=3 "));

    /* it keeps the id of the former client until the next open */
    connection_close(trial->connection);
    assert_int_equal(connection_client_id(trial->connection), id);
    assert_int_equal(trial->losts, 0);
}

static void authenticates(void **state)
{
    struct trial *trial = *state;
    server_do(&trial->server, "ACL SETUSER w on >p~ssw0rd +@all ~*");
    trial->config.user = (char[]){"w"};
    trial->config.password = (char[]){"p~ssw0rd"};
    open_up(trial);
    send_text(trial, 20000, "ACL", "WHOAMI");
    run_until(trial, &trial->replies, 1);
    assert_texts(trial, "w\n");
}

static void tells_wrong_credentials_without_them(void **state)
{
    struct trial *trial = *state;
    trial->config.user = (char[]){"nobody"};
    trial->config.password = (char[]){"p~ssw0rd"};
    connection_open(trial->connection);
    assert_lost(trial, REDIS_ERROR_DENIED, "AUTH: WRONGPASS");
    assert_null(strstr(trial->why, "ssw0rd"));
    assert_non_null(strstr(trial->why, trial->server.socket));
}

static void tells_that_a_password_is_needed(void **state)
{
    struct trial *trial = *state;
    server_do(&trial->server, "CONFIG SET requirepass x");
    connection_open(trial->connection);
    assert_lost(trial, REDIS_ERROR_DENIED, "NOAUTH");
}

static void tells_what_the_acl_denies(void **state)
{
    struct trial *trial = *state;
    server_do(&trial->server, "ACL SETUSER w on >p +@all -client ~*");
    trial->config.user = (char[]){"w"};
    trial->config.password = (char[]){"p"};
    connection_open(trial->connection);
    assert_lost(trial, REDIS_ERROR_DENIED, "CLIENT SETNAME: NOPERM");
}

static void tells_that_the_database_is_not_there(void **state)
{
    struct trial *trial = *state;
    trial->config.db = 99;
    connection_open(trial->connection);
    assert_lost(trial, REDIS_ERROR_CALLER, "SELECT: DB index");
}

static void tells_that_there_is_no_room(void **state)
{
    struct trial *trial = *state;
    server_do(&trial->server, "CONFIG SET maxclients 1");
    redisContext *other = redisConnectUnix(trial->server.socket);
    redisReply *reply = redisCommand(other, "PING");
    assert_non_null(reply);
    freeReplyObject(reply);
    connection_open(trial->connection);
    assert_lost(trial, REDIS_ERROR_LATER, "max number of clients");
    redisFree(other);
}

/* ---- failed connections ---- */

static void tells_that_the_socket_is_missing(void **state)
{
    struct trial *trial = *state;
    trial->config.socket = (char[]){"/nonexistent/redis.sock"};
    connection_open(trial->connection);
    assert_int_equal(trial->losts, 0);
    assert_lost(trial, REDIS_ERROR_LOST, "/nonexistent/redis.sock: No such file");
}

/* A TCP socket on a free port; listening or not. */
static int make_port(struct trial *trial, bool listening)
{
    static char host[] = "127.0.0.1";
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    if (listening) {
        assert_int_equal(listen(fd, 1), 0);
    }
    trial->config.socket = NULL;
    trial->config.host = host;
    trial->config.port = ntohs(address.sin_port);
    return fd;
}

static void tells_that_it_was_refused(void **state)
{
    struct trial *trial = *state;
    int fd = make_port(trial, false);
    connection_open(trial->connection);
    assert_lost(trial, REDIS_ERROR_LOST, "Connection refused");
    (void)close(fd); /* nothing was written */
}

static void gives_up_on_a_silent_server(void **state)
{
    struct trial *trial = *state;
    trial->config.connect_timeout_ms = 150;
    int fd = make_port(trial, true);
    int64_t begun_ns = clock_boot_ns();
    connection_open(trial->connection);
    run_until(trial, &trial->losts, 1);
    assert_in_range(clock_boot_ns() - begun_ns, 150 * CLOCK_NS_PER_MS, 30 * CLOCK_NS_PER_S);
    assert_lost(trial, REDIS_ERROR_LOST, "no answer within 150ms");
    assert_false(connection_is_late(trial->connection));
    (void)close(fd); /* nothing was written */
}

/* Goal: a full backlog is a timeout: packets to it are dropped, and connect(2) itself does not
 * end. */
static void gives_up_on_a_full_backlog(void **state)
{
    struct trial *trial = *state;
    int others[8];
    trial->config.connect_timeout_ms = 150;
    int fd = make_port(trial, true);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)trial->config.port)};
    for (size_t i = 0; i < 8; i++) {
        others[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(others[i], (struct sockaddr *)&address, sizeof address); /* in progress */
    }
    connection_open(trial->connection);
    assert_lost(trial, REDIS_ERROR_LOST, "no answer within 150ms");
    for (size_t i = 0; i < 8; i++) {
        (void)close(others[i]); /* nothing was written */
    }
    (void)close(fd); /* nothing was written */
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* cannot fail */
    const struct CMUnitTest tests[] = {
        TRIAL(comes_up_with_its_name),
        TRIAL(authenticates),
        TRIAL(tells_wrong_credentials_without_them),
        TRIAL(tells_that_a_password_is_needed),
        TRIAL(tells_what_the_acl_denies),
        TRIAL(tells_that_the_database_is_not_there),
        TRIAL(tells_that_there_is_no_room),
        TRIAL(tells_that_the_socket_is_missing),
        TRIAL(tells_that_it_was_refused),
        TRIAL(gives_up_on_a_silent_server),
        TRIAL(gives_up_on_a_full_backlog),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
