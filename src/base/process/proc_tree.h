/*
 * Reads children and descendants of a process from /proc, without allocating memory. This takes as
 * long as there are descendants, while a walk (proc.h) takes as long as there are processes. The
 * kernel may skip processes that come, end or get another parent meanwhile. It skips none of the
 * children of the calling process, if that starts and reaps none meanwhile.
 */
#ifndef LEAT_BASE_PROCESS_PROC_TREE_H
#define LEAT_BASE_PROCESS_PROC_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/process/proc.h"

/* Iterates over the children that one thread has started or inherited: open, call next until it is
 * not positive, close. */
struct proc_children {
    int fd;
    ssize_t size, at;
    char bytes[4096];
};
int proc_children_open(struct proc_children *children, pid_t pid, pid_t thread); /* 0 or -1 */
pid_t proc_children_next(struct proc_children *children); /* 0: no more; -1: not readable */
void proc_children_close(struct proc_children *children);

#define PROC_TREE_MOST 2048 /* descendants; further ones are skipped */

/* Iterates over the descendants of a process, parents before their children: begin, then call next
 * until it is false. The children of a process are read before it is returned, so the caller may
 * kill it. */
struct proc_tree {
    pid_t pids[1 + PROC_TREE_MOST]; /* the first one is the root */
    size_t count, at;
};
void proc_tree_begin(struct proc_tree *tree, pid_t root);
bool proc_tree_next(struct proc_tree *tree, struct proc *proc);

#endif
