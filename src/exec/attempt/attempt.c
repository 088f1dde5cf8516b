/*
 * Frees attempts. The first attempt of a child is the first member of its struct, and frees it.
 */
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
    free(attempt);
}
