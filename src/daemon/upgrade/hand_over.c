/*
 * Sends and receives the packets of an upgrade.
 */
#include "daemon/upgrade/hand_over.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/process/descriptor.h"

#define FDS_SIZE (HAND_OVER_ELDERS * sizeof(int))

int hand_over_send(int socket, const struct hand_over *packet, const int *fds)
{
    _Alignas(struct cmsghdr) char space[CMSG_SPACE(FDS_SIZE)] = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)packet, .iov_len = sizeof *packet};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    size_t size = packet->elders * sizeof(int);
    if (size > 0) {
        message.msg_control = space;
        message.msg_controllen = CMSG_SPACE(size);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(rights), fds, size);
    }
    ssize_t sent;
    do {
        sent = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -1 : 0;
}

static void take_fds(struct msghdr *message, int fds[HAND_OVER_ELDERS])
{
    for (size_t i = 0; i < HAND_OVER_ELDERS; i++) {
        fds[i] = -1;
    }
    struct cmsghdr *rights = CMSG_FIRSTHDR(message);
    if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS) {
        size_t size = rights->cmsg_len - CMSG_LEN(0);
        memcpy(fds, CMSG_DATA(rights), size < FDS_SIZE ? size : FDS_SIZE);
    }
}

void hand_over_close(int fds[HAND_OVER_ELDERS])
{
    for (size_t i = 0; i < HAND_OVER_ELDERS; i++) {
        descriptor_close(&fds[i]);
    }
}

static void end_texts(struct hand_over *packet)
{
    packet->version[sizeof packet->version - 1] = '\0';
    packet->text[sizeof packet->text - 1] = '\0';
    for (size_t i = 0; i < HAND_OVER_ELDERS; i++) {
        packet->elder[i].version[sizeof packet->elder[i].version - 1] = '\0';
    }
    packet->elders = packet->elders < HAND_OVER_ELDERS ? packet->elders : HAND_OVER_ELDERS;
}

int hand_over_receive(int socket, struct hand_over *packet, int fds[HAND_OVER_ELDERS])
{
    _Alignas(struct cmsghdr) char space[CMSG_SPACE(FDS_SIZE)];
    struct iovec part = {.iov_base = packet, .iov_len = sizeof *packet};
    /* CMSG_SPACE would have room for one descriptor more, which nobody would close */
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = space,
                             .msg_controllen = CMSG_LEN(FDS_SIZE)};
    *packet = (struct hand_over){0};
    ssize_t got;
    /* a side that ends without having read all resets the connection; its own packets follow */
    do {
        got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got <= 0) {
        return got < 0 && errno == EAGAIN ? 0 : -1;
    }
    take_fds(&message, fds);
    end_texts(packet);
    return 1;
}

int hand_over_send_server(int socket, const char *url)
{
    uint32_t word = HAND_OVER_SERVER;
    struct iovec parts[] = {{.iov_base = &word, .iov_len = sizeof word},
                            {.iov_base = (void *)(uintptr_t)url, .iov_len = strlen(url)}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 0;
}

int hand_over_receive_server(int socket, char **url)
{
    uint32_t word = 0;
    ssize_t size = recv(socket, &word, sizeof word, MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC);
    *url = NULL;
    if (size < (ssize_t)sizeof word || word != HAND_OVER_SERVER) {
        return 0;
    }
    char *text = calloc(1, (size_t)size + 1);
    if (!text) {
        return -1;
    }
    struct iovec parts[] = {{.iov_base = &word, .iov_len = sizeof word},
                            {.iov_base = text, .iov_len = (size_t)size - sizeof word}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    (void)recvmsg(socket, &message, MSG_DONTWAIT); /* it is there */
    *url = text;
    return 0;
}
