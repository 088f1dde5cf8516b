/*
 * leat doctor: the kinds of findings, and the report that counts them and keeps some examples.
 */
#ifndef LEAT_CLI_DOCTOR_DOCTOR_H
#define LEAT_CLI_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "cli/lib/cli.h"
#include "queue/task.h"

#define DOCTOR_EXAMPLES 20 /* kept of each kind */

struct doctor_kind {
    const char *name;
    const char *title;   /* one finding, as a noun phrase */
    const char *meaning; /* its consequences, as sentences */
    const char *repair;  /* what --repair does, after "leat doctor --repair"; NULL: nothing */
    const char *advice;  /* what an operator can do, or NULL */
    bool is_note;        /* it is not a problem */
};

/* The kind of that name. A newer library may have unknown kinds, which become "other". */
const struct doctor_kind *doctor_kind_of(struct bytes name);
size_t doctor_kind_count(void);
const struct doctor_kind *doctor_kind_at(size_t index);

enum doctor_state { DOCTOR_FOUND, DOCTOR_REPAIRED, DOCTOR_LEFT };

struct doctor_example {
    struct buffer subject, detail;
    enum doctor_state state;
    char why[160]; /* why it was left, or "" */
};

struct doctor_tally {
    size_t count, repaired; /* count: all findings, repaired or not */
    struct doctor_example examples[DOCTOR_EXAMPLES];
    size_t example_count;
};

struct doctor_report {
    struct cli *cli;
    bool repair;
    bool incomplete;              /* not all keys were examined */
    bool failed;                  /* there was no memory */
    struct doctor_tally *tallies; /* one per kind */
};

/* Returns 0, or -1 without memory. */
int doctor_report_init(struct doctor_report *report, struct cli *cli, bool repair);
void doctor_report_free(struct doctor_report *report);

/* Counts a finding. The bytes are copied. why: the reason why it was left, or NULL. */
void doctor_add(struct doctor_report *report, const struct doctor_kind *kind, struct bytes subject,
                struct bytes detail, enum doctor_state state, const char *why);
/* The same for text and the name of the kind. */
void doctor_add_text(struct doctor_report *report, const char *kind, const char *subject,
                     enum doctor_state state, const char *why, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Counts the repaired and the other findings, without notes. */
void doctor_sum(const struct doctor_report *report, size_t *repaired, size_t *left);

/* Connects, and examines Redis, the function library, the workers and their shared settings.
 * *go_on: the library can examine the keys. Returns 0, or an exit status after printing the error.
 */
int doctor_examine_server(struct doctor_report *report, bool *go_on);

/* Connects once more, without user and password, and reports what such a client may do. */
void doctor_examine_login(struct doctor_report *report);

/* Examines all keys of the queue, page by page. Repairs findings if the report says so. Returns 0,
 * or an exit status after printing the error. */
int doctor_examine_keys(struct doctor_report *report);

/* Prints the report as text or JSON. Returns 0, or an exit status after printing the error. */
int doctor_print(const struct doctor_report *report, bool json);

#endif
