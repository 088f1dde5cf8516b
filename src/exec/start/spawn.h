/*
 * Starts one process: everything between fork and exec is here. The child gets a session of its
 * own, default signals and an empty mask, the three descriptors (or four) and no other, umask,
 * limit of open files, user and directory, and then executes.
 *
 * With a cgroup it is started in it (clone3), or moves there by itself first where that cannot be
 * done: with an older kernel, where namespaces are restricted, or when forked.
 *
 * The child normally borrows the parent's memory until it executes (vfork), which costs the same
 * however large the parent is; the parent waits for it, all signals blocked. With clone3 it borrows
 * the table of descriptors, too, and takes from it only what lies below the greatest of its own: a
 * start costs the same however many tasks run. Where the child may hang on the way (a directory on
 * a network file system) it is forked instead, and nobody waits.
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

/* Where a start can fail. */
enum spawn_step {
    SPAWN_PROCESS,     /* no process to be had */
    SPAWN_CGROUP,      /* moving into the cgroup, where it could not be started in it */
    SPAWN_LATE,        /* a guard ended it before it began */
    SPAWN_SESSION,     /* own session, descriptors: not seen in practice */
    SPAWN_DESCRIPTORS, /* closing what the task must not have */
    SPAWN_LIMIT,       /* limits and priorities */
    SPAWN_USER,        /* becoming the task's user */
    SPAWN_DIRECTORY,   /* changing to the directory */
    SPAWN_PROGRAM,     /* the configured program is not there */
    SPAWN_EXECUTE,     /* executing the shell */
    SPAWN_RUNNING,     /* none: it executes */
};

struct guard_entry;

/* How far a child came. Of one that executes, only home_error has a meaning. */
struct spawn_failure {
    enum spawn_step step;
    int error;        /* errno; 0 where the child was ended during that step */
    const char *what; /* SPAWN_LIMIT: which of them; not owned */
    int home_error;   /* errno: why it is in / instead of its home; 0: it is not */
};

struct spawn {
    const char *shell;        /* absolute path; NULL: what words says is executed, or nothing */
    char *const *shell_words; /* its argv */
    char *const *words;       /* tried first, without the shell, if not NULL; see words.h */
    const char *path;         /* where words[0] is looked up if it has no slash */
    const char *program;      /* must be executable, else the start fails; or NULL */
    char **environment;       /* HOME and PWD may be changed, see is_home */
    const char *directory;    /* NULL leaves it */
    bool is_home;             /* if the directory cannot be entered, it is /, as are HOME and PWD */
    mode_t umask;
    const struct rlimit *files;        /* the limit of open files; NULL leaves it */
    const struct allowance *allowance; /* further limits, and priorities; NULL leaves them */
    const struct identity *identity;   /* to become; NULL: as the daemon is */
    bool no_new_privileges;
    int input, output, error; /* become 0, 1 and 2; ≥ 3, or that very number already */
    int verdicts;             /* ≥ 4, becomes 3; or 0 for none */
    int cgroup;               /* directory of the one that it starts in, ≥ 1; or 0 */
    struct guard_entry *slot; /* armed; NULL: no guard. See guard_slot.h */
    uint64_t signals;         /* as spawn_signals found them; all others are default already */
    bool may_hang;            /* fork, and do not wait */
};

/* The signals that this process ignores or handles, signal N as bit N - 1. To be asked once, when
 * the process has made its arrangements: sixty system calls at each start would be felt. */
uint64_t spawn_signals(void);

/* Returns the process's id, or -1; *failure says how far it came. If spawn->may_hang, *report is a
 * descriptor for spawn_report, which the caller closes; else -1. */
pid_t spawn_start(const struct spawn *spawn, int *report, struct spawn_failure *failure);

/* Sets *failure to how far a forked child came, when it has exited. Returns true if it executed. */
bool spawn_report(int report, struct spawn_failure *failure);

/* "cannot change to directory /x: No such file or directory"; cut to size. */
void spawn_describe(const struct spawn *spawn, const struct spawn_failure *failure, char *text,
                    size_t size);

#endif
