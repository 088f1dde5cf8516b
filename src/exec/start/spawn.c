/*
 * Everything between fork and exec, and the parent's side of it.
 */
#include "exec/start/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
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

/* How the child reports how far it came: in the parent's memory, or through a pipe. */
struct progress {
    volatile struct spawn_failure *shared; /* or NULL */
    int pipe;                              /* or -1 */
    const char *what;                      /* as in struct spawn_failure */
    int home_error;
    bool inside; /* it was started in its cgroup */
    bool shares; /* it still shares the parent's table of descriptors */
};

static void report_step(const struct progress *progress, enum spawn_step step, int error)
{
    if (progress->shared) {
        progress->shared->step = step;
        progress->shared->error = error;
        progress->shared->what = progress->what;
        progress->shared->home_error = progress->home_error;
    } else {
        /* without a report of SPAWN_RUNNING, the parent knows that the child did not execute */
        struct spawn_failure failure = {.step = step,
                                        .error = error,
                                        .what = progress->what,
                                        .home_error = progress->home_error};
        ssize_t written = write(progress->pipe, &failure, sizeof failure);
        (void)written;
    }
}

/* The kernel's form. libc's sigaction() refuses the two signals that libc uses itself, but these
 * may have been inherited as ignored too. */
struct disposition {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    uint32_t mask[2]; /* 64 signals also if a long has 32 bits; the kernel refuses another size */
};

/* Resets ignored and handled signals. Signals are unblocked before exec, and a handler of the
 * parent must not run in the child. */
static void default_signals(uint64_t signals)
{
    struct disposition standard = {.handler = SIG_DFL};
    for (; signals; signals &= signals - 1) {
        syscall(SYS_rt_sigaction, __builtin_ctzll(signals) + 1, &standard, NULL,
                sizeof standard.mask);
    }
}

/* Closes all descriptors from `first` on, for kernels without close_range. */
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

/* Gives the child a table of descriptors of its own, with as few in it as possible. */
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

/* Makes number 3 the descriptor for verdicts, and moves the pipe for reports out of its way. */
static int set_verdicts(const struct spawn *spawn, struct progress *progress)
{
    if (progress->pipe == 3) {
        progress->pipe = fcntl(progress->pipe, F_DUPFD_CLOEXEC, 4);
        if (progress->pipe < 0) {
            return -1;
        }
    }
    return dup2(spawn->verdicts, 3) < 0 ? -1 : 0;
}

/* Leaves the task's descriptors, the pipe for reports as the next number, and no others. */
static int set_descriptors(const struct spawn *spawn, struct progress *progress)
{
    int next = spawn->verdicts > 0 ? 4 : 3;
    if ((progress->shares && unshare_descriptors(spawn) < 0) || dup2(spawn->input, 0) < 0 ||
        dup2(spawn->output, 1) < 0 || dup2(spawn->error, 2) < 0 ||
        (spawn->verdicts > 0 && set_verdicts(spawn, progress) < 0)) {
        return -1;
    }
    if (progress->pipe < 0) {
        return close_from(next);
    }
    if (progress->pipe != next) {
        if (dup3(progress->pipe, next, O_CLOEXEC) < 0) {
            return -1;
        }
        progress->pipe = next;
    }
    return close_from(next + 1);
}

/* Executes DIRECTORY/NAME for each directory of the path until one is found, as shells do. Returns
 * if the shell has to decide what to do. */
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

static int set_limits(const struct spawn *spawn, struct progress *progress)
{
    progress->what = "the limit of open files";
    if (spawn->files && setrlimit(RLIMIT_NOFILE, spawn->files) < 0) {
        return -1;
    }
    progress->what = spawn->allowance ? allowance_apply(spawn->allowance) : NULL;
    return progress->what ? -1 : 0;
}

/* Becomes the task's user, so that directory and program are accessed with the task's rights. */
static int set_user(const struct spawn *spawn)
{
    if (spawn->identity && identity_become(spawn->identity) < 0) {
        return -1;
    }
    return spawn->no_new_privileges ? prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) : 0;
}

/* Replaces the variable if its value is the home. */
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

/* Changes to the directory; to / if it is a home that cannot be entered. */
static int enter_directory(const struct spawn *spawn, struct progress *progress)
{
    static char home[] = "HOME=/", here[] = "PWD=/";
    if (!spawn->directory) {
        return 0;
    }
    /* a relative HOME would depend on the daemon's directory: it counts as missing */
    errno = ENOENT;
    if ((*spawn->directory == '/' || !spawn->is_home) && chdir(spawn->directory) == 0) {
        return 0;
    }
    if (!spawn->is_home) {
        return -1;
    }
    progress->home_error = errno;
    move_variable(spawn->environment, "HOME=", spawn->directory, home);
    move_variable(spawn->environment, "PWD=", spawn->directory, here);
    return chdir("/");
}

/* Turns the child into the task. Returns the step that failed, with errno. */
static enum spawn_step become_task(const struct spawn *spawn, struct progress *progress)
{
    sigset_t none;
    /* this comes first, so that guards can kill the child from then on */
    if (spawn->entry && !guard_entry_enter(spawn->entry)) {
        errno = ETIME;
        return SPAWN_LATE;
    }
    if (spawn->cgroup > 0 && !progress->inside &&
        control_file_write(spawn->cgroup, "cgroup.procs", "0") < 0) {
        return SPAWN_CGROUP;
    }
    default_signals(spawn->signals);
    if (setsid() < 0) {
        return SPAWN_SESSION;
    }
    if (set_descriptors(spawn, progress) < 0) {
        return SPAWN_DESCRIPTORS;
    }
    if (set_limits(spawn, progress) < 0) {
        return SPAWN_LIMIT;
    }
    umask(spawn->umask);
    if (set_user(spawn) < 0) {
        return SPAWN_USER;
    }

    /* from here on it may hang, or others of its user may stop it; the last report then shows where
     */
    report_step(progress, SPAWN_DIRECTORY, 0);
    if (enter_directory(spawn, progress) < 0) {
        return SPAWN_DIRECTORY;
    }
    if (spawn->program && access(spawn->program, X_OK) < 0) {
        return SPAWN_PROGRAM;
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    report_step(progress, SPAWN_RUNNING, 0);
    execute(spawn);
    return SPAWN_EXECUTE;
}

static _Noreturn void run_child(const struct spawn *spawn, struct progress *progress)
{
    enum spawn_step step = become_task(spawn, progress);
    report_step(progress, step, errno);
    _exit(127);
}

/* ---- in the parent ---- */

/* vfork with the flags of clone3. libc has no such function, and it cannot be written in C: child
 * and parent return from it one after the other on the same stack, so the return address must not
 * be kept there. The kernel preserves all registers except those of the call itself.
 *
 * The two share a shadow stack as well, if the processor and the kernel have one. There the return
 * address cannot be kept elsewhere. So the child leaves with a jump, which pops nothing, and its
 * calls do not overwrite the address. rdssp reads 0 without a shadow stack: it then is a no-op. */
#if defined __x86_64__ || defined __aarch64__
long spawn_vfork(const struct clone_args *args, size_t size)
    __attribute__((returns_twice, visibility("hidden")));
__asm__(".pushsection .text\n"
        ".globl spawn_vfork\n"
        ".hidden spawn_vfork\n"
        ".type spawn_vfork, %function\n"
        "spawn_vfork:\n"
#ifdef __x86_64__
        "    endbr64\n"
        "    pop %r8\n"
        "    mov $435, %eax\n"
        "    syscall\n"
        "    test %rax, %rax\n"
        "    jnz 1f\n"
        "    xor %esi, %esi\n"
        "    rdsspq %rsi\n"
        "    test %rsi, %rsi\n"
        "    jz 1f\n"
        "    jmp *%r8\n"
        "1:  push %r8\n"
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

/* AddressSanitizer would keep the stack frames of a child poisoned that shared the memory and is
 * gone. It knows vfork, but not clone3. */
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

/* Returns true if clone3 or one of its flags is unknown or forbidden here. */
static bool is_without_clone3(long result)
{
    return result == -ENOSYS || result == -EPERM || result == -EINVAL || result == -E2BIG;
}

/* Returns true if a signal has ended the child, which has left the parent's memory, and no guard
 * has sent it. A guard kills a child only if its start hangs. */
static bool is_killed_by_others(const struct spawn *spawn, pid_t pid)
{
    siginfo_t exit = {0};
    return waitid(P_PID, (id_t)pid, &exit, WEXITED | WNOWAIT) == 0 &&
           (exit.si_code == CLD_KILLED || exit.si_code == CLD_DUMPED) &&
           !(spawn->entry && guard_entry_is_taken(spawn->entry));
}

/* Starts a child that shares the parent's memory. clone3, if possible, starts it in its cgroup and
 * without a copy of the table of descriptors, most of which belong to other tasks. */
static pid_t start_sharing(const struct spawn *spawn, struct spawn_failure *failure)
{
    volatile struct spawn_failure shared = {.step = SPAWN_PROCESS};
    struct progress progress = {.shared = &shared, .pipe = -1};
    const __u64 sharing = CLONE_VM | CLONE_VFORK | CLONE_FILES;
    const struct clone_args args = {.flags = sharing | (spawn->cgroup > 0 ? CLONE_INTO_CGROUP : 0),
                                    .exit_signal = SIGCHLD,
                                    .cgroup = (__u64)spawn->cgroup};
    progress.inside = progress.shares = true;
    volatile long pid = spawn_vfork(&args, sizeof args);
    if (pid == 0) {
        run_child(spawn, &progress);
    }
    forget_child(__builtin_frame_address(0));
    if (is_without_clone3(pid)) {
        progress.inside = progress.shares = false;
        pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): see spawn.h */
        if (pid == 0) {
            run_child(spawn, &progress);
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
    if (shared.step == SPAWN_RUNNING || is_killed_by_others(spawn, (pid_t)pid)) {
        return (pid_t)pid;
    }

    /* it has ended without executing a program: reap it before anybody notices */
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
    struct progress progress = {.pipe = ends[1]};
    pid_t pid = fork();
    if (pid == 0) {
        run_child(spawn, &progress);
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
    /* the last report counts; without any, the child was killed at its very beginning */
    struct spawn_failure told;
    *failure = (struct spawn_failure){.step = SPAWN_SESSION};
    while (read(report, &told, sizeof told) == (ssize_t)sizeof told) {
        *failure = told;
    }
    return failure->step == SPAWN_RUNNING;
}

static const char *const step_texts[] = {
    [SPAWN_PROCESS] = "cannot start a process",
    [SPAWN_CGROUP] = "cannot move into the task's cgroup",
    [SPAWN_LATE] = "the lease expired before the start",
    [SPAWN_SESSION] = "cannot create a session",
    [SPAWN_DESCRIPTORS] = "cannot set up descriptors",
    [SPAWN_LIMIT] = "cannot set",
    [SPAWN_USER] = "cannot become the user",
    [SPAWN_DIRECTORY] = "cannot change to directory",
    [SPAWN_PROGRAM] = "cannot execute",
    [SPAWN_EXECUTE] = "cannot execute",
    [SPAWN_RUNNING] = "cannot execute",
};

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
    char directory[100] = "";
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

    const char *why = failure->error ? strerror(failure->error) : "the call does not return";
    (void)snprintf(text, size, "%s%s%s: %s", step_texts[failure->step], *object ? " " : "", object,
                   why);
}
