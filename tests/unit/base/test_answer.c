/* Answers to signals: the one of the process that was asked, and of no other. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process/answer.h"

/* Waits for the signal, lets another process answer first, and then answers. */
_Noreturn static void serve(const sigset_t *signals, const char *truth)
{
    struct signalfd_siginfo got;
    int fd = signalfd(-1, signals, SFD_CLOEXEC);
    if (fd < 0 || read(fd, &got, sizeof got) != sizeof got) {
        _exit(1);
    }
    struct answer answer = answer_to(&got);
    pid_t liar = fork();
    if (liar == 0) {
        answer_send(&answer, "+forged");
        _exit(0);
    }
    if (waitpid(liar, NULL, 0) != liar) {
        _exit(1);
    }
    if (truth) {
        answer_send(&answer, truth);
        answer_send(&answer, "twice");
    }
    _exit(0);
}

/* Asks a process that answers with that text, or only lets the other one answer. */
static int ask(const char *truth, int64_t timeout_ms, char *text, size_t size)
{
    sigset_t signals;
    int socket, status;
    assert_int_equal(sigemptyset(&signals), 0);
    assert_int_equal(sigaddset(&signals, SIGUSR2), 0);
    assert_int_equal(sigprocmask(SIG_BLOCK, &signals, NULL), 0);
    pid_t child = fork();
    if (child == 0) {
        serve(&signals, truth);
    }
    assert_int_equal(answer_ask(child, SIGUSR2, &socket), 0);
    int result = answer_wait(socket, child, timeout_ms, text, size);
    int error = errno;
    (void)close(socket);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    errno = error;
    return result;
}

/* Goal: the answer of another process, which comes first, is passed over. */
static void forged_answers_are_passed_over(void **state)
{
    char text[16];
    (void)state;
    assert_int_equal(ask("+1.2.3", 60000, text, sizeof text), 0);
    assert_string_equal(text, "+1.2.3");
}

/* Goal: a forged answer alone is none. */
static void forged_answers_are_none(void **state)
{
    char text[16];
    (void)state;
    assert_int_equal(ask(NULL, 200, text, sizeof text), -1);
    assert_int_equal(errno, ETIMEDOUT);
    assert_string_equal(text, "");
}

/* Goal: a long answer is cut. */
static void long_answers_are_cut(void **state)
{
    char text[5];
    (void)state;
    assert_int_equal(ask("+1.2.3", 60000, text, sizeof text), 0);
    assert_string_equal(text, "+1.2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forged_answers_are_passed_over),
        cmocka_unit_test(forged_answers_are_none),
        cmocka_unit_test(long_answers_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
