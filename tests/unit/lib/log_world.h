/* The surroundings of a log test: stderr is a pipe, and the journal a socket of the test's own. */
#ifndef LEAT_TESTS_LOG_WORLD_H
#define LEAT_TESTS_LOG_WORLD_H

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/log/log.h"
#include "base/log/log_sink.h"

enum { PATIENCE_S = 60 };

struct world {
    int real_stderr;
    int reader; /* what comes out of stderr */
    int journal;
    char folder[32];
    char socket_path[64];
    struct buffer text;
};

__attribute__((unused)) static int open_journal(struct world *world)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    world->journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, world->socket_path, strlen(world->socket_path) + 1);
    return bind(world->journal, (const struct sockaddr *)&address, sizeof address);
}

__attribute__((unused)) static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    int ends[2];

    if (!world || pipe(ends) != 0) {
        return -1;
    }
    *state = world;
    world->reader = ends[0];
    world->real_stderr = dup(STDERR_FILENO);
    memcpy(world->folder, "/tmp/leat-log-XXXXXX", 21);
    if (dup2(ends[1], STDERR_FILENO) < 0 || !mkdtemp(world->folder)) {
        return -1;
    }
    close(ends[1]);
    if (snprintf(world->socket_path, sizeof world->socket_path, "%s/socket", world->folder) < 0) {
        return -1;
    }
    log_sink_set_journal_path(world->socket_path);
    unsetenv("JOURNAL_STREAM");
    /* a write that blocks ends the program */
    alarm(PATIENCE_S);
    return open_journal(world);
}

__attribute__((unused)) static int tear_down(void **state)
{
    struct world *world = *state;

    log_close();
    dup2(world->real_stderr, STDERR_FILENO);
    close(world->real_stderr);
    close(world->reader);
    close(world->journal);
    unlink(world->socket_path);
    rmdir(world->folder);
    buffer_free(&world->text);
    free(world);
    alarm(0);
    return 0;
}

/* All that stderr has received since the last call, NUL-terminated. */
__attribute__((unused)) static const char *read_stderr(struct world *world)
{
    char data[65536];
    ssize_t got;

    buffer_clear(&world->text);
    assert_int_equal(fcntl(world->reader, F_SETFL, O_NONBLOCK), 0);
    while ((got = read(world->reader, data, sizeof data)) > 0) {
        assert_int_equal(buffer_append(&world->text, data, (size_t)got), 0);
    }
    assert_int_equal(buffer_append(&world->text, "", 1), 0);
    return world->text.data;
}

/* The next record that the journal has received. Returns false if there is none. */
__attribute__((unused)) static bool receive(struct world *world)
{
    enum { LARGEST = 4 << 20 };
    ssize_t got;

    buffer_clear(&world->text);
    assert_int_equal(buffer_reserve(&world->text, LARGEST), 0);
    got = recv(world->journal, world->text.data, LARGEST, 0);
    world->text.size = got > 0 ? (size_t)got : 0;
    return got > 0;
}

__attribute__((unused)) static void assert_matches(const char *text, const char *pattern)
{
    regex_t compiled;

    assert_int_equal(regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB), 0);
    if (regexec(&compiled, text, 0, NULL, 0) != 0) {
        fail_msg("\"%s\" does not match %s", text, pattern);
    }
    regfree(&compiled);
}

__attribute__((unused)) static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)); text += strlen(part)) {
        count++;
    }
    return count;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

#endif
