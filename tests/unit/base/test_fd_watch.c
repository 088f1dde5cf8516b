/* Watches of descriptors. The calls of epoll_ctl are counted. */
#include "base/fd_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static int calls;

/* in place of the one of libc, for libev */
int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    calls++;
    return (int)syscall(SYS_epoll_ctl, epoll, operation, fd, event);
}

struct fixture {
    struct ev_loop *loop;
    struct fd_watch read, write;
    int ends[2];
    int reads, writes;
};

static void on_read(void *context)
{
    struct fixture *fixture = context;
    char byte;
    assert_int_equal(read(fixture->ends[0], &byte, 1), 1);
    fixture->reads++;
}

static void on_write(void *context)
{
    struct fixture *fixture = context;
    fixture->writes++;
}

static int setup(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.loop = ev_loop_new(EVBACKEND_EPOLL)};
    assert_non_null(fixture.loop);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fixture.ends), 0);
    fd_watch_init(&fixture.read, on_read, &fixture);
    fd_watch_init(&fixture.write, on_write, &fixture);
    fd_watch_start(&fixture.read, fixture.loop, fixture.ends[0], EV_READ);
    fd_watch_start(&fixture.write, fixture.loop, fixture.ends[0], EV_WRITE);
    fd_watch_pause(&fixture.write, fixture.loop);
    ev_run(fixture.loop, EVRUN_NOWAIT);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    fd_watch_stop(&fixture->read, fixture->loop);
    fd_watch_stop(&fixture->write, fixture->loop);
    ev_loop_destroy(fixture->loop);
    close(fixture->ends[0]);
    close(fixture->ends[1]);
    return 0;
}

static void turn(struct fixture *fixture)
{
    assert_int_equal(write(fixture->ends[1], "x", 1), 1);
    ev_run(fixture->loop, EVRUN_ONCE);
}

/* Goal: a watch that is started and paused within a turn, as for each command to Redis, costs no
 * system call, and the other watch of the descriptor works on. */
static void test_pause_costs_nothing(void **state)
{
    struct fixture *fixture = *state;
    int before = calls;
    for (int i = 0; i < 3; i++) {
        fd_watch_start(&fixture->write, fixture->loop, fixture->ends[0], EV_WRITE);
        fd_watch_pause(&fixture->write, fixture->loop);
        turn(fixture);
    }
    assert_int_equal(fixture->reads, 3);
    assert_int_equal(fixture->writes, 0);
    assert_int_equal(calls, before);
}

/* Goal: a watch that was paused works when it is started again and stays, and a second pause ends
 * it. */
static void test_start_after_pause(void **state)
{
    struct fixture *fixture = *state;
    fd_watch_start(&fixture->write, fixture->loop, fixture->ends[0], EV_WRITE);
    turn(fixture);
    assert_int_equal(fixture->reads, 1);
    assert_int_equal(fixture->writes, 1);
    fd_watch_pause(&fixture->write, fixture->loop);
    turn(fixture);
    assert_int_equal(fixture->reads, 2);
    assert_int_equal(fixture->writes, 1);
}

/* Goal: a watch that was stopped may get another descriptor of the same number. */
static void test_stop_forgets(void **state)
{
    struct fixture *fixture = *state;
    int ends[2];
    fd_watch_stop(&fixture->read, fixture->loop);
    fd_watch_stop(&fixture->write, fixture->loop);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(dup2(ends[0], fixture->ends[0]), fixture->ends[0]);
    assert_int_equal(dup2(ends[1], fixture->ends[1]), fixture->ends[1]);
    close(ends[0]);
    close(ends[1]);
    fd_watch_start(&fixture->read, fixture->loop, fixture->ends[0], EV_READ);
    turn(fixture);
    assert_int_equal(fixture->reads, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pause_costs_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_start_after_pause, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stop_forgets, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
