/* Parses how many ended tasks a queue keeps, or for how long. */
#include "config/types/history_rule.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "queue/shared/limits.h"

#define MINUTE_MS INT64_C(60000)
#define MOST_MS (INT64_C(3650) * 86400000)

int history_rule_parse(const char *text, int64_t *value)
{
    int64_t age_ms;

    if (strcmp(text, "none") == 0) {
        *value = 0;
        return 0;
    }
    if (units_parse_integer(text, 0, QUEUE_HISTORY_MOST, value) == 0) {
        return 0;
    }
    /* a number without a unit is no age */
    if (text[strspn(text, "0123456789")] == '\0' || units_parse_duration(text, &age_ms) != 0 ||
        age_ms < MINUTE_MS || age_ms > MOST_MS) {
        return -1;
    }
    *value = -age_ms;
    return 0;
}

void history_rule_format(int64_t value, char *text, size_t size)
{
    if (value < 0) {
        units_format_duration(-value, text, size);
    } else {
        (void)snprintf(text, size, "%lld", (long long)value);
    }
}
