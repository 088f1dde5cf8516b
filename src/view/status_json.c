/*
 * The state of a queue as JSON.
 */
#include "view/output_json.h"
#include "view/reply_json.h"
#include "view/status.h"
#include "view/totals.h"

/* Members that the heartbeat does not have are left out. */
static json_t *worker_json(const struct status_worker *worker)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {"pid", worker->pid},
        {"running", worker->running},
        {"slots", worker->slots},
        {"capacity", worker->capacity},
        {"started_ms", worker->started_ms},
        {"succeeded", worker->succeeded},
        {"failed", worker->failed},
        {"cancelled", worker->cancelled},
        {"seen_ms", worker->heartbeat_ms},
    };
    json_t *object =
        json_pack("{s:s, s:s, s:b, s:b, s:f, s:s}", "host", worker->host, "state", worker->state,
                  "live", (int)worker->live, "drained", (int)worker->drained, "rate", worker->rate,
                  "version", worker->version);

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].value >= 0) {
            output_put(&object, numbers[i].name, json_integer((json_int_t)numbers[i].value));
        }
    }
    return object;
}

static json_t *workers_json(const struct status *status)
{
    json_t *array = json_array();

    for (size_t i = 0; i < status->worker_count; i++) {
        output_push(&array, worker_json(&status->workers[i]));
    }
    return array;
}

static json_t *lines_json(const struct buffer *lines)
{
    json_t *array = json_array();
    size_t start = 0;

    for (size_t i = 0; i < lines->size; i++) {
        if (lines->data[i] == '\n') {
            output_push(&array, json_stringn(lines->data + start, i - start));
            start = i + 1;
        }
    }
    return array;
}

/* {host: operator who drained it}, if it is known. */
static json_t *drained_by_json(const struct status *status)
{
    json_t *object = json_object();

    for (size_t i = 0; i < fields_count(status->conf); i++) {
        char host[STATUS_DRAINED_SIZE];
        struct bytes by;
        status_drained_host(status, i, host);
        (void)fields_stamp(fields_value(fields_value_at(status->conf, i)), &by);
        if (*host && by.size > 0) {
            output_put_bytes(&object, host, by);
        }
    }
    return object;
}

/* The drained hosts; "*" for all. */
static json_t *drained_json(const struct status *status)
{
    json_t *array = json_array();

    for (size_t i = 0; i < fields_count(status->conf); i++) {
        char host[STATUS_DRAINED_SIZE];
        status_drained_host(status, i, host);
        if (*host) {
            output_push(&array, json_string(host));
        }
    }
    return array;
}

json_t *status_json(const struct status *status, const struct buffer *problems,
                    const char *queue_name)
{
    /* json_pack takes each reference with 'o', also if another one is missing */
    json_t *object = json_pack(
        "{s:s, s:I, s:b, s:o, s:b, s:I, s:o, s:o, s:f, s:f, s:I, s:o, s:o, s:o, s:o}", "queue",
        queue_name, "now_ms", (json_int_t)status->now_ms, "healthy", (int)(problems->size == 0),
        "problems", lines_json(problems), "paused", (int)(status->paused_ms > 0), "paused_since_ms",
        (json_int_t)status->paused_ms, "drained", drained_json(status), "drained_by",
        drained_by_json(status), "rate", status->rate, "failure_rate", status->failure_rate,
        "rate_over_ms", (json_int_t)status->rate_ms, "since_creation", totals_json(status),
        "figures", fields_json(status->figures), "workers", workers_json(status), "conf",
        fields_json(status->conf));

    if (status->paused_by.size > 0) {
        output_put_bytes(&object, "paused_by", status->paused_by);
    }
    return object;
}
