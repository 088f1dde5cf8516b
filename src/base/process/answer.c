/* Asks by signals, and answers by datagrams. */
#include "base/process/answer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/descriptor.h"

/* The name begins with a NUL, so it is no file. Returns the size of the address. */
static socklen_t name_socket(struct sockaddr_un *address, pid_t pid, int number)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int size = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "leat-answer-%d-%d",
                        (int)pid, number); /* fits */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
}

struct answer answer_to(const struct signalfd_siginfo *got)
{
    bool is_asked = got->ssi_code == SI_QUEUE && got->ssi_int > 0;
    return is_asked ? (struct answer){.pid = (pid_t)got->ssi_pid, .number = got->ssi_int}
                    : (struct answer){0};
}

void answer_send(struct answer *answer, const char *text)
{
    struct sockaddr_un address;
    if (answer->pid == 0) {
        return;
    }
    socklen_t size = name_socket(&address, answer->pid, answer->number);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        /* whoever has asked may be gone */
        (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address, size);
        (void)close(fd);
    }
    answer->pid = 0;
}

/* Opens the socket for the answer with that number. Returns 0, or -1 with errno. */
static int listen_at(int number, int *fd)
{
    struct sockaddr_un address;
    socklen_t size = name_socket(&address, getpid(), number);
    const int on = 1;
    *fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd >= 0 && setsockopt(*fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 &&
        bind(*fd, (struct sockaddr *)&address, size) == 0) {
        return 0;
    }
    descriptor_close(fd);
    return -1;
}

int answer_ask(pid_t pid, int signal, int *socket)
{
    unsigned number;
    *socket = -1;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
        return -1;
    }
    const union sigval value = {.sival_int = (int)(number >> 2) + 1};
    if (listen_at(value.sival_int, socket)) {
        return -1;
    }
    if (sigqueue(pid, signal, value)) {
        descriptor_close(socket);
        return -1;
    }
    return 0;
}

/* Receives one datagram. Returns true if it is from that process: any other can send one, too. */
static bool receive(int socket, pid_t pid, char *text, size_t size)
{
    _Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(struct ucred))];
    struct iovec part = {.iov_base = text, .iov_len = size - 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    ssize_t got = recvmsg(socket, &message, 0);
    const struct cmsghdr *header = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
    struct ucred sender = {0};
    text[got > 0 ? got : 0] = '\0';
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_CREDENTIALS) {
        memcpy(&sender, CMSG_DATA(header), sizeof sender);
    }
    return sender.pid == pid;
}

int answer_wait(int socket, pid_t pid, int64_t timeout_ms, char *text, size_t size)
{
    int64_t until_ns = clock_boot_ns() + timeout_ms * CLOCK_NS_PER_MS, left_ms;
    while ((left_ms = (until_ns - clock_boot_ns()) / CLOCK_NS_PER_MS) > 0) {
        struct pollfd ready = {.fd = socket, .events = POLLIN};
        int result = poll(&ready, 1, (int)left_ms);
        if (result < 0 && errno != EINTR) {
            return -1;
        }
        if (result > 0 && receive(socket, pid, text, size)) {
            return 0;
        }
    }
    text[0] = '\0';
    errno = ETIMEDOUT;
    return -1;
}
