/*
 * leat doctor: examines the keys of the queue, page by page. Redis cannot look up whether a task is
 * in the requeue stream, so the tasks of this stream are read first. A finding that depends on them
 * is checked again before it is reported (see doctor.lua).
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/seen.h"
#include "cli/lib/reply_fields.h"
#include "queue/calls.h"

#define ROW_ELEMENTS 4
#define TRIES 5 /* if the requeue stream grows while it is read */
#define LONGEST_REST_NS (100 * CLOCK_NS_PER_MS)

struct look {
    struct doctor_report *report;
    struct cli *cli;
    struct seen *in_go;
    struct buffer go_cursor;
};

/* A row of a page. It points into the reply. */
struct finding {
    struct bytes kind, subject, detail, tid;
    const struct doctor_kind *known;
};

static struct bytes cursor_bytes(const struct buffer *cursor)
{
    return (struct bytes){cursor->data, cursor->size};
}

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

    queue_doctor(&command, &look->cli->queue, cursor_bytes(cursor));
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

/* ---- tasks in the requeue stream */

/* Reads from where it stopped to the end of the stream. */
static int read_go(struct look *look)
{
    const struct redisReply *tids;
    struct redisReply *reply;
    int status;
    bool more = true;

    while (more) {
        reply = ask(look, &look->go_cursor, &status);
        if (!reply) {
            return status;
        }
        tids = reply->element[2];
        for (size_t i = 0; i < tids->elements; i++) {
            struct bytes tid = fields_value(tids->element[i]);
            seen_add(look->in_go, tid.data, tid.size);
        }
        more = tids->elements > 0;
        freeReplyObject(reply);
    }
    return EX_OK;
}

/* ---- findings */

static void add(struct look *look, const struct finding *finding, enum doctor_state state,
                const char *why)
{
    doctor_add(look->report, finding->known, finding->subject, finding->detail, state, why);
}

static bool is_repaired(const struct look *look, const struct finding *finding)
{
    return look->report->repair && finding->known->repair;
}

/* True if the page alone proves the finding, so that it needs no second check. */
static bool is_certain(const struct look *look, const struct finding *finding)
{
    return finding->known->is_note || (finding->tid.size == 0 && !is_repaired(look, finding));
}

/* Handles an answer. Returns true if the finding has to be sent again. */
static bool take_answer(struct look *look, const struct finding *finding, struct bytes answer,
                        size_t tries)
{
    static const char left[] = "left ";
    char why[160];

    if (bytes_equal(answer, "gone")) {
        return false;
    }
    if (bytes_equal(answer, "more") || (bytes_equal(answer, "unsure") && tries < TRIES)) {
        return true;
    }
    if (bytes_equal(answer, "found")) {
        add(look, finding, DOCTOR_FOUND, NULL);
    } else if (bytes_equal(answer, "repaired")) {
        add(look, finding, DOCTOR_REPAIRED, NULL);
    } else if (bytes_equal(answer, "unsure")) {
        add(look, finding, DOCTOR_LEFT, "it changes too fast to be examined");
    } else {
        bytes_copy(answer, why, sizeof why);
        add(look, finding, DOCTOR_LEFT,
            strncmp(why, left, sizeof left - 1) == 0 ? why + sizeof left - 1 : why);
    }
    return false;
}

/* Sends findings to be checked again: all of them are to be repaired, or none. Findings that have
 * to be sent once more move to the front, and *count becomes their number. */
static int send(struct look *look, struct finding *findings, size_t *count, size_t tries)
{
    struct command command = {0};
    struct redisReply *reply;
    size_t again = 0;
    int status;

    queue_findings_begin(&command, &look->cli->queue, is_repaired(look, findings),
                         cursor_bytes(&look->go_cursor));
    for (size_t i = 0; i < *count; i++) {
        queue_findings_add(&command, findings[i].kind, findings[i].subject, findings[i].tid);
    }
    reply = cli_call(look->cli, &command, "cannot check findings", *count + 1, &status);
    if (!reply) {
        return status;
    }
    for (size_t i = 0; i < *count; i++) {
        if (take_answer(look, &findings[i], fields_value(reply->element[i + 1]), tries)) {
            findings[again++] = findings[i];
        }
    }
    freeReplyObject(reply);
    *count = again;
    return EX_OK;
}

static bool may_be_in_go(const struct look *look, const struct finding *finding)
{
    return finding->tid.size > 0 && seen_has(look->in_go, finding->tid.data, finding->tid.size);
}

/* Reads the rest of the requeue stream, and drops findings whose task is there now. */
static int catch_up(struct look *look, struct finding *findings, size_t *count)
{
    size_t kept = 0;
    int status = read_go(look);

    for (size_t i = 0; i < *count; i++) {
        if (!may_be_in_go(look, &findings[i])) {
            findings[kept++] = findings[i];
        }
    }
    *count = kept;
    return status;
}

static int settle(struct look *look, struct finding *findings, size_t count)
{
    size_t tries = 0;
    int status = EX_OK;

    while (count > 0 && status == EX_OK) {
        size_t before = count;
        status = catch_up(look, findings, &count);
        if (status == EX_OK && count > 0) {
            status = send(look, findings, &count, tries);
        }
        /* the answer "more" means progress */
        tries = count < before ? 0 : tries + 1;
    }
    return status;
}

/* Findings that are sent together. */
struct batch {
    struct finding findings[QUEUE_FINDINGS_MAX];
    size_t count;
};

static int flush(struct look *look, struct batch *batch)
{
    int status = settle(look, batch->findings, batch->count);

    batch->count = 0;
    return status;
}

/* Reads a row. Returns false if it is no finding, because its task is in the requeue stream. */
static bool read_row(const struct look *look, const struct redisReply *row, struct finding *finding)
{
    if (row->type != REDIS_REPLY_ARRAY || row->elements < ROW_ELEMENTS) {
        return false;
    }
    *finding = (struct finding){
        .kind = fields_value(row->element[0]),
        .subject = fields_value(row->element[1]),
        .detail = fields_value(row->element[2]),
        .tid = fields_value(row->element[3]),
    };
    finding->known = doctor_kind_of(finding->kind);
    return !may_be_in_go(look, finding);
}

static int settle_page(struct look *look, const struct redisReply *rows)
{
    struct batch repaired = {.count = 0}, doubted = {.count = 0}, *batch;
    struct finding finding;
    int status = EX_OK;

    for (size_t i = 0; i < rows->elements && status == EX_OK; i++) {
        if (!read_row(look, rows->element[i], &finding)) {
            continue;
        }
        if (is_certain(look, &finding)) {
            add(look, &finding, DOCTOR_FOUND, NULL);
            continue;
        }
        batch = is_repaired(look, &finding) ? &repaired : &doubted;
        batch->findings[batch->count++] = finding;
        if (batch->count == QUEUE_FINDINGS_MAX) {
            status = flush(look, batch);
        }
    }
    status = status == EX_OK ? flush(look, &repaired) : status;
    status = status == EX_OK ? flush(look, &doubted) : status;
    return status;
}

static int walk(struct look *look)
{
    struct buffer cursor = BUFFER_INIT;
    struct redisReply *reply;
    int status = buffer_append_text(&cursor, QUEUE_DOCTOR_START) == 0 &&
                         buffer_append_text(&look->go_cursor, QUEUE_DOCTOR_TIDS) == 0
                     ? read_go(look)
                     : cli_no_memory();

    while (cursor.size > 0 && status == EX_OK) {
        reply = ask(look, &cursor, &status);
        if (!reply) {
            break;
        }
        status = settle_page(look, reply->element[2]);
        freeReplyObject(reply);
    }
    buffer_free(&cursor);
    return status;
}

int doctor_examine_keys(struct doctor_report *report)
{
    struct look look = {.report = report, .cli = report->cli, .in_go = seen_new()};
    int status = look.in_go ? walk(&look) : cli_no_memory();

    seen_free(look.in_go);
    buffer_free(&look.go_cursor);
    return status;
}
