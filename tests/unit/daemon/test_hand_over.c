/* The packets of an upgrade: between programs that know more members or fewer, and with
 * descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/upgrade/hand_over.h"

static int make_sockets(void **state)
{
    static int ends[2];
    *state = ends;
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
}

static int close_sockets(void **state)
{
    const int *ends = *state;
    (void)close(ends[0]);
    return close(ends[1]);
}

static int receive(int socket, struct hand_over *packet)
{
    int fds[HAND_OVER_ELDERS];
    int got = hand_over_receive(socket, packet, fds);
    for (size_t i = 0; got > 0 && i < HAND_OVER_ELDERS; i++) {
        assert_int_equal(fds[i], -1);
    }
    return got;
}

/* Goal: a packet arrives as it was sent; nothing and the end are told apart. */
static void packets_arrive(void **state)
{
    int *ends = *state;
    const struct hand_over sent = {
        .word = HAND_OVER_READY, .slots = HAND_OVER_ALL_SLOTS, .version = "1.2.3"};
    struct hand_over got;
    assert_int_equal(receive(ends[1], &got), 0);
    assert_int_equal(hand_over_send(ends[0], &sent, NULL), 0);
    assert_int_equal(receive(ends[1], &got), 1);
    assert_memory_equal(&got, &sent, sizeof got);
    (void)close(ends[0]);
    assert_int_equal(receive(ends[1], &got), -1);
    assert_int_equal(hand_over_send(ends[1], &sent, NULL), -1);
    ends[0] = dup(ends[1]); /* for close_sockets */
}

/* Goal: members that an older program does not send are 0, those of a newer one are passed over,
 * and texts without an end get one. */
static void packets_of_other_versions(void **state)
{
    const int *ends = *state;
    struct {
        struct hand_over known;
        char more[1000];
    } newer;
    struct hand_over got;
    memset(&newer, 'x', sizeof newer);
    assert_int_equal(send(ends[0], &newer, sizeof newer, 0), sizeof newer);
    assert_int_equal(receive(ends[1], &got), 1);
    assert_int_equal(strlen(got.version), sizeof got.version - 1);
    assert_int_equal(strlen(got.text), sizeof got.text - 1);
    assert_int_equal(strlen(got.elder[0].version), sizeof got.elder[0].version - 1);
    assert_int_equal(got.elders, HAND_OVER_ELDERS);

    const uint32_t older[] = {HAND_OVER_SLOTS, 1};
    assert_int_equal(send(ends[0], older, sizeof older, 0), sizeof older);
    assert_int_equal(receive(ends[1], &got), 1);
    assert_int_equal(got.word, HAND_OVER_SLOTS);
    assert_int_equal(got.slots, 0);
    assert_string_equal(got.version, "");
}

/* Goal: descriptors come along in their order, and are closed at an exec. */
static void descriptors_come_along(void **state)
{
    const int *ends = *state;
    const struct hand_over sent = {
        .word = HAND_OVER_OVER, .elders = 2, .elder = {{.pid = 5, .slots = 3}, {.pid = 6}}};
    int given[2] = {open("/dev/null", O_RDONLY), open("/dev/zero", O_RDONLY)};
    int fds[HAND_OVER_ELDERS];
    struct hand_over got;
    assert_int_equal(hand_over_send(ends[0], &sent, given), 0);
    assert_int_equal(hand_over_receive(ends[1], &got, fds), 1);
    assert_memory_equal(&got, &sent, sizeof got);
    for (size_t i = 0; i < 2; i++) {
        struct stat before, after;
        assert_int_equal(fstat(given[i], &before), 0);
        assert_int_equal(fstat(fds[i], &after), 0);
        assert_int_equal(before.st_rdev, after.st_rdev);
        assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
        (void)close(given[i]);
    }
    assert_int_equal(fds[2], -1);
    int first = fds[0];
    hand_over_close(fds);
    assert_int_equal(fcntl(first, F_GETFD), -1);
}

/* Goal: descriptors that nobody expects are closed. */
static void too_many_descriptors(void **state)
{
    const int *ends = *state;
    const struct hand_over sent = {.word = HAND_OVER_SLOTS};
    _Alignas(struct cmsghdr) char space[CMSG_SPACE((HAND_OVER_ELDERS + 9) * sizeof(int))] = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)&sent, .iov_len = sizeof sent};
    int fds[HAND_OVER_ELDERS], before = dup(ends[0]);
    struct hand_over got;
    for (size_t count = 1; count <= HAND_OVER_ELDERS + 9; count++) {
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = space,
                                 .msg_controllen = CMSG_SPACE(count * sizeof(int))};
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(count * sizeof(int)); /* all of them are descriptor 0 */
        assert_int_equal(sendmsg(ends[0], &message, 0), sizeof sent);
        assert_int_equal(hand_over_receive(ends[1], &got, fds), 1);
        hand_over_close(fds);
    }
    (void)close(before);
    int after = dup(ends[0]);
    (void)close(after);
    assert_int_equal(before, after);
}

/* Goal: the URL of the server comes before the offer, and only then. */
static void server_comes_along(void **state)
{
    const int *ends = *state;
    const struct hand_over offer = {.word = HAND_OVER_OFFER};
    const char sent[] = "redis://:secret@example.net";
    struct hand_over got;
    char *url;
    assert_int_equal(hand_over_send_server(ends[0], sent), 0);
    assert_int_equal(hand_over_send(ends[0], &offer, NULL), 0);
    assert_int_equal(hand_over_receive_server(ends[1], &url), 0);
    assert_string_equal(url, sent);
    free(url);
    assert_int_equal(hand_over_receive_server(ends[1], &url), 0);
    assert_null(url);
    assert_int_equal(receive(ends[1], &got), 1);
    assert_int_equal(got.word, HAND_OVER_OFFER);
    assert_int_equal(hand_over_receive_server(ends[1], &url), 0);
    assert_null(url);
}

/* Goal: what the other side has sent before its end is heard, even if it has not read everything.
 */
static void last_words_are_heard(void **state)
{
    int *ends = *state;
    const struct hand_over offer = {.word = HAND_OVER_OFFER}, refusal = {.word = HAND_OVER_REFUSED};
    struct hand_over got;
    assert_int_equal(hand_over_send(ends[0], &offer, NULL), 0);
    assert_int_equal(hand_over_send(ends[1], &refusal, NULL), 0);
    (void)close(ends[1]);
    assert_int_equal(receive(ends[0], &got), 1);
    assert_int_equal(got.word, HAND_OVER_REFUSED);
    assert_int_equal(receive(ends[0], &got), -1);
    ends[1] = dup(ends[0]); /* for close_sockets */
}

/* Goal: what is no such socket is told. */
static void other_descriptors(void **state)
{
    (void)state;
    struct hand_over got;
    int fd = open("/dev/null", O_RDONLY);
    assert_int_equal(receive(fd, &got), -1);
    assert_int_equal(receive(-1, &got), -1);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(packets_arrive, make_sockets, close_sockets),
        cmocka_unit_test_setup_teardown(packets_of_other_versions, make_sockets, close_sockets),
        cmocka_unit_test_setup_teardown(descriptors_come_along, make_sockets, close_sockets),
        cmocka_unit_test_setup_teardown(too_many_descriptors, make_sockets, close_sockets),
        cmocka_unit_test_setup_teardown(server_comes_along, make_sockets, close_sockets),
        cmocka_unit_test_setup_teardown(last_words_are_heard, make_sockets, close_sockets),
        cmocka_unit_test(other_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
