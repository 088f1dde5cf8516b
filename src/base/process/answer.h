/*
 * A signal that is answered. The asker sends it with a number of its choice, and waits at an
 * abstract socket whose name has its process id and the number. Nobody answers a signal without a
 * number, such as that of kill(1).
 */
#ifndef LEAT_BASE_PROCESS_ANSWER_H
#define LEAT_BASE_PROCESS_ANSWER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct signalfd_siginfo;

/* ---- of the process that is asked */

struct answer {
    pid_t pid; /* 0: nobody waits */
    int number;
};

/* Returns whom the signal's answer is for. */
struct answer answer_to(const struct signalfd_siginfo *got);

/* Sends the text without waiting, and sets answer->pid to 0, so that there is one answer only. Does
 * nothing if nobody waits. */
void answer_send(struct answer *answer, const char *text);

/* ---- of the process that asks */

/* Opens a socket for an answer, sends the signal to the process, and sets *socket, which the caller
 * closes. Returns 0, or -1 with errno. */
int answer_ask(pid_t pid, int signal, int *socket);

/* Waits for the answer of that process, and writes it NUL-terminated, cut to size. Returns 0, or -1
 * with errno; ETIMEDOUT: none has come in time. */
int answer_wait(int socket, pid_t pid, int64_t timeout_ms, char *text, size_t size);

#endif
