/*
 * Bounds a guard by a filter of system calls: it can read files and processes, signal processes,
 * write to descriptors that it has, and wait. All other calls fail with EPERM, and nothing kills
 * the guard: a guard that its own filter killed would leave tasks without a guard.
 *
 * Landlock is not used. It would forbid what a guard needs most: a process that Landlock bounds may
 * not read the environment of processes that it does not bound, nor see them at all under
 * ProtectProc=invisible.
 */
#ifndef LEAT_EXEC_GUARD_GUARD_FILTER_H
#define LEAT_EXEC_GUARD_GUARD_FILTER_H

/* Installs the filter for this process, which must have one thread, until it ends. log_fd is the
 * only descriptor that write(2) may name. Also sets no_new_privs, which filters need. Returns 0; or
 * an errno, and nothing is bounded then. */
int guard_filter(int log_fd);

#endif
