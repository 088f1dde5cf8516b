// The filter that bounds which users a leatd with capabilities can change to. Needs root.
#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec/start/confine.h"

enum { UID = 1234, GID = 2345 };

static gid_t group_ids[] = {7, 8};

static int confine_to(size_t groups)
{
    struct confinement confinement = {0};
    const struct identity identity = {
        .uid = UID, .gid = GID, .groups = group_ids, .group_count = groups, .other = true};
    return confine(&confinement, &identity);
}

#define UNCONFINED SIZE_MAX

/* Runs the function in a child with the filter. Returns its result: 0, or the line that failed. */
static int within(size_t groups, int (*run)(void))
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(groups != UNCONFINED && confine_to(groups) ? 255 : run());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define REFUSED(call, error)                                                                       \
    do {                                                                                           \
        errno = 0;                                                                                 \
        if ((call) != -1 || errno != (error)) {                                                    \
            return __LINE__ & 0xff;                                                                \
        }                                                                                          \
    } while (0)
#define DONE(call)                                                                                 \
    do {                                                                                           \
        if ((call) != 0) {                                                                         \
            return __LINE__ & 0xff;                                                                \
        }                                                                                          \
    } while (0)

static int try_other_users(void)
{
    REFUSED(setresuid(UID + 1, UID, UID), EPERM);
    REFUSED(setresuid(UID, 0, UID), EPERM);
    REFUSED(setresuid(UID, UID, (uid_t)-1), EPERM);
    REFUSED(setresuid(0, 0, 0), EPERM);
    REFUSED(setresgid(0, GID, GID), EPERM);
    REFUSED(setresgid(GID, 0, GID), EPERM);
    REFUSED(setresgid(GID, GID, 0), EPERM);
    REFUSED(setuid(UID), EPERM);
    REFUSED(setgid(GID), EPERM);
    REFUSED(setreuid(UID, UID), EPERM);
    REFUSED(setregid(GID, GID), EPERM);
    REFUSED(syscall(SYS_setfsuid, 1), EPERM);
    REFUSED(syscall(SYS_setfsgid, 1), EPERM);
    REFUSED(setgroups(1, group_ids), EPERM);
    return 0;
}

static int try_namespaces(void)
{
    REFUSED(unshare(CLONE_NEWUSER), EPERM);
    REFUSED(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_FILES), EPERM);
    REFUSED(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL), EPERM);
    REFUSED(syscall(SYS_clone3, NULL, 0), ENOSYS);
    REFUSED(setns(0, 0), EPERM);
    DONE(unshare(CLONE_FILES));
    return 0;
}

static int change_user(void)
{
    DONE(setgroups(0, NULL));
    DONE(setresgid(GID, GID, GID));
    DONE(setresuid(UID, UID, UID));
    return getuid() == UID && getgid() == GID ? try_other_users() : 1;
}

static int change_user_with_groups(void)
{
    REFUSED(setgroups(0, NULL), EPERM);
    REFUSED(setgroups(1, group_ids), EPERM);
    DONE(setgroups(2, group_ids));
    DONE(setresgid(GID, GID, GID));
    DONE(setresuid(UID, UID, UID));
    return 0;
}

/* A thread that was started before the filter, such as one that looks up a name while a reload sets
 * the user of tasks. */
static void *become_root_when_told(void *pipe)
{
    char told;
    return (void *)(intptr_t)(read(*(int *)pipe, &told, 1) == 1 && syscall(SYS_setuid, 0) == -1 &&
                              errno == EPERM);
}

static int confine_beside_a_thread(void)
{
    int ends[2];
    pthread_t thread;
    void *was_refused = NULL;
    DONE(pipe(ends));
    DONE(pthread_create(&thread, NULL, become_root_when_told, &ends[0]));
    DONE(confine_to(0));
    DONE(write(ends[1], "x", 1) - 1);
    DONE(pthread_join(thread, &was_refused));
    return was_refused ? 0 : 1;
}

/* As in a unit of systemd 252 with SystemCallFilter=@system-service. */
static int confine_without_seccomp_call(void)
{
    struct sock_filter refuse[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof refuse / sizeof *refuse, refuse};
    DONE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    DONE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    DONE(confine_to(0));
    return try_other_users();
}

static int start_a_process(void)
{
    return system("exit 3") == 3 << 8 ? 0 : 1;
}

// Goal: whoever controls leatd can change to the one user and group, and to no other by any call.
static void only_the_configured_user(void **state)
{
    (void)state;
    assert_int_equal(within(0, try_other_users), 0);
    assert_int_equal(within(0, change_user), 0);
    assert_int_equal(within(2, change_user_with_groups), 0);
}

// Goal: no thread that runs already escapes the filter.
static void all_threads(void **state)
{
    (void)state;
    assert_int_equal(within(UNCONFINED, confine_beside_a_thread), 0);
}

// Goal: where systemd refuses seccomp(), leatd has the filter nevertheless.
static void without_the_call(void **state)
{
    (void)state;
    assert_int_equal(within(UNCONFINED, confine_without_seccomp_call), 0);
}

// Goal: no user namespace, in which a process could map any user, and no way into another one.
static void no_user_namespaces(void **state)
{
    (void)state;
    assert_int_equal(within(0, try_namespaces), 0);
    assert_int_equal(within(0, start_a_process), 0);
}

// Goal: only another user, group or number of groups does not fit into the filter.
static void what_fits(void **state)
{
    (void)state;
    const struct confinement none = {0}, active = {true, UID, GID, 0};
    const struct {
        struct identity identity;
        bool fits;
    } cases[] = {
        {{.uid = UID, .gid = GID, .other = true}, true},
        {{.uid = UID + 1, .gid = GID, .other = true}, false},
        {{.uid = UID, .gid = GID + 1, .other = true}, false},
        {{.uid = UID, .gid = GID, .group_count = 1, .other = true}, false},
        {{.uid = 5, .gid = 5}, true},
        {{.uid = 5, .gid = 5, .other = true, .missing = "there is no user x"}, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(confinement_allows(&none, &cases[i].identity));
        assert_int_equal(confinement_allows(&active, &cases[i].identity), cases[i].fits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_configured_user),
        cmocka_unit_test(all_threads),
        cmocka_unit_test(without_the_call),
        cmocka_unit_test(no_user_namespaces),
        cmocka_unit_test(what_fits),
    };
    if (geteuid() != 0) {
        return 0; /* without capabilities, every call of the tests is refused anyway */
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
