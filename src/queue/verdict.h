/*
 * The five outcomes of an attempt: what happens to its task.
 */
#ifndef LEAT_QUEUE_VERDICT_H
#define LEAT_QUEUE_VERDICT_H

enum verdict {
    VERDICT_SUCCESS,
    VERDICT_RETRY,
    VERDICT_DEAD,
    VERDICT_RELEASE,
    VERDICT_CANCELLED,
};

#define VERDICTS (VERDICT_CANCELLED + 1)

/* Returns its name in calls, results and live output. */
const char *verdict_name(enum verdict verdict);

/* Returns its name in reports of a batch, where a success is "ok". */
const char *verdict_report_name(enum verdict verdict);

#endif
