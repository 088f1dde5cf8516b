/*
 * Who did what: each act of an operator stands in the journal, as one record under
 * LOG_ID_OPERATOR. Where there is no journal nothing is written, and nothing said: an act does not
 * fail for want of its record.
 */
#ifndef LEAT_CLI_LIB_AUDIT_H
#define LEAT_CLI_LIB_AUDIT_H

#include <stddef.h>

struct cli;

enum {
    AUDIT_WHO_SIZE = 101, /* with the NUL */
    AUDIT_ID_SIZE = 64,
    AUDIT_IDS = 20, /* are named in the record */
};

/* An act and what it was done to; begun with only .event set. */
struct audit {
    const char *event; /* LEAT_EVENT, such as operator-cancel */
    size_t count;      /* LEAT_COUNT; no field where it is 0 */
    char ids[AUDIT_IDS][AUDIT_ID_SIZE];
    size_t id_count;
};

/* "user@host": the user behind sudo, else the one whose command this is. Printable, without
 * blanks. */
void audit_who(char who[AUDIT_WHO_SIZE]);

/* Counts a task; the first ones are named, each as a LEAT_TASK of its own. An id is cut to its
 * size. */
void audit_add(struct audit *act, const char *id);

/* Writes the record, of a configured queue, after the act has succeeded. The text goes on after the
 * user's name: "alice@web1 paused the queue". */
void audit_record(const struct cli *cli, const struct audit *act, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
