/*
 * Looks up the user and groups of tasks, and changes to them.
 */
#include "exec/start/identity.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/join.h"

/* ---- look up ---- */

/* Reads a user or group as a number. The greatest number is refused: to the kernel it means
 * "unchanged". */
static bool read_number(const char *text, uint32_t *number)
{
    char *rest;
    if (*text == '\0' || strspn(text, "0123456789") != strlen(text)) {
        return false;
    }
    errno = 0;
    unsigned long long value = strtoull(text, &rest, 10);
    *number = (uint32_t)value;
    return errno == 0 && value < UINT32_MAX;
}

/* Looks up a user by name, or by uid if name is NULL, with a buffer that grows as needed. Returns 0
 * with *found, *entry and *text, which the caller frees; or an errno. */
static int look_up_user(const char *name, uid_t uid, struct passwd *entry, char **text, bool *found)
{
    enum { FIRST = 1024, MOST = 1 << 20 };
    struct passwd *result = NULL;
    int error = ERANGE;
    *text = NULL;
    for (size_t size = FIRST; error == ERANGE && size <= MOST; size *= 4) {
        char *grown = realloc(*text, size);
        if (!grown) {
            error = ENOMEM;
            break;
        }
        *text = grown;
        error = name ? getpwnam_r(name, entry, *text, size, &result)
                     : getpwuid_r(uid, entry, *text, size, &result);
    }
    *found = error == 0 && result;
    /* some sources return these for an unknown user */
    return error == ENOENT || error == ESRCH ? 0 : error;
}

static int look_up_group(const char *name, gid_t *gid, bool *found)
{
    enum { FIRST = 1024, MOST = 1 << 20 };
    struct group entry, *result = NULL;
    char *text = NULL;
    int error = ERANGE;
    for (size_t size = FIRST; error == ERANGE && size <= MOST; size *= 4) {
        char *grown = realloc(text, size);
        if (!grown) {
            error = ENOMEM;
            break;
        }
        text = grown;
        error = getgrnam_r(name, &entry, text, size, &result);
    }
    *found = error == 0 && result;
    if (*found) {
        *gid = entry.gr_gid;
    }
    free(text);
    return error == ENOENT || error == ESRCH ? 0 : error;
}

static void tell_missing(struct identity *identity, const char *kind, const char *name, int error)
{
    if (error) {
        (void)snprintf(identity->missing, sizeof identity->missing, "cannot look up %s %s: %s",
                       kind, name, strerror(error));
    } else {
        (void)snprintf(identity->missing, sizeof identity->missing,
                       "there is no %s %s on this host", kind, name);
    }
}

/* Finds the user's uid, primary group, name and home. A number without a name on this host needs a
 * configured group. Returns 0, even if the user is missing; or -1 without memory. */
static int find_user(struct identity *identity, const struct config_task *task)
{
    struct passwd entry;
    char *text = NULL;
    bool found = false, numeric = false;
    int error;
    identity->uid = geteuid();
    identity->gid = getegid();
    if (!task->user) {
        return 0;
    }

    error = look_up_user(task->user, 0, &entry, &text, &found);
    if (!error && !found && read_number(task->user, &identity->uid)) {
        numeric = true;
        free(text);
        error = look_up_user(NULL, identity->uid, &entry, &text, &found);
    }
    if (found) {
        identity->uid = entry.pw_uid;
        identity->gid = entry.pw_gid;
        identity->user = strdup(entry.pw_name);
        identity->home = strdup(entry.pw_dir);
    } else if (!error && numeric && task->group) {
        identity->user = strdup(task->user);
        identity->home = strdup("/");
    } else if (!error && numeric) {
        (void)snprintf(identity->missing, sizeof identity->missing,
                       "there is no user %s on this host; a number without a name requires a group",
                       task->user);
    } else {
        tell_missing(identity, "user", task->user, error);
    }
    free(text);
    return error == ENOMEM || (!*identity->missing && (!identity->user || !identity->home)) ? -1
                                                                                            : 0;
}

static void find_group(struct identity *identity, const struct config_task *task)
{
    bool found = false;
    if (!task->group || *identity->missing) {
        return;
    }
    int error = look_up_group(task->group, &identity->gid, &found);
    if (error || (!found && !read_number(task->group, &identity->gid))) {
        tell_missing(identity, "group", task->group, error);
    }
}

static int compare_groups(const void *left, const void *right)
{
    gid_t a = *(const gid_t *)left, b = *(const gid_t *)right;
    return (a > b) - (a < b);
}

/* Makes room for `count` groups. Returns 0, or -1 without memory. */
static int grow_groups(struct identity *identity, int count)
{
    gid_t *groups = reallocarray(identity->groups, (size_t)count + 1, sizeof *groups);
    if (!groups) {
        return -1;
    }
    identity->groups = groups;
    return 0;
}

/* Lists the user's groups as initgroups() does; a number without a name has only its primary group.
 * Returns 0, or -1 without memory. */
static int list_groups(struct identity *identity)
{
    int count = 16, room;
    do {
        room = count;
        if (grow_groups(identity, room)) {
            return -1;
        }
    } while (getgrouplist(identity->user, identity->gid, identity->groups, &count) < 0 &&
             (count = count > room ? count : room * 2) > 0);
    identity->group_count = (size_t)count;
    return 0;
}

/* Keeps the groups of this process, if only a group is configured. Returns 0, or -1 without memory.
 */
static int keep_groups(struct identity *identity)
{
    int count = getgroups(0, NULL);
    if (count < 0 || grow_groups(identity, count)) {
        return -1;
    }
    count = getgroups(count, identity->groups);
    identity->group_count = count > 0 ? (size_t)count : 0;
    return count < 0 ? -1 : 0;
}

static int find_groups(struct identity *identity, const struct config_task *task)
{
    if (*identity->missing || (!task->user && !task->group)) {
        return 0;
    }
    if (task->user ? list_groups(identity) : keep_groups(identity)) {
        return -1;
    }
    qsort(identity->groups, identity->group_count, sizeof(gid_t), compare_groups);
    return 0;
}

/* ---- compare with this process ---- */

/* Returns true if this process has the same groups, primary and supplementary ones taken together.
 */
static bool has_groups(const struct identity *identity)
{
    int count = getgroups(0, NULL);
    gid_t *own = count < 0 ? NULL : calloc((size_t)count + 1, sizeof *own);
    bool same = own && getgroups(count, own) == count;
    if (same) {
        qsort(own, (size_t)count, sizeof *own, compare_groups);
    }
    for (int i = 0; same && i < count; i++) {
        same = own[i] == identity->gid || bsearch(&own[i], identity->groups, identity->group_count,
                                                  sizeof *own, compare_groups);
    }
    for (size_t i = 0; same && i < identity->group_count; i++) {
        same = identity->groups[i] == identity->gid ||
               bsearch(&identity->groups[i], own, (size_t)count, sizeof *own, compare_groups);
    }
    free(own);
    return same;
}

static bool is_other(const struct identity *identity)
{
    return *identity->missing || identity->uid != geteuid() || identity->gid != getegid() ||
           !has_groups(identity);
}

/* The capabilities of this process. */
struct powers {
    uint32_t effective; /* a bit for each of the first 32 */
    bool any;           /* there is one that a program could inherit */
};

static struct powers find_powers(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    struct powers powers = {0};
    if (syscall(SYS_capget, &head, data) == 0) {
        powers.effective = data[0].effective;
        for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
            powers.any = powers.any || data[i].permitted || data[i].inheritable;
        }
    }
    return powers;
}

/* Returns true if /proc shows only own processes, so that those of tasks cannot be found. */
static bool is_proc_hidden(void)
{
    FILE *file = fopen("/proc/self/mounts", "re");
    char *line = NULL;
    size_t size = 0;
    bool hidden = false;
    while (file && getline(&line, &size, file) > 0) {
        const char *option = strstr(line, "hidepid=");
        if (strstr(line, " /proc proc ")) {
            hidden = option && option[8] != '0' && strncmp(option + 8, "off", 3) != 0;
        }
    }
    free(line);
    if (file) {
        (void)fclose(file); /* it was only read */
    }
    return hidden;
}

void identity_lacks(const struct identity *identity, char *text, size_t size)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } needed[] = {{1U << CAP_SETUID, "CAP_SETUID"},
                  {1U << CAP_SETGID, "CAP_SETGID"},
                  {1U << CAP_KILL, "CAP_KILL"}};
    struct powers powers = find_powers();
    bool same_user = !*identity->missing && identity->uid == geteuid();
    *text = '\0';
    if (!identity->other) {
        return;
    }
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        bool wanted = !same_user || needed[i].bit == 1U << CAP_SETGID;
        if (wanted && !(powers.effective & needed[i].bit)) {
            join_word(text, size, ", ", needed[i].name);
        }
    }
    if (!same_user && !(powers.effective & 1U << CAP_SYS_PTRACE) && is_proc_hidden()) {
        join_word(text, size, ", ", "a /proc that shows others' processes (ProtectProc=default)");
    }
}

/* ---- life ---- */

struct identity *identity_new(const struct config_task *task)
{
    struct identity *identity = calloc(1, sizeof *identity);
    if (!identity || find_user(identity, task)) {
        identity_free(identity);
        return NULL;
    }
    find_group(identity, task);
    if (find_groups(identity, task)) {
        identity_free(identity);
        return NULL;
    }
    identity->other = (task->user || task->group) && is_other(identity);
    if (identity->group_count == 1 && identity->groups[0] == identity->gid) {
        identity->group_count = 0; /* it adds nothing to the primary group */
    }
    identity->disarm = identity->uid != 0 && find_powers().any;
    return identity;
}

void identity_free(struct identity *identity)
{
    if (identity) {
        free(identity->user);
        free(identity->home);
        free(identity->groups);
        free(identity);
    }
}

/* ---- between vfork and exec ---- */

#ifdef SYS_setresuid32
#define SETRESUID SYS_setresuid32
#define SETRESGID SYS_setresgid32
#define SETGROUPS SYS_setgroups32
#else
#define SETRESUID SYS_setresuid
#define SETRESGID SYS_setresgid
#define SETGROUPS SYS_setgroups
#endif

/* Uses the kernel's calls, since those of libc would change the daemon's own threads, whose memory
 * the child shares. This memory must stay inaccessible to other processes of the new user; so
 * dumpable is cleared again, which a change of user sets to fs.suid_dumpable. */
int identity_become(const struct identity *identity)
{
    /* as wide as a register, all of which a filter compares */
    unsigned long gid = identity->gid, uid = identity->uid;
    if (identity->other &&
        (syscall(SETGROUPS, identity->group_count, identity->groups) < 0 ||
         syscall(SETRESGID, gid, gid, gid) < 0 || syscall(SETRESUID, uid, uid, uid) < 0 ||
         prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)) {
        return -1;
    }
    if (identity->disarm) {
        /* ambient capabilities vanish with the others */
        struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
        return syscall(SYS_capset, &head, none) < 0 ? -1 : 0;
    }
    return 0;
}
