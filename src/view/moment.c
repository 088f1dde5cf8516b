/*
 * Times and time spans, parsed and formatted.
 */
#include "view/moment.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/units.h"

#define SECOND_MS INT64_C(1000)
#define LATEST_S INT64_C(9000000000000)

/* Parses the fraction of a second at *text and moves *text past it. Digits after the milliseconds
 * are ignored. */
static int parse_fraction(const char **text, int64_t *ms)
{
    int64_t scale = 100;
    const char *at = *text;

    *ms = 0;
    if (*at != '.') {
        return 0;
    }
    for (at++; *at >= '0' && *at <= '9'; at++) {
        *ms += (*at - '0') * scale;
        scale /= 10;
    }
    if (at == *text + 1) {
        return -1;
    }
    *text = at;
    return 0;
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Parses "Z" or "+01:00" at the end of the text into seconds east of Greenwich. */
static int parse_zone(const char *text, int64_t *offset_s)
{
    int64_t hours, minutes;

    *offset_s = 0;
    if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0) {
        return 0;
    }
    if ((text[0] != '+' && text[0] != '-') || strlen(text) != 6 || text[3] != ':' ||
        !is_digit(text[1]) || !is_digit(text[2]) || !is_digit(text[4]) || !is_digit(text[5])) {
        return -1;
    }
    hours = (text[1] - '0') * 10 + text[2] - '0';
    minutes = (text[4] - '0') * 10 + text[5] - '0';
    if (hours > 23 || minutes > 59) {
        return -1;
    }
    *offset_s = (hours * 60 + minutes) * 60 * (text[0] == '-' ? -1 : 1);
    return 0;
}

/* Converts local time or UTC to seconds since 1970. Returns −1 if the day does not exist. */
static int64_t seconds_of(const struct tm *wanted, bool utc)
{
    struct tm parts = *wanted;
    time_t seconds;

    parts.tm_isdst = utc ? 0 : -1;
    seconds = utc ? timegm(&parts) : mktime(&parts);
    return parts.tm_mday == wanted->tm_mday && parts.tm_mon == wanted->tm_mon ? seconds : -1;
}

int moment_parse(const char *text, int64_t *unix_ms)
{
    struct tm parts = {0};
    const char *rest;
    int64_t seconds, fraction_ms, offset_s = 0;
    bool utc;

    if (text[0] == '@') {
        if (units_parse_integer(text + 1, 0, LATEST_S, &seconds) != 0) {
            return -1;
        }
        *unix_ms = seconds * SECOND_MS;
        return 0;
    }

    /* a T (RFC 3339) needs a time zone, a blank means local time */
    rest = strptime(text, "%Y-%m-%d", &parts);
    if (!rest || (*rest != 'T' && *rest != 't' && *rest != ' ')) {
        return -1;
    }
    utc = *rest != ' ';
    rest = strptime(rest + 1, "%H:%M", &parts);
    if (rest && *rest == ':') {
        rest = strptime(rest + 1, "%S", &parts);
    } else if (utc) {
        return -1;
    }
    if (!rest || parse_fraction(&rest, &fraction_ms) != 0) {
        return -1;
    }
    if (utc ? parse_zone(rest, &offset_s) != 0 : *rest != '\0') {
        return -1;
    }
    seconds = seconds_of(&parts, utc) - offset_s;
    if (seconds < 0) {
        return -1;
    }
    *unix_ms = seconds * SECOND_MS + fraction_ms;
    return 0;
}

bool moment_is_past(int64_t unix_ms, int64_t now_ms)
{
    enum { CLOCKS_DIFFER_MS = 60000 };

    return unix_ms > 0 && unix_ms < now_ms + CLOCKS_DIFFER_MS;
}

void moment_span(int64_t ms, char *text, size_t size)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}};
    size_t first = 0;
    int64_t rest;

    if (ms < SECOND_MS) {
        (void)snprintf(text, size, ms > 0 ? "%lldms" : "0s", (long long)ms);
        return;
    }
    while (ms < units[first].ms) {
        first++;
    }
    rest = first < 3 ? ms % units[first].ms / units[first + 1].ms : 0;
    if (rest > 0) {
        (void)snprintf(text, size, "%lld%s%lld%s", (long long)(ms / units[first].ms),
                       units[first].name, (long long)rest, units[first + 1].name);
    } else {
        (void)snprintf(text, size, "%lld%s", (long long)(ms / units[first].ms), units[first].name);
    }
}

void moment_relative(int64_t unix_ms, int64_t now_ms, char *text, size_t size)
{
    char span[MOMENT_SIZE];

    if (unix_ms > now_ms - SECOND_MS && unix_ms < now_ms + SECOND_MS) {
        (void)snprintf(text, size, unix_ms > now_ms ? "now" : "just now");
        return;
    }
    /* round to the nearest second, so that a task that is due in 5m does not show as 4m59s */
    if (unix_ms > now_ms) {
        unix_ms += SECOND_MS / 2;
    }
    moment_span(unix_ms < now_ms ? now_ms - unix_ms : unix_ms - now_ms, span, sizeof span);
    if (unix_ms < now_ms) {
        (void)snprintf(text, size, "%s ago", span);
    } else {
        (void)snprintf(text, size, "in %s", span);
    }
}

void moment_local(int64_t unix_ms, char *text, size_t size)
{
    time_t seconds = (time_t)(unix_ms / SECOND_MS);
    struct tm parts;

    if (!localtime_r(&seconds, &parts) ||
        strftime(text, size, "%Y-%m-%d %H:%M:%S %Z", &parts) == 0) {
        /* the year is out of range */
        (void)snprintf(text, size, "@%lld", (long long)seconds);
    }
}
