/* Looks up addresses in a thread, which reports through an eventfd: libev's own wakeup is lost for
 * good, or ends the program, after epoll_ctl has failed for it. */
#include "redis/connection/lookup.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd_watch.h"

enum {
    ADDRESS_SIZE = 128,      /* an IPv6 address with its scope */
    STACK_SIZE = 512 * 1024, /* name services may load libraries that need much */
};

struct lookup {
    struct ev_loop *loop;
    struct fd_watch done;
    lookup_callback *callback;
    void *context;
    int done_fd;          /* readable when the thread has finished */
    pthread_mutex_t lock; /* guards the members below */
    int holders;          /* how many of the loop's side and the thread still use this */
    int error;            /* of getaddrinfo */
    char address[ADDRESS_SIZE];
    char host[];
};

static void release(struct lookup *lookup)
{
    pthread_mutex_lock(&lookup->lock);
    bool last = --lookup->holders == 0;
    pthread_mutex_unlock(&lookup->lock);
    if (last) {
        pthread_mutex_destroy(&lookup->lock);
        close(lookup->done_fd);
        free(lookup);
    }
}

/* Prefers IPv4, as hiredis does. Returns the result of getaddrinfo. */
static int find_address(const char *host, char *address, size_t size)
{
    static const int families[] = {AF_INET, AF_INET6};
    int error = EAI_NONAME;
    for (size_t i = 0; i < sizeof families / sizeof *families && error; i++) {
        struct addrinfo *found = NULL;
        struct addrinfo hints = {.ai_family = families[i], .ai_socktype = SOCK_STREAM};
        error = getaddrinfo(host, NULL, &hints, &found);
        if (error == 0) {
            error = getnameinfo(found->ai_addr, found->ai_addrlen, address, (socklen_t)size, NULL,
                                0, NI_NUMERICHOST);
            freeaddrinfo(found);
        }
    }
    return error;
}

static void *run(void *context)
{
    struct lookup *lookup = context;
    char address[ADDRESS_SIZE] = "";
    int error = find_address(lookup->host, address, sizeof address);

    pthread_mutex_lock(&lookup->lock);
    lookup->error = error;
    memcpy(lookup->address, address, sizeof address);
    pthread_mutex_unlock(&lookup->lock);
    (void)eventfd_write(lookup->done_fd, 1); /* the counter has room for it */
    release(lookup);
    return NULL;
}

static void on_done(void *context)
{
    struct lookup *lookup = context;
    fd_watch_stop(&lookup->done, lookup->loop);
    pthread_mutex_lock(&lookup->lock);
    int error = lookup->error;
    pthread_mutex_unlock(&lookup->lock);
    lookup->callback(lookup->context, error ? NULL : lookup->address,
                     error ? gai_strerror(error) : "");
    release(lookup);
}

bool lookup_is_needed(const char *host)
{
    struct addrinfo *found = NULL;
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    if (getaddrinfo(host, NULL, &hints, &found)) {
        return true;
    }
    freeaddrinfo(found);
    return false;
}

/* The thread blocks all signals: they are for the loop's thread. Returns 0 or an errno. */
static int start_thread(struct lookup *lookup)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    int error = pthread_attr_init(&attributes);
    if (error) {
        return error;
    }
    error = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (!error) {
        error = pthread_attr_setstacksize(&attributes, STACK_SIZE);
    }
    if (!error) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = pthread_create(&thread, &attributes, run, lookup);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
    return error;
}

struct lookup *lookup_start(struct ev_loop *loop, const char *host, lookup_callback *callback,
                            void *context)
{
    size_t size = strlen(host) + 1;
    struct lookup *lookup = calloc(1, sizeof *lookup + size);
    if (!lookup) {
        return NULL;
    }
    lookup->loop = loop;
    lookup->callback = callback;
    lookup->context = context;
    lookup->holders = 2;
    memcpy(lookup->host, host, size);
    fd_watch_init(&lookup->done, on_done, lookup);
    lookup->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int error = lookup->done_fd < 0 ? errno : 0;
    if (error) {
        goto fail;
    }
    error = pthread_mutex_init(&lookup->lock, NULL);
    if (error) {
        goto fail_fd;
    }
    error = start_thread(lookup);
    if (error) {
        goto fail_lock;
    }
    fd_watch_start(&lookup->done, loop, lookup->done_fd, EV_READ);
    return lookup;

fail_lock:
    pthread_mutex_destroy(&lookup->lock);
fail_fd:
    close(lookup->done_fd);
fail:
    free(lookup);
    errno = error;
    return NULL;
}

void lookup_cancel(struct lookup *lookup)
{
    if (!lookup) {
        return;
    }
    fd_watch_stop(&lookup->done, lookup->loop);
    release(lookup);
}
