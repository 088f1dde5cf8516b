#pragma once

#include <sys/types.h>

/*
 * The records of a run of a chaos task, written by its own processes, and the descendant that
 * witnesses how long they live.
 */

struct run {
    int trace; /* the file, open for appending */
    pid_t pid;
    int n;
    char task[64];
    long long attempt, fence;
};

/* Opens the file for the calling process. Returns -1 on errors. */
int trace_open(const char *path);

/* Appends an event, as a JSON line with its time in ns of CLOCK_BOOTTIME. Exits with 99 if that
 * fails. */
void trace_say(const struct run *run, const char *event, int code);

/* Starts a descendant that writes a beat every 50 ms until trace_end, and for left_ms more; also if
 * its parent dies. It closes the descriptors of the parent's protocol if `closes`. Sets *end, by
 * which it is ended. Returns its pid, or -1 if no process could be started. */
pid_t trace_witness(const struct run *run, int left_ms, int closes, int *end);

/* Ends the descendant, and waits for it if `waits`. */
void trace_end(pid_t witness, int *end, int waits);

/* Kills the worker that LEAT_WORKER names. */
void trace_kill_worker(const struct run *run);
