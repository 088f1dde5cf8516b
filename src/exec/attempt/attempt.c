/* Frees an attempt, which is the beginning of the child's memory or memory of its own. */
#include "exec/attempt/attempt.h"

#include <stdlib.h>

void attempt_free(struct attempt *attempt)
{
    if (!attempt) {
        return;
    }
    free((char *)attempt->stdout_tail.data);
    free((char *)attempt->stderr_tail.data);
    task_free(attempt->task);
    free(attempt); /* the first member of a child */
}
