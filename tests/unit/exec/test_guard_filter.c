/* The filter of a guard: what it lets a guard do, and what fails with EPERM. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/process/proc.h"
#include "exec/guard/guard_filter.h"
#include "exec/tree/env_tag.h"

enum { FD_SOCKET = 30, FD_LOG, FD_OTHER, FD_TIMER };

/* Runs the function in a child with the filter and some descriptors. Returns its result: 0, or the
 * line that failed. */
static int within(int (*run)(void))
{
    int status, ends[2];
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bool ready = socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0 &&
                     dup2(ends[0], FD_SOCKET) >= 0 && dup2(memfd_create("log", 0), FD_LOG) >= 0 &&
                     dup2(memfd_create("other", 0), FD_OTHER) >= 0 &&
                     dup2(timerfd_create(CLOCK_BOOTTIME, 0), FD_TIMER) >= 0;
        _exit(!ready || guard_filter(FD_LOG) ? 255 : run());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define REFUSED(call)                                                                              \
    do {                                                                                           \
        errno = 0;                                                                                 \
        if ((call) != -1 || errno != EPERM) {                                                      \
            return __LINE__ & 0xff;                                                                \
        }                                                                                          \
    } while (0)
#define DONE(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return __LINE__ & 0xff;                                                                \
        }                                                                                          \
    } while (0)

static int try_programs(void)
{
    char *const none[] = {NULL};
    REFUSED(execve("/bin/true", none, none));
    REFUSED(syscall(SYS_execveat, AT_FDCWD, "/bin/true", none, none, 0));
    REFUSED(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL));
    REFUSED(syscall(SYS_clone3, NULL, 0));
    REFUSED(unshare(CLONE_FILES));
    REFUSED(setns(0, 0));
    REFUSED(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    REFUSED(syscall(SYS_process_vm_writev, getppid(), NULL, 0, NULL, 0, 0));
    REFUSED(
        syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    return 0;
}

static int try_users(void)
{
    REFUSED(syscall(SYS_setresuid, 0, 0, 0));
    REFUSED(syscall(SYS_setresgid, 0, 0, 0));
    REFUSED(syscall(SYS_setgroups, 0, NULL));
    REFUSED(syscall(SYS_setuid, 0));
    REFUSED(syscall(SYS_setgid, 0));
    REFUSED(syscall(SYS_capset, NULL, NULL));
    return 0;
}

static int try_files(void)
{
    REFUSED(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_WRONLY));
    REFUSED(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR));
    REFUSED(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_TRUNC));
    REFUSED(syscall(SYS_openat, AT_FDCWD, "/tmp", O_TMPFILE | O_RDWR, 0600));
    REFUSED(syscall(SYS_openat, AT_FDCWD, "/tmp/leat-guard-filter", O_RDONLY | O_CREAT, 0600));
    REFUSED(syscall(SYS_openat2, AT_FDCWD, "/dev/null", NULL, 0));
    REFUSED(mkdir("/tmp/leat-guard-filter", 0700));
    REFUSED(unlink("/tmp/leat-guard-filter"));
    REFUSED(rename("/tmp/leat-guard-filter", "/tmp/x"));
    REFUSED(chmod("/tmp", 0777));
    REFUSED(write(FD_OTHER, "x", 1));
    REFUSED(ftruncate(FD_LOG, 0));
    return 0;
}

static int try_network(void)
{
    const struct sockaddr somewhere = {.sa_family = AF_UNIX};
    REFUSED(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
    REFUSED(syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0));
    REFUSED(connect(FD_SOCKET, &somewhere, sizeof somewhere));
    REFUSED(sendto(FD_SOCKET, "x", 1, MSG_DONTWAIT, &somewhere, sizeof somewhere));
    REFUSED(bind(FD_SOCKET, &somewhere, sizeof somewhere));
    return 0;
}

static int work(void)
{
    struct itimerspec soon = {.it_value.tv_nsec = 1};
    struct pollfd timer = {.fd = FD_TIMER, .events = POLLIN};
    char text[64];
    struct iovec part = {.iov_base = text, .iov_len = sizeof text};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    DONE(send(FD_SOCKET, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1);
    DONE(recvmsg(FD_SOCKET, &message, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    DONE(timerfd_settime(FD_TIMER, 0, &soon, NULL) == 0);
    DONE(poll(&timer, 1, -1) == 1 && timer.revents == POLLIN);
    DONE(write(FD_LOG, "dead x\n", 7) == 7 && fsync(FD_LOG) == 0);
    DONE(pwrite(FD_OTHER, "1", 1, 0) == 1 && pread(FD_OTHER, text, 1, 0) == 1 && text[0] == '1');
    DONE(clock_boot_ns() > 0 && getpid() > 0 && getppid() > 0);
    DONE(kill(getpid(), 0) == 0);
    void *memory = malloc(1 << 20); /* by mmap */
    DONE(memory);
    free(memory);
    return 0;
}

static int read_processes(void)
{
    struct proc_walk walk;
    struct proc proc;
    size_t count = 0;
    int fd = proc_open(getppid());
    DONE(fd >= 0 || errno == ENOSYS);
    DONE(proc_is_there(fd));
    DONE(fd < 0 || proc_signal(fd, 0, 0) == 0);
    DONE(env_tag_read(getppid()) == 0); /* not blank, so it was read */
    DONE(proc_walk_open(&walk) == 0);
    while (proc_walk_next(&walk, &proc)) {
        count++;
    }
    proc_walk_close(&walk);
    DONE(count >= 2 && !walk.partial);
    return 0;
}

/* Goal: a guard that somebody has taken over can neither start nor change anything. */
static void what_is_refused(void **state)
{
    (void)state;
    assert_int_equal(within(try_programs), 0);
    assert_int_equal(within(try_users), 0);
    assert_int_equal(within(try_files), 0);
    assert_int_equal(within(try_network), 0);
}

/* Goal: the filter stands in the way of nothing that a guard does. */
static void what_is_allowed(void **state)
{
    (void)state;
    assert_int_equal(within(work), 0);
    assert_int_equal(within(read_processes), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(what_is_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
