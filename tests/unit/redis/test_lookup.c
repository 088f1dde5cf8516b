/* Lookups of addresses, while calls of epoll_ctl fail. */
#include "redis/connection/lookup.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>
#include <ev.h>

#define TICK_S 0.05
#define TICKS 1200 /* the deadline */

static int failing;  /* how many of the next calls fail */
static sem_t failed; /* the last of them has failed */

/* in place of the one of libc, for libev */
int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    if (failing > 0) {
        if (--failing == 0) {
            sem_post(&failed);
        }
        errno = ENOMEM;
        return -1;
    }
    return (int)syscall(SYS_epoll_ctl, epoll, operation, fd, event);
}

/* in place of the one of libc: names are looked up after the failures */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    union {
        void *symbol;
        int (*call)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    } real = {.symbol = dlsym(RTLD_NEXT, "getaddrinfo")};
    sem_wait(&failed);
    sem_post(&failed);
    return real.call(host, service, hints, found);
}

struct answer {
    struct ev_loop *loop;
    int count, ticks;
    char address[64];
};

static void on_found(void *context, const char *address, const char *why)
{
    struct answer *answer = context;
    assert_string_equal(why, "");
    answer->count++;
    (void)snprintf(answer->address, sizeof answer->address, "%s", address);
    ev_break(answer->loop, EVBREAK_ALL);
}

/* A loop that never wakes would not restart a watch. */
static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)events;
    struct answer *answer = timer->data;
    if (++answer->ticks == TICKS) {
        ev_break(loop, EVBREAK_ALL);
    }
}

/* Goal: a lookup is answered though epoll_ctl fails when the loop begins to watch for its end. */
static void test_failures_of_epoll_ctl(void **state)
{
    (void)state;
    for (int failures = 0; failures <= 2; failures++) {
        struct answer answer = {.loop = ev_loop_new(EVBACKEND_EPOLL)};
        ev_timer tick;
        assert_non_null(answer.loop);
        ev_timer_init(&tick, on_tick, TICK_S, TICK_S);
        tick.data = &answer;
        ev_timer_start(answer.loop, &tick);
        failing = failures;
        assert_int_equal(sem_init(&failed, 0, failures == 0), 0);
        assert_non_null(lookup_start(answer.loop, "localhost", on_found, &answer));
        ev_run(answer.loop, 0);
        assert_int_equal(answer.count, 1);
        assert_string_equal(answer.address, "127.0.0.1");
        ev_loop_destroy(answer.loop);
    }
}

/* Goal: a lookup that was cancelled calls nobody, though its thread ends later than the loop. */
static void test_cancelled(void **state)
{
    (void)state;
    struct answer answer = {.loop = ev_loop_new(EVBACKEND_EPOLL)};
    assert_non_null(answer.loop);
    assert_int_equal(sem_init(&failed, 0, 0), 0);
    struct lookup *lookup = lookup_start(answer.loop, "localhost", on_found, &answer);
    assert_non_null(lookup);
    ev_run(answer.loop, EVRUN_NOWAIT);
    lookup_cancel(lookup);
    ev_loop_destroy(answer.loop);
    sem_post(&failed);
    assert_int_equal(answer.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures_of_epoll_ctl),
        cmocka_unit_test(test_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
