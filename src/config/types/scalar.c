/* Parses numbers, words and sets of exit codes. */
#include "config/types/scalar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "config/suggest.h"
#include "config/types/history_rule.h"
#include "config/types/strings.h"

enum { CODE_HIGH = 255, DAY_MS = 86400000 };

/* Stores a number in a member of any width. */
static void store(void *member, const struct table_row *row, int64_t value)
{
    int narrow = (int)value;
    bool flag = value != 0;

    if (row->size == sizeof flag) {
        memcpy(member, &flag, sizeof flag);
    } else if (row->size == sizeof narrow) {
        memcpy(member, &narrow, sizeof narrow);
    } else {
        memcpy(member, &value, sizeof value);
    }
}

static bool find_word(const struct table_word *words, const char *text, int64_t *value)
{
    for (; words && words->word; words++) {
        if (strcmp(words->word, text) != 0) {
            continue;
        }
        *value = words->value;
        return true;
    }
    return false;
}

/* Lists the valid words, and suggests the one that was probably meant. */
static int say_words(const struct table_word *words, const char *text, struct buffer *why)
{
    struct suggestion best = SUGGESTION_NONE;

    (void)strings_refuse(why, text, "is not one of ");
    for (size_t i = 0; words[i].word; i++) {
        const char *separator = i == 0 ? "" : !words[i + 1].word ? " and " : ", ";

        /* a failure sets why->failed, which the caller checks */
        (void)buffer_printf(why, "%s%s", separator, words[i].word);
        suggest_offer(&best, text, words[i].word);
    }
    suggest_append(&best, why);
    return -1;
}

void scalar_format_limit(const struct table_row *row, int64_t limit, char *text, size_t size)
{
    static const char letters[] = "KMGT";
    char unit[2] = "";

    if (row->type == TABLE_DURATION && limit >= DAY_MS && limit % DAY_MS == 0) {
        (void)snprintf(text, size, "%lldd", (long long)(limit / DAY_MS));
        return;
    }
    if (row->type == TABLE_DURATION) {
        units_format_duration(limit, text, size);
        return;
    }
    bool is_size = row->type == TABLE_SIZE || row->type == TABLE_MEMORY;
    for (size_t i = 0; is_size && letters[i] != '\0' && limit >= 1024 && limit % 1024 == 0; i++) {
        limit /= 1024;
        unit[0] = letters[i];
    }
    /* any number fits into 48 bytes */
    if (row->type == TABLE_PERCENT) {
        unit[0] = '%';
    }
    (void)snprintf(text, size, row->type == TABLE_MODE ? "%03llo%s" : "%lld%s",
                   (unsigned long long)limit, unit);
}

/* Says which values there are. */
static int refuse_value(const struct table_row *row, const char *text, const char *fault,
                        struct buffer *why)
{
    char low[48], high[48];

    scalar_format_limit(row, row->low, low, sizeof low);
    scalar_format_limit(row, row->high, high, sizeof high);
    (void)strings_refuse(why, text, fault);
    (void)buffer_printf(why, "; use %s to %s", low, high);
    for (const struct table_word *word = row->words; word && word->word; word++) {
        (void)buffer_printf(why, ", or %s",
                            word->word); /* a failure sets why->failed, which the caller checks */
    }
    return -1;
}

static int out_of_range(const struct table_row *row, const char *text, struct buffer *why)
{
    return refuse_value(row, text, "is out of range", why);
}

static int parse_mode(const char *text, int64_t *value)
{
    if (*text == '\0' || strlen(text) > 9 || strspn(text, "01234567") != strlen(text)) {
        return -1;
    }
    *value = strtol(text, NULL, 8);
    return 0;
}

static int parse_whole(const char *text, int64_t *value)
{
    return units_parse_integer(text, INT64_MIN + 1, INT64_MAX, value);
}

/* The forms of whole numbers. */
static const struct {
    int (*parse)(const char *text, int64_t *value);
    const char *fault;
} wholes[] = {
    [TABLE_DURATION] = {units_parse_duration,
                        "is not a duration; write it like 250ms, 30s, 5m or 1h30m"},
    [TABLE_SIZE] = {units_parse_size, "is not a size; write it like 512, 64K or 10M"},
    [TABLE_INTEGER] = {parse_whole, "is not a whole number"},
    [TABLE_MEMORY] = {units_parse_size, "is not a size or a percentage; write it like 512M or 5%"},
    [TABLE_PERCENT] = {units_parse_percent, "is not a percentage; write it like 50%"},
    [TABLE_MODE] = {parse_mode, "is not an octal mode; write it like 022"},
};

static int set_whole(void *member, const struct table_row *row, const char *text,
                     struct buffer *why)
{
    int64_t value;

    if (find_word(row->words, text, &value)) {
        store(member, row, value);
        return 0;
    }
    if (row->type == TABLE_MEMORY && units_parse_percent(text, &value) == 0) {
        if (value < 1 || value > 99) {
            return strings_refuse(why, text, "is not a percentage from 1% to 99%");
        }
        store(member, row, -value);
        return 0;
    }
    int wrong = wholes[row->type].parse(text, &value);
    if (wrong == UNITS_TOO_LARGE) {
        return out_of_range(row, text, why);
    }
    if (wrong != 0) {
        if (row->type == TABLE_INTEGER) {
            return refuse_value(row, text, wholes[row->type].fault, why);
        }
        return strings_refuse(why, text, wholes[row->type].fault);
    }
    if (value < row->low || value > row->high) {
        return out_of_range(row, text, why);
    }
    if (row->scale > 1 && value % row->scale != 0) {
        return strings_refuse(why, text, "is not a whole number of seconds");
    }
    store(member, row, row->scale > 1 ? value / row->scale : value);
    return 0;
}

static int set_number(void *member, const struct table_row *row, const char *text,
                      struct buffer *why)
{
    char *end;
    double value = strtod(text, &end);

    /* strtod also accepts hexadecimal, "inf" and "nan" */
    if (strspn(text, "0123456789.") != strlen(text) || end == text || *end != '\0') {
        return strings_refuse(why, text, "is not a number; write it like 2 or 1.5");
    }
    if (!(value >= (double)row->low && value <= (double)row->high)) {
        return out_of_range(row, text, why);
    }
    memcpy(member, &value, sizeof value);
    return 0;
}

static int set_boolean(void *member, const struct table_row *row, const char *text,
                       struct buffer *why)
{
    static const struct table_word words[] = {
        {"yes", 1}, {"no", 0}, {"true", 1}, {"false", 0}, {"on", 1},
        {"off", 0}, {"1", 1},  {"0", 0},    {NULL, 0},
    };
    int64_t value;

    if (!find_word(words, text, &value)) {
        return strings_refuse(why, text, "is not yes or no");
    }
    store(member, row, value);
    return 0;
}

static int set_choice(void *member, const struct table_row *row, const char *text,
                      struct buffer *why)
{
    int64_t value;

    if (!find_word(row->words, text, &value)) {
        return say_words(row->words, text, why);
    }
    store(member, row, value);
    return 0;
}

/* The values of the words are bits. */
static int set_words(void *member, const struct table_row *row, const char *text,
                     struct buffer *why)
{
    char *copy, *rest, *part;
    int64_t value, all = 0;
    int result = 0;

    copy = rest = strdup(text);
    if (!copy) {
        why->failed = true;
        return -1;
    }
    while (result == 0 && (part = strsep(&rest, ", \t"))) {
        if (*part == '\0') {
            continue;
        }
        if (find_word(row->words, part, &value)) {
            all |= value;
        } else {
            result = say_words(row->words, part, why);
        }
    }
    free(copy);
    if (result == 0 && all == 0) {
        result = say_words(row->words, text, why);
    }
    if (result == 0) {
        store(member, row, all);
    }
    return result;
}

/* Adds "LOW" or "LOW-HIGH" to the set. */
static int add_range(struct config_codes *codes, char *text)
{
    char *dash = strchr(text, '-');
    int64_t low, high;

    if (dash) {
        *dash = '\0';
    }
    if (units_parse_integer(text, 0, CODE_HIGH, &low) != 0) {
        return -1;
    }
    high = low;
    if (dash && units_parse_integer(dash + 1, low, CODE_HIGH, &high) != 0) {
        return -1;
    }
    for (int64_t code = low; code <= high; code++) {
        codes->bits[code / 64] |= UINT64_C(1) << (code % 64);
    }
    return 0;
}

static int set_codes(void *member, const char *text, struct buffer *why)
{
    struct config_codes codes = {0};
    char *copy, *rest, *part;
    int result = 0;

    copy = rest = strdup(text);
    if (!copy) {
        why->failed = true;
        return -1;
    }

    /* commas, white space or both separate the parts */
    while (strcmp(text, "none") != 0 && (part = strsep(&rest, ", \t")) && result == 0) {
        if (*part != '\0') {
            result = add_range(&codes, part);
        }
    }
    free(copy);
    if (result != 0 || text[strspn(text, ", \t")] == '\0') {
        return strings_refuse(
            why, text, "is not a list of exit codes from 0 to 255; write it like 64-78, 100");
    }
    memcpy(member, &codes, sizeof codes);
    return 0;
}

static int set_history(void *member, const struct table_row *row, const char *text,
                       struct buffer *why)
{
    int64_t value;

    if (history_rule_parse(text, &value) != 0) {
        (void)strings_refuse(why, text, "is not allowed; use " HISTORY_RULE_FORMS);
        return -1;
    }
    store(member, row, value);
    return 0;
}

int scalar_set(void *member, const struct table_row *row, const char *text, struct buffer *why)
{
    switch (row->type) {
    case TABLE_NUMBER:
        return set_number(member, row, text, why);
    case TABLE_BOOLEAN:
        return set_boolean(member, row, text, why);
    case TABLE_CHOICE:
        return set_choice(member, row, text, why);
    case TABLE_SET:
        return set_words(member, row, text, why);
    case TABLE_CODES:
        return set_codes(member, text, why);
    case TABLE_HISTORY:
        return set_history(member, row, text, why);
    default:
        return set_whole(member, row, text, why);
    }
}

bool config_codes_has(const struct config_codes *codes, int code)
{
    return code >= 0 && code < CONFIG_CODES &&
           (codes->bits[code / 64] & (UINT64_C(1) << (code % 64))) != 0;
}
