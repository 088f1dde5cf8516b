/* Parses, compares, copies and frees values by the type of their row. */
#include "config/types/value.h"

#include <string.h>

#include "config/types/addresses.h"
#include "config/types/commands.h"
#include "config/types/keys.h"
#include "config/types/limits.h"
#include "config/types/rules.h"
#include "config/types/scalar.h"
#include "config/types/strings.h"

static void *member_of(struct config *config, const struct table_row *row)
{
    return (char *)config + row->offset;
}

static const void *const_member_of(const struct config *config, const struct table_row *row)
{
    return (const char *)config + row->offset;
}

static bool is_list(const struct table_row *row)
{
    return row->type == TABLE_LIST || row->type == TABLE_WORDS || row->type == TABLE_LANES ||
           row->type == TABLE_ADDRESSES || row->type == TABLE_KEY_FILES ||
           row->type == TABLE_KEY_CREDENTIALS || row->type == TABLE_PROGRAM ||
           row->type == TABLE_ARGUMENTS;
}

/* Members are strings, lists of strings, or plain data; only the first two own memory. */
static bool is_string(const struct table_row *row)
{
    switch (row->type) {
    case TABLE_NAME:
    case TABLE_TEXT:
    case TABLE_PATH:
    case TABLE_PATHS:
    case TABLE_FREE:
    case TABLE_RATE:
        return true;
    case TABLE_DURATION:
    case TABLE_SIZE:
    case TABLE_PERCENT:
    case TABLE_INTEGER:
    case TABLE_MEMORY:
    case TABLE_MODE:
    case TABLE_NUMBER:
    case TABLE_BOOLEAN:
    case TABLE_CHOICE:
    case TABLE_SET:
    case TABLE_CODES:
    case TABLE_LIST:
    case TABLE_WORDS:
    case TABLE_ADDRESSES:
    case TABLE_LANES:
    case TABLE_RULE:
    case TABLE_EXITS:
    case TABLE_SIGNALS:
    case TABLE_KEY_FILES:
    case TABLE_KEY_CREDENTIALS:
    case TABLE_PROGRAM:
    case TABLE_ARGUMENTS:
        return false;
    }
    return false;
}

int value_set(struct config *config, const struct table_row *row, const char *name,
              const char *text, struct buffer *why)
{
    void *member = member_of(config, row);

    if (row->type == TABLE_LIST) {
        return strings_add_variable(member, text, why);
    }
    if (row->type == TABLE_WORDS) {
        return strings_set_words(member, text, why);
    }
    if (row->type == TABLE_ADDRESSES) {
        return addresses_set(member, text, why);
    }
    if (row->type == TABLE_LANES) {
        return limits_add_lane(member, name, text, why);
    }
    if (row->type == TABLE_KEY_FILES || row->type == TABLE_KEY_CREDENTIALS) {
        return keys_set(member, text, row->type == TABLE_KEY_FILES, why);
    }
    if (row->type == TABLE_PROGRAM) {
        return commands_set_program(member, name, text, why);
    }
    if (row->type == TABLE_ARGUMENTS) {
        return commands_set_arguments(member, name, text, why);
    }
    if (row->type == TABLE_RATE) {
        return limits_set_rate(member, text, why);
    }
    if (row->type == TABLE_RULE) {
        return rules_set(member, row, text, why);
    }
    if (row->type == TABLE_EXITS) {
        return rules_set_exits(member, row, name, text, why);
    }
    if (row->type == TABLE_SIGNALS) {
        return rules_set_signal(member, row, name, text, why);
    }
    if (!is_string(row)) {
        return scalar_set(member, row, text, why);
    }
    if (strings_check(row->type, text, why) != 0) {
        return -1;
    }
    if (strings_replace(member, text) != 0) {
        why->failed = true;
        return -1;
    }
    return 0;
}

static bool strings_equal(const char *a, const char *b)
{
    return !a || !b ? a == b : strcmp(a, b) == 0;
}

static bool lists_equal(char *const *a, char *const *b)
{
    if (!a || !b) {
        return a == b;
    }
    for (; *a && *b; a++, b++) {
        if (strcmp(*a, *b) != 0) {
            return false;
        }
    }
    return *a == *b;
}

bool value_equal(const struct config *a, const struct config *b, const struct table_row *row)
{
    const void *first = const_member_of(a, row), *second = const_member_of(b, row);

    if (is_list(row)) {
        return lists_equal(*(char *const *const *)first, *(char *const *const *)second);
    }
    if (is_string(row)) {
        return strings_equal(*(const char *const *)first, *(const char *const *)second);
    }
    return memcmp(first, second, row->size) == 0;
}

int value_copy(struct config *to, const struct config *from, const struct table_row *row)
{
    void *member = member_of(to, row);
    const void *source = const_member_of(from, row);

    if (is_list(row)) {
        return strings_copy_list(member, *(char *const *const *)source);
    }
    if (is_string(row)) {
        return strings_replace(member, *(const char *const *)source);
    }
    memcpy(member, source, row->size);
    return 0;
}

void value_free(struct config *config, const struct table_row *row)
{
    void *member = member_of(config, row);

    if (is_list(row)) {
        strings_free_list(member);
    } else if (is_string(row)) {
        strings_free(member);
    }
}
