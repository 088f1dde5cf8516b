#include <stdint.h>
#include <string.h>

#include "config/suggest.h"
#include "config/table.h"

enum { NAME_LONGEST = 32 };

/* The length of what all of the row's keys begin with: up to the point. 0: no such row. */
static size_t head_length(const struct table_row *row)
{
    bool pointed = row->type == TABLE_EXITS || row->type == TABLE_SIGNALS;

    return pointed ? strcspn(row->key.name, ".") + 1 : 0;
}

static bool is_named(const struct table_row *row, const char *name)
{
    size_t head = head_length(row);

    if (row->type == TABLE_LANES)
        return true;
    return head > 0 ? strncmp(row->key.name, name, head) == 0 : strcmp(row->key.name, name) == 0;
}

const struct table_row *table_find(const char *section, const char *name)
{
    for (size_t i = 0; i < TABLE_ROWS; i++)
        if (strcmp(table[i].key.section, section) == 0 && is_named(&table[i], name))
            return &table[i];
    return NULL;
}

bool table_is_open(const struct table_row *row)
{
    return row->type == TABLE_LIST || row->type == TABLE_LANES || head_length(row) > 0;
}

size_t table_index(const struct table_row *row)
{
    return (size_t)(row - table);
}

bool table_has_section(const char *section)
{
    for (size_t i = 0; i < TABLE_ROWS; i++)
        if (strcmp(table[i].key.section, section) == 0)
            return true;
    return false;
}

/* How bad a guess the row is for that name. Of names with a point only what is before it counts. */
static size_t badness_of(const struct table_row *row, const char *name)
{
    size_t head = head_length(row), given = strcspn(name, ".") + 1;
    char row_head[NAME_LONGEST], name_head[NAME_LONGEST];

    if (row->type == TABLE_LANES)
        return SIZE_MAX;
    if (head == 0 || name[given - 1] != '.' || given >= NAME_LONGEST)
        return suggest_badness(name, row->key.name);
    memcpy(row_head, row->key.name, head);
    memcpy(name_head, name, given);
    row_head[head] = name_head[given] = '\0';
    return suggest_badness(name_head, row_head);
}

const struct table_row *table_nearest(const char *section, const char *name)
{
    const struct table_row *nearest = NULL;
    size_t best = SIZE_MAX;

    /* among equals, that of one's own section */
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        bool own = strcmp(table[i].key.section, section) == 0;
        size_t badness = badness_of(&table[i], name);

        if (badness < best || (badness == best && own && nearest != NULL)) {
            best = badness;
            nearest = &table[i];
        }
    }
    return nearest;
}

const char *table_nearest_section(const char *section)
{
    const char *nearest = NULL;
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < TABLE_ROWS; i++) {
        size_t badness = suggest_badness(section, table[i].key.section);

        if (badness < best) {
            best = badness;
            nearest = table[i].key.section;
        }
    }
    return nearest;
}
