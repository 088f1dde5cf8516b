/*
 * Ids of stream entries, parsed and compared.
 */
#include "queue/entry_id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DIGITS 20 /* of a number of 64 bits; Redis refuses texts that are much longer */

static bool parse_number(const char **text, uint64_t *number)
{
    size_t digits = strspn(*text, "0123456789");

    if (digits == 0 || digits > MOST_DIGITS) {
        return false;
    }
    errno = 0;
    *number = strtoull(*text, NULL, 10);
    *text += digits;
    return errno == 0;
}

bool entry_parse(const char *text, struct entry_id *id)
{
    if (!parse_number(&text, &id->ms) || *text++ != '-') {
        return false;
    }
    return parse_number(&text, &id->number) && *text == '\0';
}

/* From so many digits before the hyphen on, the text is no label (TID_FORM in names.lua). */
#define TIME_DIGITS 13

bool entry_is_task(const char *text)
{
    static const char digits[] = "0123456789";
    size_t first = strspn(text, digits);
    size_t second = text[first] == '-' ? strspn(text + first + 1, digits) : 0;

    return first > 0 && second > 0 && text[first + 1 + second] == '\0';
}

bool entry_may_be_label(const char *text)
{
    return !entry_is_task(text) || strcspn(text, "-") < TIME_DIGITS;
}

int entry_compare(const struct entry_id *a, const struct entry_id *b)
{
    if (a->ms != b->ms) {
        return a->ms < b->ms ? -1 : 1;
    }
    return (a->number > b->number) - (a->number < b->number);
}

bool entry_before(const char *id, char *before, size_t size)
{
    struct entry_id at;

    if (!entry_parse(id, &at) || (at.ms == 0 && at.number == 0)) {
        return false;
    }
    if (at.number-- == 0) {
        at.ms--;
    }
    return snprintf(before, size, "%llu-%llu", (unsigned long long)at.ms,
                    (unsigned long long)at.number) < (int)size;
}
