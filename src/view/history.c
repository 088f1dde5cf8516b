/*
 * The attempts of a task that have ended, read line by line.
 */
#include "view/history.h"

#include <string.h>

#include "base/units.h"
#include "view/output_json.h"

enum { ATTEMPT, WORKER, BEGUN, ENDED, CAUSE, STATUS, PARTS };

/* Splits the line at blanks; the last part takes the rest. Returns false if the line has another
 * form. */
static bool split(const char *line, size_t size, struct bytes parts[PARTS])
{
    const char *at = line, *end = line + size, *blank;

    for (size_t i = 0; i < PARTS; i++) {
        blank = i < STATUS ? memchr(at, ' ', (size_t)(end - at)) : end;
        if (!blank) {
            return false;
        }
        parts[i] = (struct bytes){at, (size_t)(blank - at)};
        at = blank < end ? blank + 1 : end;
    }
    return true;
}

static int64_t number_of(struct bytes text)
{
    char digits[32];
    int64_t number;

    bytes_copy(text, digits, sizeof digits);
    return units_parse_integer(digits, 0, INT64_MAX, &number) == 0 ? number : 0;
}

bool history_next(struct bytes history, size_t *at, struct history_line *line)
{
    while (*at < history.size) {
        const char *start = history.data + *at;
        const char *newline = memchr(start, '\n', history.size - *at);
        size_t size = newline ? (size_t)(newline - start) : history.size - *at;
        struct bytes parts[PARTS];
        *at += size + 1;
        if (split(start, size, parts)) {
            *line = (struct history_line){parts[WORKER],           parts[CAUSE],
                                          parts[STATUS],           number_of(parts[ATTEMPT]),
                                          number_of(parts[BEGUN]), number_of(parts[ENDED])};
            return true;
        }
    }
    return false;
}

static json_t *line_json(const struct history_line *line)
{
    json_t *object = json_pack("{s:I, s:I, s:I}", "attempt", (json_int_t)line->attempt, "begun_ms",
                               (json_int_t)line->begun_ms, "ended_ms", (json_int_t)line->ended_ms);

    output_put_bytes(&object, "worker", line->worker);
    output_put_bytes(&object, "cause", line->cause);
    output_put_bytes(&object, "status", line->status);
    return object;
}

json_t *history_json(struct bytes history)
{
    json_t *array = json_array();
    struct history_line line;
    size_t at = 0;

    while (history_next(history, &at, &line)) {
        output_push(&array, line_json(&line));
    }
    return array;
}
