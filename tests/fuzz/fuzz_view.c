/* Goal: whatever a queue's functions answer, the status, lanes and tasks that are made of it can be
 * shown, as JSON and as metrics, whose lines no name can break. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "reply.h"
#include "view/lanes.h"
#include "view/metrics.h"
#include "view/output_json.h"
#include "view/shown.h"
#include "view/status.h"
#include "view/task_view.h"

#define ELEMENTS 7 /* of the reply of leat_status */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_json(json_t *value)
{
    struct buffer text = BUFFER_INIT;

    check(output_json_append(value, JSON_COMPACT, &text) == 0 && text.size > 0);
    for (size_t i = 0; i < text.size; i++) {
        check(text.data[i] >= ' ' && text.data[i] <= '~');
    }
    buffer_free(&text);
}

static void check_metrics(const struct status *status, const struct lanes *lanes)
{
    const struct metrics_queue queue = {.name = "q", .status = status, .lanes = lanes};
    struct buffer text = BUFFER_INIT;
    const char *line, *end;

    check(metrics_append(&queue, 1, METRICS_OPENMETRICS, &text) == 0 &&
          text.data[text.size - 1] == '\n');
    for (line = text.data; line < text.data + text.size; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text.data + text.size - line));
        check(strncmp(line, "leat_", 5) == 0 || strncmp(line, "# ", 2) == 0);
    }
    buffer_free(&text);
}

static void show_status(const redisReply *reply, const struct lanes *lanes)
{
    static const struct status_limits limits = {1, 1, 1};
    struct buffer problems = BUFFER_INIT;
    struct status status;

    check(status_read(reply, 60000, &status) == 0);
    check(status_problems(&status, "leat", &limits, &problems) == 0);
    check_json(status_json(&status, &problems, "q"));
    check_metrics(&status, lanes);
    buffer_free(&problems);
    status_free(&status);
}

static void show_task(const redisReply *reply)
{
    struct task_view task = task_view_read(reply);

    check_json(task_view_json(&task));
    for (size_t i = 0; i < ELEMENTS; i++) {
        check_json(shown_row(reply->element[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    redisReply *elements[ELEMENTS];
    redisReply reply = {.type = REDIS_REPLY_ARRAY, .elements = ELEMENTS, .element = elements};
    struct lanes lanes = {.most = METRICS_LANES};

    for (size_t i = 0; i < ELEMENTS; i++) {
        elements[i] = reply_grow(&input, REPLY_DEPTH - 1);
    }
    check(lanes_begin(&lanes) == 0 && lanes_keep(&lanes, elements[2]) == 0);
    check_json(lanes_json(&lanes));
    show_status(&reply, &lanes);
    show_task(&reply);
    lanes_free(&lanes);
    for (size_t i = 0; i < ELEMENTS; i++) {
        reply_free(elements[i]);
    }
    return 0;
}
