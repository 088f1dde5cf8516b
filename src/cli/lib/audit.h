/*
 * The audit log: one record in the journal for each action of an operator, with LOG_ID_OPERATOR. If
 * there is no journal, no record is written and no error is reported: an action does not fail
 * because it cannot be recorded.
 */
#ifndef LEAT_CLI_LIB_AUDIT_H
#define LEAT_CLI_LIB_AUDIT_H

#include <stddef.h>

struct cli;

enum {
    AUDIT_WHO_SIZE = 101, /* with the NUL */
    AUDIT_ID_SIZE = 64,
    AUDIT_IDS = 20, /* that a record names */
};

/* An action and its tasks. Start with only .event set. */
struct audit {
    const char *event; /* LEAT_EVENT, such as operator-cancel */
    size_t count;      /* LEAT_COUNT; 0: no such field */
    char ids[AUDIT_IDS][AUDIT_ID_SIZE];
    size_t id_count;
};

/* Writes "user@host": the user who called sudo, or the user of this process. It is printable and
 * has no blanks. */
void audit_who(char who[AUDIT_WHO_SIZE]);

/* Counts a task. The record names the first AUDIT_IDS of them, each in a LEAT_TASK field. A longer
 * id is cut. */
void audit_add(struct audit *act, const char *id);

/* Writes the record. Call it after the action has succeeded; cli is loaded. The text follows the
 * user's name: "alice@web1 paused the queue". */
void audit_record(const struct cli *cli, const struct audit *act, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
