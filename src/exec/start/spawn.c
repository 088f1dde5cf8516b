#include "exec/start/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/escape.h"
#include "base/process/control_file.h"
#include "base/process/proc.h"
#include "exec/guard/guard_entry.h"

/* ---- in the child: only system calls, and no memory but the stack ---- */

/* How the child tells how far it came: in the parent's memory, or by a pipe. */
struct telling {
    volatile struct spawn_failure *shared; /* or NULL */
    int pipe;                              /* or -1 */
    const char *what;                      /* of SPAWN_LIMIT */
    int home_error;
    bool inside; /* it was started in its cgroup */
    bool shares; /* the parent's table of descriptors, still */
};

static void tell(const struct telling *telling, enum spawn_step step, int error)
{
    if (telling->shared) {
        telling->shared->step = step;
        telling->shared->error = error;
        telling->shared->what = telling->what;
        telling->shared->home_error = telling->home_error;
    } else {
        /* a child that cannot tell is one that did not execute: the parent sees that, too */
        struct spawn_failure failure = {
            .step = step, .error = error, .what = telling->what, .home_error = telling->home_error};
        ssize_t written = write(telling->pipe, &failure, sizeof failure);
        (void)written;
    }
}

/* As the kernel has it: sigaction() of libc refuses the two signals that libc uses itself and that
 * may have been inherited as ignored, too. */
struct disposition {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

/* Handlers as well as what is ignored: signals are let in before exec, and a handler of the parent
 * must not run here. */
static void default_signals(uint64_t signals)
{
    struct disposition standard = {.handler = SIG_DFL};
    for (; signals; signals &= signals - 1) {
        syscall(SYS_rt_sigaction, __builtin_ctzll(signals) + 1, &standard, NULL,
                sizeof standard.mask);
    }
}

/* For kernels without close_range: everything that /proc lists from `first` on. */
static int close_listed(int first)
{
    struct proc_numbers listed;
    if (proc_numbers_open(&listed, "/proc/self/fd")) {
        return -1;
    }
    int fd;
    while ((fd = proc_numbers_next(&listed)) >= 0) {
        if (fd >= first && fd != listed.directory) {
            close(fd);
        }
    }
    proc_numbers_close(&listed);
    return listed.size < 0 ? -1 : 0;
}

static int close_from(int first)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0U, 0) == 0) {
        return 0;
    }
#endif
    return close_listed(first);
}

static int greater(int one, int other)
{
    return one > other ? one : other;
}

/* A table of descriptors of its own, with as little in it as can be. */
static int unshare_descriptors(const struct spawn *spawn)
{
    int last =
        greater(greater(spawn->input, spawn->output), greater(spawn->error, spawn->verdicts));
#if defined SYS_close_range && defined CLOSE_RANGE_UNSHARE
    if (syscall(SYS_close_range, last + 1, ~0U, CLOSE_RANGE_UNSHARE) == 0) {
        return 0;
    }
#endif
    return unshare(CLONE_FILES);
}

/* Number 3 for verdicts. The pipe for telling goes out of its way. */
static int set_verdicts(const struct spawn *spawn, struct telling *telling)
{
    if (telling->pipe == 3) {
        telling->pipe = fcntl(telling->pipe, F_DUPFD_CLOEXEC, 4);
        if (telling->pipe < 0) {
            return -1;
        }
    }
    return dup2(spawn->verdicts, 3) < 0 ? -1 : 0;
}

/* The descriptors of the task, the pipe for telling as the next number, and nothing else. */
static int set_descriptors(const struct spawn *spawn, struct telling *telling)
{
    int next = spawn->verdicts > 0 ? 4 : 3;
    if ((telling->shares && unshare_descriptors(spawn) < 0) || dup2(spawn->input, 0) < 0 ||
        dup2(spawn->output, 1) < 0 || dup2(spawn->error, 2) < 0 ||
        (spawn->verdicts > 0 && set_verdicts(spawn, telling) < 0)) {
        return -1;
    }
    if (telling->pipe < 0) {
        return close_from(next);
    }
    if (telling->pipe != next) {
        if (dup3(telling->pipe, next, O_CLOEXEC) < 0) {
            return -1;
        }
        telling->pipe = next;
    }
    return close_from(next + 1);
}

/* Executes DIRECTORY/NAME for each directory of the path, until one is found, as shells do. Returns
 * where the shell has to decide. */
static void execute_found(const struct spawn *spawn, const char *path)
{
    char candidate[PATH_MAX];
    size_t name_size = strlen(spawn->words[0]) + 1;
    for (const char *next = path; next; path = next + 1) {
        next = strchrnul(path, ':');
        size_t size = (size_t)(next - path);
        if (size + 1 + name_size > sizeof candidate) {
            return;
        }
        memcpy(candidate, path, size);
        if (size > 0) {
            candidate[size++] = '/';
        }
        memcpy(candidate + size, spawn->words[0], name_size);

        execve(candidate, spawn->words, spawn->environment);
        if ((errno != ENOENT && errno != ENOTDIR) || *next == '\0') {
            return;
        }
    }
}

static void execute(const struct spawn *spawn)
{
    if (spawn->words && strchr(spawn->words[0], '/')) {
        execve(spawn->words[0], spawn->words, spawn->environment);
    } else if (spawn->words) {
        execute_found(spawn, spawn->path);
    }
    if (spawn->shell) {
        execve(spawn->shell, spawn->shell_words, spawn->environment);
    }
}

static int set_limits(const struct spawn *spawn, struct telling *telling)
{
    telling->what = "the limit of open files";
    if (spawn->files && setrlimit(RLIMIT_NOFILE, spawn->files) < 0) {
        return -1;
    }
    telling->what = spawn->allowance ? allowance_apply(spawn->allowance) : NULL;
    return telling->what ? -1 : 0;
}

/* Directory and program are then looked at with the rights of the task. */
static int set_user(const struct spawn *spawn)
{
    if (spawn->identity && identity_become(spawn->identity) < 0) {
        return -1;
    }
    return spawn->no_new_privileges ? prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) : 0;
}

/* A variable that names the home names / instead. */
static void move_variable(char **environment, const char *name, const char *home, char *moved)
{
    size_t size = strlen(name);
    for (; *environment; environment++) {
        if (strncmp(*environment, name, size) == 0 && strcmp(*environment + size, home) == 0) {
            *environment = moved;
            return;
        }
    }
}

static int enter_directory(const struct spawn *spawn, struct telling *telling)
{
    static char home[] = "HOME=/", here[] = "PWD=/";
    if (!spawn->directory) {
        return 0;
    }
    /* a relative HOME would lead to wherever the daemon is */
    errno = ENOENT;
    if ((*spawn->directory == '/' || !spawn->is_home) && chdir(spawn->directory) == 0) {
        return 0;
    }
    if (!spawn->is_home) {
        return -1;
    }
    telling->home_error = errno;
    move_variable(spawn->environment, "HOME=", spawn->directory, home);
    move_variable(spawn->environment, "PWD=", spawn->directory, here);
    return chdir("/");
}

/* The one place between fork and exec. Returns the step that failed, with errno. */
static enum spawn_step become_task(const struct spawn *spawn, struct telling *telling)
{
    sigset_t none;
    /* first: from then on it can be killed by those who watch over it */
    if (spawn->slot && !guard_entry_enter(spawn->slot)) {
        errno = ETIME;
        return SPAWN_LATE;
    }
    if (spawn->cgroup > 0 && !telling->inside &&
        control_file_write(spawn->cgroup, "cgroup.procs", "0") < 0) {
        return SPAWN_CGROUP;
    }
    default_signals(spawn->signals);
    if (setsid() < 0) {
        return SPAWN_SESSION;
    }
    if (set_descriptors(spawn, telling) < 0) {
        return SPAWN_DESCRIPTORS;
    }
    if (set_limits(spawn, telling) < 0) {
        return SPAWN_LIMIT;
    }
    umask(spawn->umask);
    if (set_user(spawn) < 0) {
        return SPAWN_USER;
    }

    /* from here on it may hang, or be held by others of its user: what was told last is then why */
    tell(telling, SPAWN_DIRECTORY, 0);
    if (enter_directory(spawn, telling) < 0) {
        return SPAWN_DIRECTORY;
    }
    if (spawn->program && access(spawn->program, X_OK) < 0) {
        return SPAWN_PROGRAM;
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    tell(telling, SPAWN_RUNNING, 0);
    execute(spawn);
    return SPAWN_EXECUTE;
}

static _Noreturn void run_child(const struct spawn *spawn, struct telling *telling)
{
    enum spawn_step step = become_task(spawn, telling);
    tell(telling, step, errno);
    _exit(127);
}

/* ---- in the parent ---- */

/* vfork with the flags of clone3, which has no function in libc, and one in C could not be: child
 * and parent return from it one after the other on the same stack, so the return address must not
 * stay there. The kernel keeps all registers but those that carry the call itself. */
#if defined __x86_64__ || defined __aarch64__
long spawn_vfork(const struct clone_args *args, size_t size)
    __attribute__((returns_twice, visibility("hidden")));
__asm__(".pushsection .text\n"
        ".globl spawn_vfork\n"
        ".hidden spawn_vfork\n"
        ".type spawn_vfork, %function\n"
        "spawn_vfork:\n"
#ifdef __x86_64__
        "    pop %r8\n"
        "    mov $435, %eax\n"
        "    syscall\n"
        "    push %r8\n"
        "    ret\n"
#else
        "    mov x8, #435\n"
        "    svc #0\n"
        "    ret\n"
#endif
        ".size spawn_vfork, . - spawn_vfork\n"
        ".popsection\n");
#else
static long spawn_vfork(const struct clone_args *args, size_t size)
{
    (void)args;
    (void)size;
    return -ENOSYS;
}
#endif

/* A child that shares the memory has left its frames for good, and AddressSanitizer would go on to
 * keep them from whoever has that stack next. It knows of vfork, but not of clone3. */
#ifdef __SANITIZE_ADDRESS__
void __asan_unpoison_memory_region(const volatile void *start, size_t size);
enum { CHILD_FRAMES = 65536 };
static void forget_child(const char *frame)
{
    __asan_unpoison_memory_region(frame - CHILD_FRAMES, CHILD_FRAMES);
}
#else
static void forget_child(const char *frame)
{
    (void)frame;
}
#endif

/* What clone3 answers where it, or its flag, is not known or not allowed; see spawn.h. */
static bool is_without_clone3(long result)
{
    return result == -ENOSYS || result == -EPERM || result == -EINVAL || result == -E2BIG;
}

/* With clone3 where it can be had: into the cgroup, and without a copy of the table of descriptors,
 * of which the most belong to other tasks. */
static pid_t start_sharing(const struct spawn *spawn, struct spawn_failure *failure)
{
    volatile struct spawn_failure shared = {.step = SPAWN_PROCESS};
    struct telling telling = {.shared = &shared, .pipe = -1};
    const __u64 sharing = CLONE_VM | CLONE_VFORK | CLONE_FILES;
    const struct clone_args args = {.flags = sharing | (spawn->cgroup > 0 ? CLONE_INTO_CGROUP : 0),
                                    .exit_signal = SIGCHLD,
                                    .cgroup = (__u64)spawn->cgroup};
    telling.inside = telling.shares = true;
    volatile long pid = spawn_vfork(&args, sizeof args);
    if (pid == 0) {
        run_child(spawn, &telling);
    }
    forget_child(__builtin_frame_address(0));
    if (is_without_clone3(pid)) {
        telling.inside = telling.shares = false;
        pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): see spawn.h */
        if (pid == 0) {
            run_child(spawn, &telling);
        }
        pid = pid < 0 ? -errno : pid;
    }
    if (pid < 0) {
        *failure = (struct spawn_failure){.step = SPAWN_PROCESS, .error = (int)-pid};
        return -1;
    }
    *failure = (struct spawn_failure){.step = shared.step,
                                      .error = shared.error,
                                      .what = shared.what,
                                      .home_error = shared.home_error};
    if (shared.step == SPAWN_RUNNING) {
        return (pid_t)pid;
    }

    /* it has ended without executing: nobody else shall see it */
    while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR) {
    }
    return -1;
}

static pid_t start_apart(const struct spawn *spawn, int *report, struct spawn_failure *failure)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
        *failure = (struct spawn_failure){.step = SPAWN_PROCESS, .error = errno};
        return -1;
    }
    struct telling telling = {.pipe = ends[1]};
    pid_t pid = fork();
    if (pid == 0) {
        run_child(spawn, &telling);
    }
    close(ends[1]);
    if (pid < 0) {
        *failure = (struct spawn_failure){.step = SPAWN_PROCESS, .error = errno};
        close(ends[0]);
        return -1;
    }
    *report = ends[0];
    *failure = (struct spawn_failure){.step = SPAWN_SESSION};
    return pid;
}

uint64_t spawn_signals(void)
{
    uint64_t signals = 0;
    for (int signal = 1; signal <= 64; signal++) {
        struct disposition found;
        if (syscall(SYS_rt_sigaction, signal, NULL, &found, sizeof found.mask) == 0 &&
            found.handler != SIG_DFL) {
            signals |= UINT64_C(1) << (signal - 1);
        }
    }
    return signals;
}

pid_t spawn_start(const struct spawn *spawn, int *report, struct spawn_failure *failure)
{
    sigset_t all, before;
    sigfillset(&all);
    *report = -1;
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid =
        spawn->may_hang ? start_apart(spawn, report, failure) : start_sharing(spawn, failure);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

bool spawn_report(int report, struct spawn_failure *failure)
{
    /* the last word counts; none is a child that was ended at the very beginning */
    struct spawn_failure told;
    *failure = (struct spawn_failure){.step = SPAWN_SESSION};
    while (read(report, &told, sizeof told) == (ssize_t)sizeof told) {
        *failure = told;
    }
    return failure->step == SPAWN_RUNNING;
}

static const char *step_text(enum spawn_step step)
{
    switch (step) {
    case SPAWN_PROCESS:
        return "cannot start a process";
    case SPAWN_CGROUP:
        return "cannot move into the task's cgroup";
    case SPAWN_LATE:
        return "the lease passed before it began";
    case SPAWN_SESSION:
        return "cannot begin a session";
    case SPAWN_DESCRIPTORS:
        return "cannot set up descriptors";
    case SPAWN_LIMIT:
        return "cannot set";
    case SPAWN_USER:
        return "cannot become the user";
    case SPAWN_DIRECTORY:
        return "cannot change to directory";
    case SPAWN_PROGRAM:
    case SPAWN_EXECUTE:
    case SPAWN_RUNNING:
        break;
    }
    return "cannot execute";
}

/* A task's own directory may hold any bytes: they are escaped, and a long path is cut. */
static void describe_directory(const struct spawn *spawn, char *text, size_t size)
{
    const char *path = spawn->directory && !spawn->is_home ? spawn->directory : "/";
    struct buffer shown = BUFFER_INIT;
    if (escape_append(&shown, path, strlen(path)) || shown.size < size) {
        (void)snprintf(text, size, "%.*s", (int)shown.size, shown.data ? shown.data : "");
    } else {
        (void)snprintf(text, size, "%.*s...", (int)(size - sizeof "..."), shown.data);
    }
    buffer_free(&shown);
}

void spawn_describe(const struct spawn *spawn, const struct spawn_failure *failure, char *text,
                    size_t size)
{
    const char *object = "";
    char directory[100];
    if (failure->step == SPAWN_USER) {
        object = spawn->identity && spawn->identity->user ? spawn->identity->user : "";
    } else if (failure->step == SPAWN_DIRECTORY) {
        describe_directory(spawn, directory, sizeof directory);
        object = directory;
    } else if (failure->step == SPAWN_PROGRAM) {
        object = spawn->program;
    } else if (failure->step == SPAWN_EXECUTE) {
        object = spawn->shell ? spawn->shell : spawn->words ? spawn->words[0] : "its program";
    } else if (failure->step == SPAWN_LIMIT && failure->what) {
        object = failure->what;
    }

    /* a text that is cut is still one for people */
    const char *why = failure->error ? strerror(failure->error) : "it does not return";
    (void)snprintf(text, size, "%s%s%s: %s", step_text(failure->step), *object ? " " : "", object,
                   why);
}
