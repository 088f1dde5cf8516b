/* Reads children and descendants of a process from /proc. */
#include "base/process/proc_tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int proc_children_open(struct proc_children *children, pid_t pid, pid_t thread)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)thread);
    children->fd = open(path, O_RDONLY | O_CLOEXEC);
    children->size = children->at = 0;
    return children->fd < 0 ? -1 : 0;
}

pid_t proc_children_next(struct proc_children *children)
{
    for (pid_t child = 0;;) {
        if (children->at == children->size) {
            children->at = 0;
            children->size = read(children->fd, children->bytes, sizeof children->bytes);
            if (children->size <= 0) {
                children->size = children->size < 0 ? -1 : 0;
                return (pid_t)children->size;
            }
        }
        /* each number is followed by a blank */
        char byte = children->bytes[children->at++];
        if (byte < '0' || byte > '9') {
            return child;
        }
        child = child * 10 + (byte - '0');
    }
}

void proc_children_close(struct proc_children *children)
{
    close(children->fd);
}

static void add_children(struct proc_tree *tree, pid_t pid, pid_t thread)
{
    struct proc_children children;
    pid_t child;
    if (proc_children_open(&children, pid, thread)) {
        return;
    }
    while (tree->count < sizeof tree->pids / sizeof *tree->pids &&
           (child = proc_children_next(&children)) > 0) {
        tree->pids[tree->count++] = child;
    }
    proc_children_close(&children);
}

static void add_children_of_all(struct proc_tree *tree, pid_t pid)
{
    struct proc_numbers threads;
    char folder[32];
    int thread;
    (void)snprintf(folder, sizeof folder, "/proc/%d/task", (int)pid);
    if (proc_numbers_open(&threads, folder)) {
        return;
    }
    while ((thread = proc_numbers_next(&threads)) >= 0) {
        add_children(tree, pid, thread);
    }
    proc_numbers_close(&threads);
}

void proc_tree_begin(struct proc_tree *tree, pid_t root)
{
    tree->pids[0] = root;
    tree->count = 1;
    tree->at = 0;
}

bool proc_tree_next(struct proc_tree *tree, struct proc *proc)
{
    while (tree->at < tree->count) {
        pid_t pid = tree->pids[tree->at++];
        if (!proc_read(pid, proc)) {
            continue;
        }
        if (proc->threads > 1) {
            add_children_of_all(tree, pid);
        } else {
            add_children(tree, pid, pid);
        }
        if (tree->at > 1) {
            return true;
        }
    }
    return false;
}
