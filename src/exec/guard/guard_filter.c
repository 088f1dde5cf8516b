/* Makes the guards' filter of system calls with libseccomp. */
#include "exec/guard/guard_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>

/* Each function returns 0 or a negative errno. libseccomp passes over calls that an architecture
 * does not have, so several names of one call can stand side by side. */

static int allow_calls(scmp_filter_ctx filter, const int calls[], size_t count)
{
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        result = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
    }
    return result;
}

static int allow_work(scmp_filter_ctx filter)
{
    static const int calls[] = {
        /* waits, and hears the daemon */
        SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(ppoll_time64), SCMP_SYS(recvmsg),
        SCMP_SYS(timerfd_settime), SCMP_SYS(timerfd_settime64), SCMP_SYS(restart_syscall),
        /* looks at processes and cgroups */
        SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(getdents64), SCMP_SYS(close),
        SCMP_SYS(pidfd_open), SCMP_SYS(getppid),
        /* kills: pwrite64 writes to cgroup.kill */
        SCMP_SYS(kill), SCMP_SYS(pidfd_send_signal), SCMP_SYS(pwrite64), SCMP_SYS(fsync),
        /* ends */
        SCMP_SYS(exit), SCMP_SYS(exit_group)};
    return allow_calls(filter, calls, sizeof calls / sizeof *calls);
}

/* Calls that a guard does not make itself, but a libc may, now or in a later version, and
 * sanitizers do. They reach nothing outside of the process. */
static int allow_libc(scmp_filter_ctx filter)
{
    static const int calls[] = {SCMP_SYS(clock_gettime), SCMP_SYS(clock_gettime64),
                                SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(getpid),
                                SCMP_SYS(gettid), SCMP_SYS(getrandom),
                                /* memory */
                                SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap),
                                SCMP_SYS(madvise), SCMP_SYS(futex), SCMP_SYS(futex_time64),
                                /* abort */
                                SCMP_SYS(tgkill), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
                                SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack)};
    return allow_calls(filter, calls, sizeof calls / sizeof *calls);
}

/* Allows the call if the argument, masked, has this value. */
static int allow_if(scmp_filter_ctx filter, int call, unsigned argument, scmp_datum_t mask,
                    scmp_datum_t value)
{
    const struct scmp_arg_cmp condition = {argument, SCMP_CMP_MASKED_EQ, mask, value};
    return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &condition);
}

/* Nothing new becomes executable. */
static int allow_memory(scmp_filter_ctx filter)
{
    int result = allow_if(filter, SCMP_SYS(mmap), 2, PROT_EXEC, 0);
    result = result ? result : allow_if(filter, SCMP_SYS(mmap2), 2, PROT_EXEC, 0);
    return result ? result : allow_if(filter, SCMP_SYS(mprotect), 2, PROT_EXEC, 0);
}

/* Files can be opened for reading only. The lock file is the only one that write(2) can change, and
 * send(2) reaches only the other end of a socket. */
static int allow_files(scmp_filter_ctx filter, int log_fd)
{
    const scmp_datum_t changes = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND;
    const scmp_datum_t all = (scmp_datum_t)-1, fd = UINT32_MAX;
    int result = allow_if(filter, SCMP_SYS(openat), 2, changes, O_RDONLY);
    result = result ? result : allow_if(filter, SCMP_SYS(open), 1, changes, O_RDONLY);
    result = result ? result : allow_if(filter, SCMP_SYS(write), 0, fd, (scmp_datum_t)log_fd);
    return result ? result : allow_if(filter, SCMP_SYS(sendto), 4, all, 0);
}

int guard_filter(int log_fd)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!filter) {
        return ENOMEM;
    }
    int result = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
    /* otherwise every failure to load is ECANCELED */
    result = result ? result : seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
    result = result ? result : allow_work(filter);
    result = result ? result : allow_libc(filter);
    result = result ? result : allow_memory(filter);
    result = result ? result : allow_files(filter, log_fd);
    result = result ? result : prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
    result = result ? result : seccomp_load(filter);
    seccomp_release(filter);
    return -result;
}
