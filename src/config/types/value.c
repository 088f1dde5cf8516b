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

/* Members are strings, lists of strings, or plain data; only the first two own memory. */
enum kind { PLAIN, STRING, LIST };

static enum kind kind_of(const struct table_row *row)
{
    static const enum kind kinds[] = {
        [TABLE_NAME] = STRING,    [TABLE_TEXT] = STRING,    [TABLE_PATH] = STRING,
        [TABLE_PATHS] = STRING,   [TABLE_FREE] = STRING,    [TABLE_RATE] = STRING,
        [TABLE_LIST] = LIST,      [TABLE_WORDS] = LIST,     [TABLE_LANES] = LIST,
        [TABLE_ADDRESSES] = LIST, [TABLE_KEY_FILES] = LIST, [TABLE_KEY_CREDENTIALS] = LIST,
        [TABLE_PROGRAM] = LIST,   [TABLE_ARGUMENTS] = LIST,
    };
    return kinds[row->type];
}

static int set_string(char **member, const struct table_row *row, const char *text,
                      struct buffer *why)
{
    if (strings_check(row->type, text, why) != 0) {
        return -1;
    }
    if (strings_replace(member, text) != 0) {
        why->failed = true;
        return -1;
    }
    return 0;
}

int value_set(struct config *config, const struct table_row *row, const char *name,
              const char *text, struct buffer *why)
{
    void *member = member_of(config, row);

    switch (row->type) {
    case TABLE_LIST:
        return strings_add_variable(member, text, why);
    case TABLE_WORDS:
        return strings_set_words(member, text, why);
    case TABLE_ADDRESSES:
        return addresses_set(member, text, why);
    case TABLE_LANES:
        return limits_add_lane(member, name, text, why);
    case TABLE_KEY_FILES:
    case TABLE_KEY_CREDENTIALS:
        return keys_set(member, text, row->type == TABLE_KEY_FILES, why);
    case TABLE_PROGRAM:
        return commands_set_program(member, name, text, why);
    case TABLE_ARGUMENTS:
        return commands_set_arguments(member, name, text, why);
    case TABLE_RATE:
        return limits_set_rate(member, text, why);
    case TABLE_RULE:
        return rules_set(member, row, text, why);
    case TABLE_EXITS:
        return rules_set_exits(member, row, name, text, why);
    case TABLE_SIGNALS:
        return rules_set_signal(member, row, name, text, why);
    default:
        return kind_of(row) == STRING ? set_string(member, row, text, why)
                                      : scalar_set(member, row, text, why);
    }
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

    if (kind_of(row) == LIST) {
        return lists_equal(*(char *const *const *)first, *(char *const *const *)second);
    }
    if (kind_of(row) == STRING) {
        return strings_equal(*(const char *const *)first, *(const char *const *)second);
    }
    return memcmp(first, second, row->size) == 0;
}

int value_copy(struct config *to, const struct config *from, const struct table_row *row)
{
    void *member = member_of(to, row);
    const void *source = const_member_of(from, row);

    if (kind_of(row) == LIST) {
        return strings_copy_list(member, *(char *const *const *)source);
    }
    if (kind_of(row) == STRING) {
        return strings_replace(member, *(const char *const *)source);
    }
    memcpy(member, source, row->size);
    return 0;
}

void value_free(struct config *config, const struct table_row *row)
{
    void *member = member_of(config, row);

    if (kind_of(row) == LIST) {
        strings_free_list(member);
    } else if (kind_of(row) == STRING) {
        strings_free(member);
    }
}
