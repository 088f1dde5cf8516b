/*
 * Starts one process: everything between fork and exec is here. The child gets a session of its
 * own, default signal dispositions, an empty signal mask, its three or four descriptors and no
 * others, the umask, the limits, the user and the directory, and then executes its program.
 *
 * A child with a cgroup is started in it by clone3. It moves there by itself if clone3 is not
 * possible: on older kernels, if namespaces are restricted, or if the child is forked.
 *
 * Normally the child uses the parent's memory until it executes its program (vfork), which costs
 * the same for a parent of any size. The parent waits for that with all signals blocked. With
 * clone3 the child also shares the table of descriptors and copies only the part up to its own
 * greatest descriptor, so a start costs the same for any number of running tasks. If the child may
 * hang before it executes (its directory is on a network file system), it is forked instead, and
 * the parent does not wait.
 */
#ifndef LEAT_EXEC_START_SPAWN_H
#define LEAT_EXEC_START_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "exec/start/allowance.h"
#include "exec/start/identity.h"

/* The steps at which a start can fail. */
enum spawn_step {
    SPAWN_PROCESS,     /* creating the process */
    SPAWN_CGROUP,      /* moving into the cgroup, if it was not started in it */
    SPAWN_LATE,        /* a guard has taken its entry before the child entered it */
    SPAWN_SESSION,     /* creating a session */
    SPAWN_DESCRIPTORS, /* setting up its descriptors and closing all others */
    SPAWN_LIMIT,       /* setting limits and priorities */
    SPAWN_USER,        /* becoming the task's user */
    SPAWN_DIRECTORY,   /* changing to the directory */
    SPAWN_PROGRAM,     /* finding the configured program */
    SPAWN_EXECUTE,     /* executing the program or shell */
    SPAWN_RUNNING,     /* not a failure: it executes its program */
};

struct guard_entry;

/* How far a child came. For SPAWN_RUNNING only home_error has a meaning. */
struct spawn_failure {
    enum spawn_step step;
    int error;        /* errno; 0: the child was killed during that step, which hung */
    const char *what; /* SPAWN_LIMIT: the limit; not owned */
    int home_error;   /* errno: why it starts in / instead of its home; 0: it does not */
};

struct spawn {
    const char *shell;        /* absolute path; NULL: execute `words` or fail */
    char *const *shell_words; /* the shell's argv */
    char *const *words;       /* executed first, without the shell; see words.h; or NULL */
    const char *path;         /* PATH for words[0] without a slash */
    const char *program;      /* if it is not executable, the start fails; or NULL */
    char **environment;       /* HOME and PWD may be changed, see is_home */
    const char *directory;    /* NULL: stay */
    bool is_home;             /* use / for directory, HOME and PWD if it cannot be entered */
    mode_t umask;
    const struct rlimit *files;        /* the limit of open files; NULL: inherit */
    const struct allowance *allowance; /* further limits and priorities; NULL: inherit */
    const struct identity *identity;   /* the user to become; NULL: the daemon's */
    bool no_new_privileges;
    int input, output, error;  /* become 0, 1 and 2; ≥ 3, or already that number */
    int verdicts;              /* ≥ 4, becomes 3; 0: none */
    int cgroup;                /* directory of the cgroup to start in, ≥ 1; 0: none */
    struct guard_entry *entry; /* armed, see guard_entry.h; NULL: no guard */
    uint64_t signals;          /* from spawn_signals; all others are default already */
    bool may_hang;             /* fork, and do not wait */
};

/* Returns the signals that this process ignores or handles, signal N as bit N - 1. It makes sixty
 * system calls, so it is called once, after the process has set its handlers. */
uint64_t spawn_signals(void);

/* Starts the process. Returns its pid, or -1; *failure says how far it came. If spawn->may_hang is
 * set, *report is a descriptor for spawn_report, which the caller closes; otherwise -1. A child
 * that somebody killed before it executed its program counts as started, and has ended. */
pid_t spawn_start(const struct spawn *spawn, int *report, struct spawn_failure *failure);

/* Sets *failure to how far a forked child came. To be called after it has exited. Returns true if
 * it executed its program. */
bool spawn_report(int report, struct spawn_failure *failure);

/* Describes a failure: "cannot change to directory /x: No such file or directory"; cut to size. */
void spawn_describe(const struct spawn *spawn, const struct spawn_failure *failure, char *text,
                    size_t size);

#endif
