/* Parses rates and settings of lanes. */
#include "config/types/limits.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "config/types/strings.h"
#include "queue/shared/limits.h"

#define DIGITS "0123456789"

enum { PARTS = 4, PART_LONGEST = 40, BURST_MOST = 1000000000 };

/* Returns the length of a decimal number above 0 without sign and exponent, or 0 if there is
 * none. */
static size_t number_length(const char *text)
{
    size_t length = strspn(text, DIGITS);

    if (length > 0 && text[length] == '.') {
        length += 1 + strspn(text + length + 1, DIGITS);
    }
    return strspn(text, "0.") < length ? length : 0;
}

static bool is_rate(const char *text)
{
    static const char *const units[] = {"s", "m", "min", "h", "d"};
    size_t length = number_length(text);

    if (length == 0 || text[length] != '/') {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(text + length + 1, units[i]) == 0) {
            return true;
        }
    }
    return false;
}

int limits_set_rate(char **rate, const char *text, struct buffer *why)
{
    bool none = strcmp(text, "none") == 0;

    if (!none && (strlen(text) > PART_LONGEST || !is_rate(text))) {
        return strings_refuse(why, text,
                              "is not a rate; write it like 20/s, 100/m, 5000/h or 0.5/s, or none");
    }
    if (strings_replace(rate, none ? NULL : text) != 0) {
        why->failed = true;
        return -1;
    }
    return 0;
}

/* ---- lanes */

static bool is_weight(const char *text)
{
    size_t length = number_length(text);
    double weight = strtod(text, NULL); /* number_length excludes other forms that strtod accepts */

    return strcmp(text, "strict") == 0 ||
           (length > 0 && text[length] == '\0' && weight >= 0.001 && weight <= 1000);
}

static bool is_count(const char *text)
{
    int64_t value;

    return units_parse_integer(text, 1, BURST_MOST, &value) == 0;
}

/* Checks the part at that place. Only the weight may not be missing. Returns 0 or -1. */
static int check_part(int place, const char *part, struct buffer *why)
{
    bool missing = *part == '\0' && place > 0;

    if (place == 0 && !is_weight(part)) {
        return strings_refuse(why, part,
                              "is not a weight; begin with a number from 0.001 to 1000, or strict");
    }
    if (place == 1 && !missing && !is_count(part)) {
        return strings_refuse(why, part,
                              "is not a number of running tasks; write a number from 1 on, or -");
    }
    if (place == 2 && !missing && !is_rate(part)) {
        return strings_refuse(why, part, "is not a rate; write it like 20/s or 100/m, or -");
    }
    if (place == 3 && !missing && !is_count(part)) {
        return strings_refuse(why, part, "is not a burst; write a number from 1 on, or -");
    }
    return 0;
}

/* Copies the text between two commas, trimmed. Returns 0, or -1 if it is too long. */
static int take_part(const char *text, size_t size, char part[PART_LONGEST + 1])
{
    while (size > 0 && strchr(" \t", *text)) {
        text++;
        size--;
    }
    while (size > 0 && strchr(" \t", text[size - 1])) {
        size--;
    }
    if (size > PART_LONGEST) {
        return -1;
    }
    memcpy(part, text, size);
    part[size] = '\0';
    return 0;
}

/* Splits the parts; - becomes "", but for the weight, which must be given. Returns the number of
 * parts, or -1 if there are too many or one is too long. */
static int split_parts(const char *text, char parts[PARTS][PART_LONGEST + 1])
{
    int count = 0;

    for (const char *at = text; at; count++) {
        size_t size = strcspn(at, ",");

        if (count == PARTS || take_part(at, size, parts[count]) != 0) {
            return -1;
        }
        if (count > 0 && strcmp(parts[count], "-") == 0) {
            *parts[count] = '\0';
        }
        at = at[size] == ',' ? at + size + 1 : NULL;
    }
    return count;
}

int limits_settings(const char *text, struct buffer *settings, struct buffer *why)
{
    char parts[PARTS][PART_LONGEST + 1] = {0};
    int count = split_parts(text, parts);

    if (count < 0) {
        return strings_refuse(why, text,
                              "is not a list of settings; write \"weight, max_running, rate, "
                              "burst\", or leave out the last ones");
    }
    for (int i = 0; i < count; i++) {
        if (check_part(i, parts[i], why) != 0) {
            return -1;
        }
    }
    while (count > 0 && *parts[count - 1] == '\0') {
        count--;
    }
    for (int i = 0; i < count; i++) {
        (void)buffer_printf(settings, "%s%s", i > 0 ? ", " : "",
                            *parts[i] != '\0' ? parts[i] : "-");
    }
    why->failed |= settings->failed;
    return settings->failed ? -1 : 0;
}

int limits_add_lane(char ***list, const char *name, const char *text, struct buffer *why)
{
    struct buffer entry = BUFFER_INIT;
    int result = -1;

    if (strlen(name) > QUEUE_MAX_LANE) {
        (void)buffer_printf(why, "the name of a lane has at most %d bytes; shorten it",
                            QUEUE_MAX_LANE);
        return -1;
    }
    if (strings_find(*list, name, strlen(name), '=')) {
        (void)buffer_append_text(why, "this lane is already set; remove one of the two lines");
        return -1;
    }
    (void)buffer_printf(&entry, "%s=", name); /* a failure sets entry.failed */
    if (limits_settings(text, &entry, why) == 0) {
        result = strings_append(list, entry.data, entry.size);
    }
    why->failed |= result != 0 && why->size == 0;
    buffer_free(&entry);
    return result;
}

size_t limits_split_lane(const char *entry, const char **settings)
{
    size_t length = strcspn(entry, "=");

    *settings = entry + length + 1;
    return length;
}
