/* Names the outcomes. */
#include "queue/verdict.h"

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[] = {[VERDICT_SUCCESS] = "success",
                                        [VERDICT_RETRY] = "retry",
                                        [VERDICT_DEAD] = "dead",
                                        [VERDICT_RELEASE] = "release",
                                        [VERDICT_CANCELLED] = "cancelled"};

    return names[verdict];
}

const char *verdict_report_name(enum verdict verdict)
{
    return verdict == VERDICT_SUCCESS ? "ok" : verdict_name(verdict);
}
