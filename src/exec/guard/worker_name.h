/*
 * Names of workers: HOST:PID:NONCE, new at each start of a worker.
 */
#ifndef LEAT_EXEC_GUARD_WORKER_NAME_H
#define LEAT_EXEC_GUARD_WORKER_NAME_H

#include <stddef.h>
#include <sys/types.h>

#define WORKER_NAME_HOST_SIZE 64

/* Writes the name of this host as workers have it: only characters that need no escaping. Returns
 * 0, or -1 with errno. */
int worker_name_host(char host[WORKER_NAME_HOST_SIZE]);

/* Returns the process id in the name of a worker of this host; 0 if the name has another host, or
 * another form. */
pid_t worker_name_pid(const char *name);

#endif
