/* Finds rows of the table, and the row that was probably meant. */
#include <stdint.h>
#include <string.h>

#include "config/suggest.h"
#include "config/table.h"

enum { NAME_LONGEST = 32 };

/* For rows like exit.CODE, the length of the key up to the dot, inclusive; 0 for other rows. */
static size_t head_length(const struct table_row *row)
{
    bool pointed = row->type == TABLE_EXITS || row->type == TABLE_SIGNALS;

    return pointed ? strcspn(row->key.name, ".") + 1 : 0;
}

static bool is_named(const struct table_row *row, const char *name)
{
    size_t head = head_length(row);

    if (row->type == TABLE_LANES) {
        return true;
    }
    return head > 0 ? strncmp(row->key.name, name, head) == 0 : strcmp(row->key.name, name) == 0;
}

/* The end of the names of sections that a file may have with any NAME. */
#define ANY_NAME ".NAME"

/* For sections like [command.NAME], the length up to the dot, inclusive; 0 for others. */
static size_t common_length(const char *known)
{
    size_t length = strlen(known), end = sizeof(ANY_NAME) - 1;

    return length > end && strcmp(known + length - end, ANY_NAME) == 0 ? length - end + 1 : 0;
}

bool table_is_section(const char *known, const char *section)
{
    size_t common = common_length(known);

    return common > 0 ? strncmp(known, section, common) == 0 : strcmp(known, section) == 0;
}

const char *table_section_name(const char *section)
{
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        size_t common = common_length(table[i].key.section);

        if (common > 0 && table_is_section(table[i].key.section, section)) {
            return section + common;
        }
    }
    return NULL;
}

const struct table_row *table_find(const char *section, const char *name)
{
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        if (table_is_section(table[i].key.section, section) && is_named(&table[i], name)) {
            return &table[i];
        }
    }
    return NULL;
}

bool table_is_shared(const struct table_row *row)
{
    static const char *const shared[][2] = {
        {"queue", "lease"},       {"queue", "max_length"}, {"queue", "max_task"},
        {"queue", "max_crashes"}, {"limits", "rate"},      {"limits", "burst"},
        {"dead", "keep"},         {"dead", "keep_number"}, {"lanes", "only"},
        {"lanes", "NAME"},        {"queue", "history"},
    };

    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        if (strcmp(row->key.section, shared[i][0]) == 0 &&
            strcmp(row->key.name, shared[i][1]) == 0) {
            return true;
        }
    }
    return false;
}

bool table_is_open(const struct table_row *row)
{
    return row->type == TABLE_LIST || row->type == TABLE_LANES || head_length(row) > 0 ||
           common_length(row->key.section) > 0;
}

size_t table_index(const struct table_row *row)
{
    return (size_t)(row - table);
}

bool table_has_section(const char *section)
{
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        if (table_is_section(table[i].key.section, section)) {
            return true;
        }
    }
    return false;
}

/* How unlikely it is that the row was meant by that name. For names with a dot, only the part
 * before it is compared. */
static size_t badness_of(const struct table_row *row, const char *name)
{
    size_t head = head_length(row), given = strcspn(name, ".") + 1;
    char row_head[NAME_LONGEST], name_head[NAME_LONGEST];

    if (row->type == TABLE_LANES) {
        return SIZE_MAX;
    }
    if (head == 0 || name[given - 1] != '.' || given >= NAME_LONGEST) {
        return suggest_badness(name, row->key.name);
    }
    memcpy(row_head, row->key.name, head);
    memcpy(name_head, name, given);
    row_head[head] = name_head[given] = '\0';
    return suggest_badness(name_head, row_head);
}

const struct table_row *table_nearest(const char *section, const char *name)
{
    const struct table_row *nearest = NULL;
    size_t best = SIZE_MAX;

    /* among equals, prefer a key of the same section */
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        bool own = table_is_section(table[i].key.section, section);
        size_t badness = badness_of(&table[i], name);

        if (badness < best || (badness == best && own && nearest)) {
            best = badness;
            nearest = &table[i];
        }
    }
    return nearest;
}

/* For sections like [command.NAME], only the part before the dot is compared. */
static size_t section_badness(const char *section, const char *known)
{
    size_t common = common_length(known), length = strcspn(section, ".");
    char given[NAME_LONGEST], kind[NAME_LONGEST];

    if (common == 0 || common > NAME_LONGEST || length >= NAME_LONGEST) {
        return suggest_badness(section, known);
    }
    memcpy(given, section, length);
    given[length] = '\0';
    memcpy(kind, known, common - 1);
    kind[common - 1] = '\0';
    return suggest_badness(given, kind);
}

const char *table_nearest_section(const char *section)
{
    const char *nearest = NULL;
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < TABLE_ROWS; i++) {
        size_t badness = section_badness(section, table[i].key.section);

        if (badness < best) {
            best = badness;
            nearest = table[i].key.section;
        }
    }
    return nearest;
}

const struct config_key *config_key_at(size_t index)
{
    return index < TABLE_ROWS ? &table[index].key : NULL;
}
