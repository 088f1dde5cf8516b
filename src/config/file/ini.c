/* Reads an INI file with inih, after checking each line. */
#include "config/file/ini.h"

#include <ctype.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "config/types/commands.h"
#include "config/types/rules.h"
#include "config/types/value.h"

enum {
    LINE_MAX_BYTES = 8192,
    SHOWN_MAX = 64, /* bytes of a name in a message */
};

/* Debian builds inih with its options as variables, so longer lines can be allowed. Elsewhere they
 * are constants, and lines that are too long for inih are errors.
 * NOLINTBEGIN(readability-redundant-declaration): the header may lack them */
extern bool ini_use_stack __attribute__((weak));
extern int ini_max_line __attribute__((weak));
extern int ini_initial_alloc __attribute__((weak));
/* NOLINTEND(readability-redundant-declaration) */

struct reader {
    struct config *config;
    struct report *report;
    struct key_lines *lines;
    const char *text;
    size_t size;
    size_t position;
    size_t line;     /* number of the current line */
    const char *raw; /* the current line, without its line end */
    size_t length;
    bool section_known;
    struct buffer why;
};

static void allow_long_lines(void)
{
    if (!&ini_use_stack || !&ini_max_line || !&ini_initial_alloc) {
        return;
    }
    ini_use_stack = false;
    ini_max_line = LINE_MAX_BYTES;
    ini_initial_alloc = LINE_MAX_BYTES;
}

/* ---- looking at a line as inih will ---- */

static bool is_blank(char letter)
{
    return isspace((unsigned char)letter) != 0;
}

/* Returns the position at which inih sees one of these characters or an inline comment (the white
 * space before a semicolon), or length. */
static size_t find_or_comment(const char *line, size_t length, const char *characters)
{
    for (size_t i = 0; i < length; i++) {
        if (strchr(characters, line[i])) {
            return i;
        }
        if (i + 1 < length && is_blank(line[i]) && line[i + 1] == ';') {
            return i;
        }
    }
    return length;
}

static bool has_comment(const char *line, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++) {
        if (is_blank(line[i]) && line[i + 1] == ';') {
            return true;
        }
    }
    return false;
}

/* Escapes a name from the file for a message; a long one is cut, which is enough to find it there.
 * Returns text. */
static const char *shown(const char *data, size_t size, char text[SHOWN_MAX])
{
    escape_copy((struct bytes){data, size}, text, SHOWN_MAX);
    return text;
}

/* Checks NAME of a section like [command.NAME], since inih cuts long names. */
static void check_section_name(struct reader *reader, const char *section)
{
    const char *name = table_section_name(section);

    if (name && !commands_is_name(name)) {
        report_add(reader->report, reader->line,
                   "[%s]: invalid name; use 1 to %d of the characters A-Z a-z 0-9 _ . : @ -",
                   section, COMMANDS_NAME_MOST);
    }
}

/* Returns true if inih can read the section line. */
static bool check_section(struct reader *reader, const char *line, size_t length)
{
    size_t end = find_or_comment(line, length, "]");
    char name[SHOWN_MAX];
    const char *nearest;

    reader->section_known = false;
    if (end >= length || line[end] != ']') {
        report_add(reader->report, reader->line,
                   "missing ] after the name of the section; write [%s]",
                   shown(line + 1, end - 1, name));
        return false;
    }
    for (size_t i = end + 1; i < length; i++) {
        if (is_blank(line[i])) {
            continue;
        }
        if (is_blank(line[i - 1]) && (line[i] == ';' || line[i] == '#')) {
            break;
        }
        report_add(reader->report, reader->line,
                   "unexpected text after the name of the section; put it on a line of its own");
        return false;
    }

    /* in an unknown section only the section is reported, not each of its keys */
    shown(line + 1, end - 1, name);
    reader->section_known = table_has_section(name);
    if (reader->section_known) {
        check_section_name(reader, name);
        return true;
    }
    nearest = table_nearest_section(name);
    report_add(reader->report, reader->line, "[%s]: unknown section%s%s%s", name,
               nearest ? "; did you mean [" : "; see leat.ini(5)", nearest ? nearest : "",
               nearest ? "]?" : "");
    return true;
}

static bool check_pair(struct reader *reader, const char *line, size_t length)
{
    size_t separator = find_or_comment(line, length, "=:");
    size_t end = separator;
    char name[SHOWN_MAX];

    if (separator >= length || (line[separator] != '=' && line[separator] != ':')) {
        report_add(reader->report, reader->line,
                   "\"%s\" is neither KEY = VALUE nor [SECTION]; a comment begins with ;",
                   shown(line, length, name));
        return false;
    }
    while (end > 0 && is_blank(line[end - 1])) {
        end--;
    }
    if (end == 0) {
        report_add(reader->report, reader->line, "missing key; write KEY = VALUE");
        return false;
    }
    return true;
}

/* Returns the first control character that is not allowed, or -1. */
static int find_control(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)line[i];

        if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
            return byte;
        }
    }
    return -1;
}

/* Returns true if inih may read the current line; otherwise reports the error. */
static bool check_line(struct reader *reader, size_t longest)
{
    const char *line = reader->raw;
    size_t length = reader->length;
    int control = find_control(line, length);

    if (control >= 0) {
        report_add(reader->report, reader->line, "unexpected control character 0x%02x; remove it",
                   (unsigned int)control);
        return false;
    }
    if (length > longest) {
        report_add(reader->report, reader->line,
                   "the line has %zu bytes, at most %zu are allowed; shorten it", length, longest);
        return false;
    }
    if (reader->line == 1 && length >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
        line += 3;
        length -= 3;
    }

    /* comments may be indented; inih takes any other indented line as a continuation of the value
     * above */
    size_t indent = 0;
    while (indent < length && is_blank(line[indent])) {
        indent++;
    }
    if (indent == length || line[indent] == ';' || line[indent] == '#') {
        return true;
    }
    if (indent > 0) {
        report_add(reader->report, reader->line,
                   "unexpected white space before the line, since no value continues on the next "
                   "line; begin in the first column");
        return false;
    }
    while (is_blank(line[length - 1])) {
        length--;
    }
    return *line == '[' ? check_section(reader, line, length) : check_pair(reader, line, length);
}

/* ---- what inih calls ---- */

/* Gives inih the next line, or an empty line instead of an invalid one. */
static char *read_line(char *line, int size, void *stream)
{
    struct reader *reader = stream;
    size_t room = (size_t)size, rest = reader->size - reader->position;
    const char *end;

    /* the last line may have contained a password, and inih does not wipe its memory */
    if (rest == 0) {
        explicit_bzero(line, room);
        return NULL;
    }
    reader->raw = reader->text + reader->position;
    end = memchr(reader->raw, '\n', rest);
    reader->length = end ? (size_t)(end - reader->raw) : rest;
    reader->position += reader->length + (end ? 1 : 0);
    reader->line++;
    if (reader->length > 0 && reader->raw[reader->length - 1] == '\r') {
        reader->length--;
    }

    /* room for a line end and a NUL */
    if (!check_line(reader, room - 3)) {
        reader->length = 0;
    }
    memcpy(line, reader->raw, reader->length);
    memcpy(line + reader->length, "\n", 2);
    return line;
}

static void unknown_key(struct reader *reader, const char *section, const char *name)
{
    const struct table_row *nearest = table_nearest(section, name);
    const char *refusal = strcmp(section, "retry") == 0 ? rules_refusal(name) : NULL;
    char text[SHOWN_MAX];

    shown(name, strlen(name), text);
    if (refusal) {
        report_add(reader->report, reader->line,
                   "%s: there is no rule for this cause: %s; remove it", text, refusal);
    } else if (!nearest) {
        report_add(reader->report, reader->line, "%s: unknown key in [%s]; see leat.ini(5)", text,
                   section);
    } else if (strcmp(nearest->key.name, name) == 0) {
        report_add(reader->report, reader->line, "%s: not a key of [%s]; move it to [%s]", text,
                   section, nearest->key.section);
    } else if (table_is_section(nearest->key.section, section)) {
        report_add(reader->report, reader->line, "%s: unknown key in [%s]; did you mean %s?", text,
                   section, nearest->key.name);
    } else {
        report_add(reader->report, reader->line,
                   "%s: unknown key in [%s]; did you mean %s in [%s]?", text, section,
                   nearest->key.name, nearest->key.section);
    }
}

/* Reports a key above the first section, with the section that it belongs to if it has that name.
 */
static void key_without_section(struct reader *reader, const char *name)
{
    const struct table_row *nearest = table_nearest("", name);
    char text[SHOWN_MAX];

    (void)shown(name, strlen(name), text);
    if (nearest && strcmp(nearest->key.name, name) == 0) {
        report_add(reader->report, reader->line, "%s: comes before any section; put it under [%s]",
                   text, nearest->key.section);
    } else {
        report_add(reader->report, reader->line,
                   "%s: comes before any section; put a line such as [queue] above it", text);
    }
}

/* Returns true if the key may be read; otherwise reports the error. */
static bool check_key(struct reader *reader, const struct table_row *row, const char *name,
                      const char *value)
{
    size_t *place = &reader->lines->keys[table_index(row)];
    size_t separator = find_or_comment(reader->raw, reader->length, "=:");
    bool free_text =
        row->type == TABLE_FREE || row->type == TABLE_LIST || row->type == TABLE_ARGUMENTS;

    if (*place != 0 && !table_is_open(row)) {
        report_add(reader->report, reader->line,
                   "%s: already set on line %zu; remove one of the two lines", name, *place);
        return false;
    }
    *place = reader->line;

    /* inih would cut the value there, and leat would run half of a command */
    if (free_text && has_comment(reader->raw + separator, reader->length - separator)) {
        report_add(reader->report, reader->line,
                   "%s: white space and ; begin a comment, which would cut the value; remove the "
                   "white space, or put the comment on a line of its own",
                   name);
        return false;
    }
    if (*value == '\0') {
        report_add(reader->report, reader->line, "%s: no value; set one, or remove the line%s%s",
                   name, *row->key.default_value != '\0' ? " for the default " : "",
                   row->key.default_value);
        return false;
    }
    return true;
}

static int take_value(void *user, const char *section, const char *name, const char *value)
{
    struct reader *reader = user;
    const struct table_row *row;
    const char *any_name;
    char text[SHOWN_MAX];

    /* some builds of inih call this for new sections, and for keys without a value */
    if (!name || !value) {
        return 1;
    }
    row = table_find(section, name);
    if (*section == '\0') {
        key_without_section(reader, name);
        return 1;
    }
    if (!reader->section_known) {
        return 1;
    }
    if (!row) {
        unknown_key(reader, section, name);
        return 1;
    }
    shown(name, strlen(name), text);
    if (!check_key(reader, row, text, value)) {
        return 1;
    }
    buffer_clear(&reader->why);
    any_name = table_section_name(section);
    if (value_set(reader->config, row, any_name ? any_name : name, value, &reader->why) != 0) {
        report_reason(reader->report, reader->line, text, &reader->why);
    }
    return 1;
}

int ini_read(struct config *config, const char *text, size_t size, struct report *report,
             struct key_lines *lines)
{
    struct reader reader = {
        .config = config,
        .report = report,
        .lines = lines,
        .text = text,
        .size = size,
    };
    int result;

    allow_long_lines();
    result = ini_parse_stream(read_line, &reader, take_value, &reader);
    lines->last_line = reader.line;
    buffer_free(&reader.why);

    /* inih saw only lines that were checked, so its only possible error is a lack of memory */
    if (result > 0 && report->count == 0) {
        report_add(report, (size_t)result, "inih cannot read this line");
    }
    return result == -2 ? -1 : 0;
}
