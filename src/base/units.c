/* Parses and formats durations, sizes, percentages and integers. */
#include "base/units.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct unit {
    const char *name;
    int64_t factor;
};

/* largest first, the order that a sum must have */
static const struct unit durations[] = {
    {"w", INT64_C(604800000)},
    {"d", 86400000},
    {"h", 3600000},
    {"m", 60000},
    {"s", 1000},
    {"ms", 1},
};
enum { DURATIONS = sizeof durations / sizeof durations[0] };

static const struct unit sizes[] = {
    {"K", INT64_C(1) << 10},
    {"M", INT64_C(1) << 20},
    {"G", INT64_C(1) << 30},
    {"T", INT64_C(1) << 40},
};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static const int64_t century_ms = INT64_C(36525) * 86400000;

/* Parses the digits at *text, which moves past them. Returns 0, UNITS_TOO_LARGE, or -1 if there are
 * none. */
static int parse_digits(const char **text, int64_t *value)
{
    const char *at = *text;
    int result = 0;

    *value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, *at - '0', value)) {
            result = UNITS_TOO_LARGE;
        }
    }
    if (at == *text) {
        return -1;
    }
    *text = at;
    return result;
}

/* Finds the unit named by the letters at *text, from `first` on in the table; *text moves past it.
 * Returns its index, or -1. */
static int parse_unit(const char **text, int first)
{
    size_t length = strspn(*text, "abcdefghijklmnopqrstuvwxyz");

    for (int i = first; i < DURATIONS; i++) {
        if (strlen(durations[i].name) != length || memcmp(*text, durations[i].name, length) != 0) {
            continue;
        }
        *text += length;
        return i;
    }
    return -1;
}

int units_parse_duration(const char *text, int64_t *ms)
{
    int64_t total = 0, value;
    int unit = -1;

    /* a number without a unit is seconds, but not in a sum: "1m30" is ambiguous */
    const char *at = text;
    int digits = parse_digits(&at, &value);
    if (digits < 0) {
        return -1;
    }
    if (*at == '\0') {
        if (digits != 0 || __builtin_mul_overflow(value, 1000, &total) || total > century_ms) {
            return UNITS_TOO_LARGE;
        }
        *ms = total;
        return 0;
    }

    /* in a sum each part has a smaller unit than the one before */
    bool too_large = false;
    for (at = text; *at != '\0'; at += strspn(at, " ")) {
        digits = parse_digits(&at, &value);
        unit = digits < 0 ? -1 : parse_unit(&at, unit + 1);
        if (unit < 0) {
            return -1;
        }
        too_large = too_large || digits != 0 ||
                    __builtin_mul_overflow(value, durations[unit].factor, &value) ||
                    __builtin_add_overflow(total, value, &total) || total > century_ms;
    }
    if (too_large) {
        return UNITS_TOO_LARGE;
    }
    *ms = total;
    return 0;
}

int units_parse_size(const char *text, int64_t *bytes)
{
    int64_t value;

    int result = parse_digits(&text, &value);
    if (result < 0) {
        return -1;
    }
    for (size_t i = 0; *text != '\0' && i < SIZES; i++) {
        if (strcmp(text, sizes[i].name) != 0) {
            continue;
        }
        if (__builtin_mul_overflow(value, sizes[i].factor, &value)) {
            result = UNITS_TOO_LARGE;
        }
        text = "";
    }
    if (*text != '\0') {
        return -1;
    }
    if (result == 0) {
        *bytes = value;
    }
    return result;
}

void units_format_size(int64_t bytes, char *text)
{
    int unit = SIZES - 1;

    while (unit >= 0 && (bytes == 0 || bytes % sizes[unit].factor != 0)) {
        unit--;
    }
    /* fits: a unit shortens the number */
    (void)snprintf(text, UNITS_INTEGER_SIZE, "%lld%s",
                   (long long)(unit >= 0 ? bytes / sizes[unit].factor : bytes),
                   unit >= 0 ? sizes[unit].name : "");
}

int units_parse_percent(const char *text, int64_t *percent)
{
    int result = parse_digits(&text, percent);

    return strcmp(text, "%") == 0 ? result : -1;
}

int units_parse_integer(const char *text, int64_t low, int64_t high, int64_t *value)
{
    bool negative = *text == '-';
    int64_t number;

    if (negative) {
        text++;
    }
    int result = parse_digits(&text, &number);
    if (result < 0 || *text != '\0') {
        return -1;
    }
    if (result != 0) {
        return result;
    }
    if (negative) {
        number = -number;
    }
    if (number < low || number > high) {
        return -1;
    }
    *value = number;
    return 0;
}

size_t units_format_integer(int64_t number, char *text)
{
    uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;
    char digits[UNITS_INTEGER_SIZE], *first = digits + sizeof digits;
    size_t length;

    *--first = '\0';
    do {
        *--first = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (number < 0) {
        *--first = '-';
    }
    length = (size_t)(digits + sizeof digits - first);
    memcpy(text, first, length);
    return length - 1;
}

size_t units_format_seconds(int64_t ms, char *text)
{
    int64_t left = ms > 0 ? ms : 0;
    size_t length = units_format_integer(left / 1000, text);

    text[length++] = '.';
    left %= 1000;
    for (int64_t unit = 100; unit > 0; left %= unit, unit /= 10) {
        text[length++] = (char)('0' + left / unit);
    }
    text[length] = '\0';
    return length;
}

void units_format_duration(int64_t ms, char *text, size_t size)
{
    size_t used = 0;
    int length;

    if (size == 0) {
        return;
    }
    text[0] = '\0';
    if (ms <= 0) {
        (void)snprintf(text, size, "0s"); /* size is large enough, see units.h */
    }

    /* leave out parts that are zero */
    for (int i = 0; i < DURATIONS && ms > 0; i++) {
        if (ms < durations[i].factor) {
            continue;
        }
        length = snprintf(text + used, size - used, "%lld%s", (long long)(ms / durations[i].factor),
                          durations[i].name);
        if (length < 0 || (size_t)length >= size - used) {
            return;
        }
        used += (size_t)length;
        ms %= durations[i].factor;
    }
}
