/*
 * One cgroup that is kept for the tasks of one place, which run in it one after the other.
 */
#ifndef LEAT_EXEC_CELL_H
#define LEAT_EXEC_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "exec/bounds.h"
#include "exec/usage.h"

struct cell;

/* Below the directory, named by the number; with these controllers (enum bounds_controller).
 * Returns NULL with errno. */
struct cell *cell_new(int directory, size_t number, unsigned controllers);

/* Makes it ready for the next task: clean, and with these bounds. Returns 0; or -1 with errno, and
 * the name of the file that was refused in *what. */
int cell_prepare(struct cell *cell, const struct bounds *bounds, const char **what);

/* Its directory, for starting processes in it, and cgroup.kill; both are the cell's and stay while
 * nothing but cell_prepare is called. */
int cell_directory(const struct cell *cell);
int cell_kill_fd(const struct cell *cell);

/* Likewise cgroup.events, and a number that another group of this cell does not have. */
int cell_events_fd(const struct cell *cell);
int64_t cell_mark(const struct cell *cell);

/* Something was wrong with it, or somebody else may have killed it: the next task gets another. */
void cell_doubt(struct cell *cell);

/* KILL to every process in it, whatever it has become. */
void cell_kill(struct cell *cell);

/* No process is left in it; zombies do not count. One system call. */
bool cell_is_empty(struct cell *cell);

/* A process that is in it; 0: none, or only in a group below. */
pid_t cell_member(const struct cell *cell);

/* What the last task has used, once it is empty: sets what the kernel tells here. */
void cell_usage(struct cell *cell, struct usage *usage);

/* Removes the group, as far as it is empty. NULL does nothing. */
void cell_free(struct cell *cell);

#endif
