/* task TRACE: a task of the chaos test. It appends its events to TRACE: its start, its end, and
 * every 50 ms a beat of a descendant, which goes on if the task was killed: whoever requeues the
 * task must have killed the descendant, too.
 *
 * Its fields are parameters: N is its number, MS its duration, FAILS how many attempts fail,
 * CODE with which status, LEFT for how many ms the descendant stays behind, and KILLS=1 makes it
 * kill its worker. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "trace.h"

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "0";
}

static int number(const char *name)
{
    return atoi(variable(name));
}

int main(int argc, char **argv)
{
    struct run run = {.pid = getpid(),
                      .n = number("TASK_N"),
                      .attempt = number("LEAT_ATTEMPT"),
                      .fence = atoll(variable("LEAT_FENCE"))};
    (void)snprintf(run.task, sizeof run.task, "%s", variable("LEAT_TASK"));
    run.trace = argc == 2 ? trace_open(argv[1]) : -1;
    if (run.trace < 0) {
        return 99;
    }
    trace_say(&run, "start", 0);

    int end = -1;
    pid_t witness = trace_witness(&run, number("TASK_LEFT"), 0, &end);
    if (witness < 0) {
        return 99;
    }
    if (number("TASK_KILLS")) {
        trace_kill_worker(&run);
    }
    (void)poll(NULL, 0, number("TASK_MS"));

    trace_end(witness, &end, number("TASK_LEFT") == 0);
    int code = number("LEAT_ATTEMPT") <= number("TASK_FAILS") ? number("TASK_CODE") : 0;
    trace_say(&run, "end", code);
    return code;
}
