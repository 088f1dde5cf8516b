/*
 * leat doctor: examines the keys of the queue, page by page (see doctor.lua). With --repair, Redis
 * checks each finding again in the step that repairs it.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/doctor/doctor.h"
#include "config/types/shared_setting.h"
#include "queue/calls.h"
#include "view/reply_fields.h"

#define ROW_ELEMENTS 3
#define LONGEST_REST_NS (100 * CLOCK_NS_PER_MS)

struct look {
    struct doctor_report *report;
    struct cli *cli;
};

/* A row of a page. It points into the reply. */
struct finding {
    struct bytes kind, subject, detail;
    const struct doctor_kind *known;
};

static int set_cursor(struct buffer *cursor, struct bytes value)
{
    buffer_clear(cursor);
    return buffer_append(cursor, value.data, value.size) == 0 ? EX_OK : cli_no_memory();
}

/* Pauses for as long as the last call took, so that at least half of Redis's time is left for work.
 */
static void pause_since(int64_t begun_ns)
{
    int64_t took_ns = clock_boot_ns() - begun_ns;
    struct timespec rest = {0};

    took_ns = took_ns < LONGEST_REST_NS ? took_ns : LONGEST_REST_NS;
    rest.tv_nsec = (long)took_ns;
    /* a signal may cut it short */
    (void)nanosleep(&rest, NULL);
}

/* Fetches one page and moves the cursor. Returns the reply, or NULL after printing the error and
 * setting *status. */
static struct redisReply *ask(struct look *look, struct buffer *cursor, int *status)
{
    int64_t begun_ns = clock_boot_ns();
    struct command command = {0};
    struct redisReply *reply;

    queue_doctor(&command, &look->cli->queue, (struct bytes){cursor->data, cursor->size});
    reply = cli_call(look->cli, &command, "cannot examine the queue", 3, status);
    if (!reply) {
        return NULL;
    }
    pause_since(begun_ns);
    *status = set_cursor(cursor, fields_value(reply->element[1]));
    if (*status == EX_OK) {
        return reply;
    }
    freeReplyObject(reply);
    return NULL;
}

/* ---- findings */

/* A shared setting has the name that leat conf takes. */
static struct bytes shown_subject(const struct finding *finding)
{
    const struct shared_setting *setting = NULL;
    char key[64];

    if (strcmp(finding->known->name, "conf") == 0 && finding->subject.size < sizeof key) {
        bytes_copy(finding->subject, key, sizeof key);
        setting = shared_setting_find(key);
    }
    return setting ? bytes_of(setting->name) : finding->subject;
}

static void add(struct look *look, const struct finding *finding, enum doctor_state state,
                const char *why)
{
    doctor_add(look->report, finding->known, shown_subject(finding), finding->detail, state, why);
}

/* Handles an answer. Returns true if the finding has to be sent again. */
static bool take_answer(struct look *look, const struct finding *finding, struct bytes answer)
{
    static const char left[] = "left ";
    char why[160];

    if (bytes_equal(answer, "more")) {
        return true;
    }
    if (bytes_equal(answer, "repaired")) {
        add(look, finding, DOCTOR_REPAIRED, NULL);
    } else if (!bytes_equal(answer, "gone")) {
        bytes_copy(answer, why, sizeof why);
        add(look, finding, DOCTOR_LEFT,
            strncmp(why, left, sizeof left - 1) == 0 ? why + sizeof left - 1 : why);
    }
    return false;
}

/* Findings that are repaired together. */
struct batch {
    struct finding findings[QUEUE_PAGE];
    size_t count;
};

/* Repairs the findings. Those that have to be sent once more stay in the batch. */
static int repair_some(struct look *look, struct batch *batch)
{
    struct command command = {0};
    struct redisReply *reply;
    size_t again = 0;
    int status;

    queue_repair_begin(&command, &look->cli->queue);
    for (size_t i = 0; i < batch->count; i++) {
        queue_repair_add(&command, batch->findings[i].kind, batch->findings[i].subject);
    }
    reply = cli_call(look->cli, &command, "cannot repair findings", batch->count + 1, &status);
    if (!reply) {
        return status;
    }
    for (size_t i = 0; i < batch->count; i++) {
        if (take_answer(look, &batch->findings[i], fields_value(reply->element[i + 1]))) {
            batch->findings[again++] = batch->findings[i];
        }
    }
    freeReplyObject(reply);
    batch->count = again;
    return EX_OK;
}

static int repair(struct look *look, struct batch *batch)
{
    int status = EX_OK;

    while (batch->count > 0 && status == EX_OK) {
        status = repair_some(look, batch);
    }
    return status;
}

static int take_row(struct look *look, const struct redisReply *row, struct batch *batch)
{
    struct finding finding;

    if (row->type != REDIS_REPLY_ARRAY || row->elements < ROW_ELEMENTS) {
        return EX_OK;
    }
    finding = (struct finding){
        .kind = fields_value(row->element[0]),
        .subject = fields_value(row->element[1]),
        .detail = fields_value(row->element[2]),
    };
    finding.known = doctor_kind_of(finding.kind);
    if (finding.known->is_note || !finding.known->repair || !look->report->repair) {
        add(look, &finding, DOCTOR_FOUND, NULL);
        return EX_OK;
    }
    batch->findings[batch->count++] = finding;
    return batch->count == QUEUE_PAGE ? repair(look, batch) : EX_OK;
}

static int take_page(struct look *look, const struct redisReply *rows)
{
    struct batch batch = {.count = 0};
    int status = EX_OK;

    for (size_t i = 0; i < rows->elements && status == EX_OK; i++) {
        status = take_row(look, rows->element[i], &batch);
    }
    return status == EX_OK ? repair(look, &batch) : status;
}

int doctor_examine_keys(struct doctor_report *report)
{
    struct look look = {.report = report, .cli = report->cli};
    struct buffer cursor = BUFFER_INIT;
    struct redisReply *reply;
    int status = buffer_append_text(&cursor, QUEUE_DOCTOR_START) == 0 ? EX_OK : cli_no_memory();

    while (cursor.size > 0 && status == EX_OK) {
        reply = ask(&look, &cursor, &status);
        if (reply) {
            status = take_page(&look, reply->element[2]);
        }
        freeReplyObject(reply);
    }
    buffer_free(&cursor);
    return status;
}
