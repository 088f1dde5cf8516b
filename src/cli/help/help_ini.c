/*
 * leat help ini: explains keys of the configuration from their table.
 */
#include <stdio.h>
#include <string.h>

#include "cli/help/help.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "config/table.h"
#include "config/types/scalar.h"

enum { WORD_SIZE = 128 };

/* The operands of leat help ini. */
struct question {
    char section[WORD_SIZE]; /* "": any section */
    char key[WORD_SIZE];     /* "": all keys of the section */
};

/* Splits "[SECTION] KEY", "SECTION KEY" or one word. Too long text is cut: no key is that long. */
static void parse(int count, char *const *words, struct question *question)
{
    const char *first = words[0], *rest = count > 1 ? words[1] : "";
    size_t length = strlen(first);

    *question = (struct question){0};
    if (first[0] == '[') {
        first++;
        length = strcspn(first, "]");
        if (first[length] == ']' && !*rest) {
            rest = first + length + 1 + strspn(first + length + 1, " .");
        }
    } else if (!*rest) {
        rest = first;
        length = 0;
    }
    (void)snprintf(question->section, WORD_SIZE, "%.*s", (int)length, first);
    (void)snprintf(question->key, WORD_SIZE, "%s", rest);
}

/* ---- finding rows */

/* True for "SECTION.KEY". Both parts may contain dots themselves. */
static bool is_dotted(const struct table_row *row, const char *text)
{
    char section[WORD_SIZE];

    for (const char *dot = strchr(text, '.'); dot; dot = strchr(dot + 1, '.')) {
        (void)snprintf(section, sizeof section, "%.*s", (int)(dot - text), text);
        if (table_find(section, dot + 1) == row) {
            return true;
        }
    }
    return false;
}

static bool is_meant(const struct table_row *row, const struct question *question)
{
    if (*question->section) {
        return table_is_section(row->key.section, question->section) &&
               (!*question->key || table_find(question->section, question->key) == row);
    }
    /* any word could be the name of a lane */
    if (row->type == TABLE_LANES && strcmp(question->key, row->key.name) != 0) {
        return is_dotted(row, question->key);
    }
    return table_find(row->key.section, question->key) == row || is_dotted(row, question->key);
}

/* ---- telling */

/* Formats the line on the range, or "" if the type has none. A number may be given in a second
 * form, whose range is the same for all keys of the type. */
static void describe_range(const struct table_row *row, char *text, size_t size)
{
    char low[48], high[48];

    *text = '\0';
    if (row->low < row->high) {
        scalar_format_limit(row, row->low, low, sizeof low);
        scalar_format_limit(row, row->high, high, sizeof high);
        (void)snprintf(text, size, "  Range: %s to %s%s\n", low, high,
                       row->type == TABLE_MEMORY    ? ", or 1% to 99%"
                       : row->type == TABLE_HISTORY ? ", or 1m to 3650d"
                                                    : "");
    }
}

static int describe(const struct table_row *row)
{
    const struct config_key *key = &row->key;
    const char *value = key->default_value;
    char range[128];

    describe_range(row, range, sizeof range);
    return output_printf("[%s] %s\n  %s\n  Type: %s\n%s  Default: %s\n  Reload: %s\n", key->section,
                         key->name, key->help, key->type, range, *value ? value : "(none)",
                         key->reloadable        ? "yes"
                         : table_is_shared(row) ? "no; leat conf changes the queue's value"
                                                : "no");
}

static int describe_all(const struct question *question)
{
    size_t found = 0;

    for (size_t i = 0; i < TABLE_ROWS; i++) {
        if (!is_meant(&table[i], question)) {
            continue;
        }
        if (found++ > 0) {
            (void)putchar('\n');
        }
        if (describe(&table[i]) != EX_OK) {
            return EX_OSERR;
        }
    }
    if (found > 0) {
        (void)puts("\nSee leat.ini(5).");
    }
    return found > 0 ? EX_OK : EX_USAGE;
}

static int list_keys(const struct question *question)
{
    static const struct table_column columns[] = {{.title = "KEY"},
                                                  {.title = "MEANING", .flexible = true}};
    struct table keys = {.columns = columns, .column_count = sizeof columns / sizeof *columns};
    struct output output = output_look();
    struct buffer text = BUFFER_INIT;
    int status;

    for (size_t i = 0; i < TABLE_ROWS; i++) {
        const struct config_key *key = &table[i].key;

        if (question && !is_meant(&table[i], question)) {
            continue;
        }
        table_printf(&keys, "%s.%s", key->section, key->name);
        table_printf(&keys, "%s", key->help);
    }
    /* without memory the buffer is marked */
    text.failed |= table_render(&keys, &text, 0, output.width, output.color) != 0;
    status = output_write(&text);
    buffer_free(&text);
    table_free(&keys);
    return status;
}

/* ---- errors */

static void unknown_section(const char *section)
{
    const char *meant = table_nearest_section(section);

    cli_error("unknown section: [%s];%s%s%s leat help ini lists all keys", section,
              meant ? " did you mean [" : "", meant ? meant : "", meant ? "]?" : "");
}

/* The nearest key to a section and a key, or to the two parts of "SECTION.KEY". */
static const struct table_row *nearest(const struct question *question)
{
    const char *dot = strrchr(question->key, '.');
    char section[WORD_SIZE];

    if (*question->section || !dot) {
        return table_nearest(question->section, question->key);
    }
    (void)snprintf(section, sizeof section, "%.*s", (int)(dot - question->key), question->key);
    return table_nearest(section, dot + 1);
}

static void unknown_key(const struct question *question)
{
    const struct table_row *meant = nearest(question);

    cli_error("unknown key: %s%s%s;%s%s%s%s%s leat help ini lists all keys", question->section,
              *question->section ? "." : "", question->key, meant ? " did you mean " : "",
              meant ? meant->key.section : "", meant ? "." : "", meant ? meant->key.name : "",
              meant ? "?" : "");
}

int help_ini(int count, char *const *words)
{
    struct question question;
    int status;

    if (count == 0) {
        return list_keys(NULL);
    }
    if (count > 2) {
        cli_error("unexpected argument: %s; see leat help ini", words[2]);
        return EX_USAGE;
    }
    parse(count, words, &question);
    if (*question.section && !table_has_section(question.section)) {
        unknown_section(question.section);
        return EX_USAGE;
    }
    status = *question.key ? describe_all(&question) : EX_USAGE;
    if (status != EX_USAGE) {
        return status;
    }
    /* a single word may also be a section */
    if (!*question.section && table_has_section(question.key)) {
        memcpy(question.section, question.key, WORD_SIZE);
        *question.key = '\0';
    }
    if (*question.section && !*question.key) {
        return list_keys(&question);
    }
    unknown_key(&question);
    return EX_USAGE;
}
