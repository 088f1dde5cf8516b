/*
 * The resident processes of a worker: one for each slot, started before tasks need them, replaced
 * when they are worn, and started again, with a backoff, if they fail. exec/attempt/child_state.h
 * has one of them.
 *
 * A resident process takes a slot only while it has tasks. Its successor starts beside it, and it
 * goes on until that one is ready.
 */
#ifndef LEAT_EXEC_RESIDENTS_H
#define LEAT_EXEC_RESIDENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/timer.h"
#include "config/config.h"
#include "exec/attempt/child_state.h"

enum residents_event {
    RESIDENTS_FAILED,     /* a process has ended, or is being ended, through a fault of its own */
    RESIDENTS_CANNOT_RUN, /* this host cannot start it at all */
};

TAILQ_HEAD(residents_list, resident);

struct residents {
    struct child_host *host;
    /* Starts the process of a child that resident_new made. Returns 0; or -1, and nothing is left
     * of it but the reason in reason. */
    int (*start)(void *context, struct child *child, char *reason, size_t reason_size);
    void (*event)(void *context, enum residents_event event, pid_t pid, const char *text);
    void *context;
    struct residents_list all;
    struct residents_list idle; /* without a task: the one that was idle last comes first */
    struct residents_list some; /* with tasks, and room for more */
    size_t wanted;              /* how many there should be that are not worn */
    size_t fresh;               /* how many there are */
    size_t starting;            /* those of them that are not ready */
    size_t idle_count;
    size_t room;          /* of `some`, in tasks */
    size_t busy;          /* how many have tasks */
    size_t count;         /* of all */
    double wait_s;        /* the next backoff; 0: none so far */
    struct timer backoff; /* while it runs, none is started */
};

/* Sets it up; the config of the host says whether there are any. */
void residents_init(struct residents *residents, struct child_host *host);

/* Starts those that are missing. needed is how many tasks want at the least. */
void residents_keep(struct residents *residents, size_t needed);

/* Returns how many more tasks they can take, or could if they were started now, if `slots` slots
 * are free. */
size_t residents_room(const struct residents *residents, size_t slots);

/* Returns one that can take a task now; with `idle`, also one without a task. NULL: none. */
struct child *residents_find(const struct residents *residents, bool idle);

/* The number of tasks of the process has changed, or whether it takes more. */
void residents_update(struct residents *residents, struct child *child, size_t former_count);

/* News of a process, see struct child_host. */
void residents_news(struct residents *residents, struct child *child, enum resident_news news,
                    const char *text);

/* Nothing is left of the process. It is forgotten, and its struct resident is freed. */
void residents_gone(struct residents *residents, struct child *child);

/* The config was replaced: processes that it would start in another way get successors. */
void residents_reload(struct residents *residents, const struct config *former);

/* Gives none of them any more tasks, and starts none. */
void residents_close(struct residents *residents);

/* Ends those without tasks; event is JOB_STOP or JOB_KILL_NOW. */
void residents_end(struct residents *residents, enum job_event event);

/* Stops the timer. No process must be left. */
void residents_free(struct residents *residents);

#endif
