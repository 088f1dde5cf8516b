/*
 * leat doctor: counts findings by kind, and prints them.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor/doctor.h"
#include "cli/lib/output.h"
#include "cli/lib/text.h"

#define SHOWN 5 /* examples of each kind in the text */

int doctor_report_init(struct doctor_report *report, struct cli *cli, bool repair)
{
    *report = (struct doctor_report){.cli = cli, .repair = repair};
    report->tallies = calloc(doctor_kind_count(), sizeof *report->tallies);
    return report->tallies ? 0 : -1;
}

void doctor_report_free(struct doctor_report *report)
{
    for (size_t i = 0; i < doctor_kind_count() && report->tallies; i++) {
        struct doctor_tally *tally = &report->tallies[i];
        for (size_t j = 0; j < tally->example_count; j++) {
            buffer_free(&tally->examples[j].subject);
            buffer_free(&tally->examples[j].detail);
        }
    }
    free(report->tallies);
    report->tallies = NULL;
}

static struct doctor_tally *tally_of(const struct doctor_report *report,
                                     const struct doctor_kind *kind)
{
    return &report->tallies[kind - doctor_kind_at(0)];
}

void doctor_add(struct doctor_report *report, const struct doctor_kind *kind, struct bytes subject,
                struct bytes detail, enum doctor_state state, const char *why)
{
    struct doctor_tally *tally = tally_of(report, kind);
    struct doctor_example *example;

    tally->count++;
    tally->repaired += state == DOCTOR_REPAIRED;
    if (tally->example_count == DOCTOR_EXAMPLES) {
        return;
    }
    example = &tally->examples[tally->example_count++];
    *example = (struct doctor_example){.state = state};
    if (buffer_append(&example->subject, subject.data, subject.size) != 0 ||
        buffer_append(&example->detail, detail.data, detail.size) != 0) {
        report->failed = true;
    }
    (void)snprintf(example->why, sizeof example->why, "%s", why ? why : "");
}

void doctor_add_text(struct doctor_report *report, const char *kind, const char *subject,
                     enum doctor_state state, const char *why, const char *format, ...)
{
    char detail[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    doctor_add(report, doctor_kind_of(bytes_of(kind)), bytes_of(subject), bytes_of(detail), state,
               why);
}

void doctor_sum(const struct doctor_report *report, size_t *repaired, size_t *left)
{
    *repaired = 0;
    *left = 0;
    for (size_t i = 0; i < doctor_kind_count(); i++) {
        const struct doctor_tally *tally = &report->tallies[i];
        if (doctor_kind_at(i)->is_note) {
            continue;
        }
        *repaired += tally->repaired;
        *left += tally->count - tally->repaired;
    }
}

/* ---- for people */

static void print_example(const struct doctor_example *example, struct buffer *out)
{
    /* a failed append marks the buffer */
    (void)buffer_append_text(out, "    ");
    (void)text_append(out, example->subject.data, example->subject.size);
    if (example->detail.size > 0) {
        (void)buffer_append_text(out, example->subject.size > 0 ? ": " : "");
        (void)text_append(out, example->detail.data, example->detail.size);
    }
    if (example->why[0]) {
        (void)buffer_append_text(out, "; left: ");
        (void)text_append(out, example->why, strlen(example->why));
    }
    (void)buffer_append_text(out, "\n");
}

static void print_remedies(const struct doctor_report *report, const struct doctor_kind *kind,
                           const struct doctor_tally *tally, struct buffer *out)
{
    size_t left = tally->count - tally->repaired;

    /* a failed append marks the buffer */
    if (tally->repaired > 0) {
        (void)buffer_printf(out, "    Repaired: %zu. The repair %s.\n", tally->repaired,
                            kind->repair);
    }
    if (left > 0 && kind->repair && !report->repair) {
        (void)buffer_printf(out, "    leat doctor --repair %s.\n", kind->repair);
    }
    if (left > 0 && kind->advice) {
        (void)buffer_printf(out, "    %s\n", kind->advice);
    }
}

static void print_kind(const struct doctor_report *report, size_t index, bool color,
                       struct buffer *out)
{
    const struct doctor_kind *kind = doctor_kind_at(index);
    const struct doctor_tally *tally = &report->tallies[index];
    bool left = tally->repaired < tally->count;
    enum text_style style = kind->is_note ? TEXT_DIM : left ? TEXT_RED : TEXT_GREEN;
    size_t shown = tally->example_count < SHOWN ? tally->example_count : SHOWN;

    /* a failed append marks the buffer */
    (void)buffer_append_text(out, "\n");
    (void)text_style(out, style, color);
    (void)buffer_append_text(out, kind->is_note ? "NOTE" : left ? "FOUND" : "REPAIRED");
    (void)text_style(out, TEXT_PLAIN, color);
    (void)buffer_printf(out, " %s: %s", kind->name, kind->title);
    if (tally->count > 1) {
        (void)buffer_printf(out, ", %zu times", tally->count);
    }
    (void)buffer_append_text(out, "\n");
    for (size_t i = 0; i < shown; i++) {
        print_example(&tally->examples[i], out);
    }
    if (tally->count > shown) {
        (void)buffer_printf(out, "    and %zu more\n", tally->count - shown);
    }
    (void)buffer_printf(out, "    %s\n", kind->meaning);
    print_remedies(report, kind, tally, out);
}

static void print_head(const struct doctor_report *report, struct buffer *out)
{
    size_t repaired, left;

    doctor_sum(report, &repaired, &left);
    /* a failed append marks the buffer */
    (void)text_append(out, report->cli->config->queue.name,
                      strlen(report->cli->config->queue.name));
    if (repaired + left == 0) {
        (void)buffer_append_text(out, report->incomplete ? ": could not be examined completely"
                                                         : ": no problems found");
    } else {
        (void)buffer_printf(out, ": %zu finding%s", repaired + left,
                            repaired + left == 1 ? "" : "s");
    }
    if (repaired + left > 0 && report->repair) {
        (void)buffer_printf(out, ", %zu repaired, %zu left", repaired, left);
    }
    (void)buffer_append_text(out, "\n");
}

static int print_page(const struct doctor_report *report)
{
    struct output output = output_look();
    struct buffer page = BUFFER_INIT;
    int status;

    print_head(report, &page);
    for (size_t i = 0; i < doctor_kind_count(); i++) {
        if (report->tallies[i].count > 0) {
            print_kind(report, i, output.color, &page);
        }
    }
    if (report->incomplete) {
        /* a failed append marks the buffer */
        (void)buffer_append_text(&page, "\nNot all keys of the queue were examined.\n");
    }
    (void)text_wrap(&page, 0, output.width);
    status = output_write(&page);
    buffer_free(&page);
    return status;
}

/* ---- as JSON */

static const char *const state_names[] = {
    [DOCTOR_FOUND] = "found", [DOCTOR_REPAIRED] = "repaired", [DOCTOR_LEFT] = "left"};

static json_t *example_json(const struct doctor_example *example)
{
    json_t *object = json_pack("{s:s}", "state", state_names[example->state]);

    output_put_bytes(&object, "subject", buffer_bytes(&example->subject));
    output_put_bytes(&object, "detail", buffer_bytes(&example->detail));
    if (example->why[0]) {
        output_put_bytes(&object, "why", bytes_of(example->why));
    }
    return object;
}

static json_t *kind_json(const struct doctor_kind *kind, const struct doctor_tally *tally)
{
    json_t *examples = json_array();

    for (size_t i = 0; i < tally->example_count; i++) {
        output_push(&examples, example_json(&tally->examples[i]));
    }
    /* json_pack takes the reference, and returns NULL without memory */
    return json_pack("{s:s, s:b, s:I, s:I, s:s, s:s, s:s*, s:s*, s:o}", "kind", kind->name, "note",
                     kind->is_note, "count", (json_int_t)tally->count, "repaired",
                     (json_int_t)tally->repaired, "title", kind->title, "meaning", kind->meaning,
                     "repair", kind->repair, "advice", kind->advice, "examples", examples);
}

static int print_json(const struct doctor_report *report)
{
    json_t *findings = json_array();
    size_t repaired, left;

    doctor_sum(report, &repaired, &left);
    for (size_t i = 0; i < doctor_kind_count(); i++) {
        if (report->tallies[i].count > 0) {
            output_push(&findings, kind_json(doctor_kind_at(i), &report->tallies[i]));
        }
    }
    return output_json(json_pack("{s:s, s:b, s:b, s:b, s:I, s:I, s:o}", "queue",
                                 report->cli->config->queue.name, "healthy",
                                 left == 0 && !report->incomplete, "repair", report->repair,
                                 "complete", !report->incomplete, "repaired", (json_int_t)repaired,
                                 "left", (json_int_t)left, "findings", findings),
                       true);
}

int doctor_print(const struct doctor_report *report, bool json)
{
    if (report->failed) {
        return cli_no_memory();
    }
    return json ? print_json(report) : print_page(report);
}
