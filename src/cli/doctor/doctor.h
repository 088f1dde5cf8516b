/*
 * What the parts of leat doctor share: the kinds of findings, and the report in which they are
 * counted, with a few of each as examples.
 */
#ifndef LEAT_CLI_DOCTOR_DOCTOR_H
#define LEAT_CLI_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "cli/lib/cli.h"
#include "queue/task.h"

#define DOCTOR_EXAMPLES 20 /* of each kind are kept */

struct doctor_kind {
    const char *name;
    const char *title;   /* of one */
    const char *meaning; /* what follows from it */
    const char *repair;  /* what --repair does, or NULL: it is for people */
    const char *advice;  /* what people can do, or NULL */
    bool is_note;        /* nothing is wrong */
};

/* Kinds that this leat does not know come from a newer library; there is one for them. */
const struct doctor_kind *doctor_kind_of(struct bytes name);
size_t doctor_kind_count(void);
const struct doctor_kind *doctor_kind_at(size_t index);

enum doctor_state { DOCTOR_FOUND, DOCTOR_REPAIRED, DOCTOR_LEFT };

struct doctor_example {
    struct buffer subject, detail;
    enum doctor_state state;
    char why[160]; /* it was left */
};

struct doctor_tally {
    size_t count, repaired; /* count: all that were found */
    struct doctor_example examples[DOCTOR_EXAMPLES];
    size_t example_count;
};

struct doctor_report {
    struct cli *cli;
    bool repair;
    bool incomplete;              /* not all keys could be looked at */
    bool failed;                  /* for want of memory */
    struct doctor_tally *tallies; /* one a kind */
};

/* Returns 0, or -1 without memory. */
int doctor_report_init(struct doctor_report *report, struct cli *cli, bool repair);
void doctor_report_free(struct doctor_report *report);

/* Counts a finding; the bytes are copied. why: it was left for that reason, else NULL. */
void doctor_add(struct doctor_report *report, const struct doctor_kind *kind, struct bytes subject,
                struct bytes detail, enum doctor_state state, const char *why);
/* The same for text, by the kind's name. */
void doctor_add_text(struct doctor_report *report, const char *kind, const char *subject,
                     enum doctor_state state, const char *why, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Of what was found and is no note: how many were put right, and how many were not. */
void doctor_sum(const struct doctor_report *report, size_t *repaired, size_t *left);

/* Redis, the function library, the workers and what they agree on. Connects. *go_on: the library
 * can be asked for more. Returns 0 or an exit status, the error having been printed. */
int doctor_look_around(struct doctor_report *report, bool *go_on);

/* All keys of the queue, page by page; repairs what it finds where the report says so. */
int doctor_look_through(struct doctor_report *report);

/* Writes it for people, or as JSON. Returns 0 or an exit status. */
int doctor_print(const struct doctor_report *report, bool json);

#endif
