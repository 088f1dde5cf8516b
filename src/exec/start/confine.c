/* Makes the filter of system calls with libseccomp. */
#include "exec/start/confine.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>

#ifdef __s390__
#define CLONE_FLAGS 1 /* which argument of clone has the flags */
#else
#define CLONE_FLAGS 0
#endif

/* Each function returns 0 or a negative errno. Calls that an architecture does not have are passed
 * over by libseccomp. */

static int refuse_if(scmp_filter_ctx filter, int call, struct scmp_arg_cmp condition)
{
    return seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), call, 1, &condition);
}

/* Allows the call only if all three arguments are this id. */
static int allow_id(scmp_filter_ctx filter, int call, uint32_t id)
{
    int result = 0;
    for (unsigned i = 0; i < 3 && result == 0; i++) {
        result = refuse_if(filter, call, (struct scmp_arg_cmp){i, SCMP_CMP_NE, id, 0});
    }
    return result;
}

static int allow_count(scmp_filter_ctx filter, int call, size_t count)
{
    return refuse_if(filter, call, (struct scmp_arg_cmp){0, SCMP_CMP_NE, count, 0});
}

/* Refuses the call if that argument has the flag. */
static int refuse_flag(scmp_filter_ctx filter, int call, unsigned argument, uint64_t flag)
{
    return refuse_if(filter, call, (struct scmp_arg_cmp){argument, SCMP_CMP_MASKED_EQ, flag, flag});
}

static int allow_identity(scmp_filter_ctx filter, const struct identity *identity)
{
    int result = allow_id(filter, SCMP_SYS(setresuid), identity->uid);
    result = result ? result : allow_id(filter, SCMP_SYS(setresuid32), identity->uid);
    result = result ? result : allow_id(filter, SCMP_SYS(setresgid), identity->gid);
    result = result ? result : allow_id(filter, SCMP_SYS(setresgid32), identity->gid);
    result = result ? result : allow_count(filter, SCMP_SYS(setgroups), identity->group_count);
    return result ? result : allow_count(filter, SCMP_SYS(setgroups32), identity->group_count);
}

static int forbid_calls(scmp_filter_ctx filter)
{
    const int calls[] = {SCMP_SYS(setuid),     SCMP_SYS(setuid32),   SCMP_SYS(setgid),
                         SCMP_SYS(setgid32),   SCMP_SYS(setreuid),   SCMP_SYS(setreuid32),
                         SCMP_SYS(setregid),   SCMP_SYS(setregid32), SCMP_SYS(setfsuid),
                         SCMP_SYS(setfsuid32), SCMP_SYS(setfsgid),   SCMP_SYS(setfsgid32),
                         SCMP_SYS(setns)};
    int result = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls && result == 0; i++) {
        result = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), calls[i], 0);
    }
    return result;
}

/* The flags of clone3 are in memory, where a filter cannot look. Callers use clone if clone3 is
 * unknown, as on older kernels. */
static int forbid_user_namespaces(scmp_filter_ctx filter)
{
    int result = refuse_flag(filter, SCMP_SYS(clone), CLONE_FLAGS, CLONE_NEWUSER);
    result = result ? result : refuse_flag(filter, SCMP_SYS(unshare), 0, CLONE_NEWUSER);
    return result ? result : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

/* A reload may come while a thread looks up a name, so the filter is for all threads. Where a unit
 * does not allow seccomp(), it is for this one and those that it starts. */
static int bound_all_threads(scmp_filter_ctx filter)
{
    int result = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    return result == -EOPNOTSUPP ? 0 : result;
}

int confine(struct confinement *confinement, const struct identity *identity)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (!filter) {
        errno = ENOMEM;
        return -1;
    }
    /* programs for another architecture fail, but are not killed */
    int result = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
    result = result ? result : bound_all_threads(filter);
    result = result ? result : allow_identity(filter, identity);
    result = result ? result : forbid_calls(filter);
    result = result ? result : forbid_user_namespaces(filter);
    result = result ? result : prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
    result = result ? result : seccomp_load(filter);
    seccomp_release(filter);
    if (result) {
        errno = -result;
        return -1;
    }
    *confinement = (struct confinement){true, identity->uid, identity->gid, identity->group_count};
    return 0;
}

bool confinement_allows(const struct confinement *confinement, const struct identity *identity)
{
    return !confinement->active || *identity->missing || !identity->other ||
           (confinement->uid == identity->uid && confinement->gid == identity->gid &&
            confinement->group_count == identity->group_count);
}
