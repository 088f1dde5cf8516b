/* Values that are text, and lists of text. */
#include "config/types/strings.h"

#include <stdlib.h>
#include <string.h>

#include "base/escape.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

enum { NAME_LONGEST = 100 };

int strings_refuse(struct buffer *why, const char *text, const char *reason)
{
    /* a failure sets why->failed, which the caller checks */
    (void)buffer_append_text(why, "\"");
    (void)escape_append(why, text, strlen(text));
    (void)buffer_append_text(why, "\" ");
    (void)buffer_append_text(why, reason);
    return -1;
}

static bool is_name(const char *text)
{
    size_t length = strlen(text);

    return length >= 1 && length <= NAME_LONGEST && strspn(text, LETTERS DIGITS "_.:@-") == length;
}

static bool is_quoted(const char *text)
{
    size_t length = strlen(text);

    return length >= 2 && (*text == '"' || *text == '\'') && text[length - 1] == *text;
}

/* Each path must be absolute: with an empty or relative one, tasks would depend on their working
 * directory. */
static bool are_paths(const char *text)
{
    for (const char *part = text; part; part = strchr(part, ':')) {
        part += *part == ':' ? 1 : 0;
        if (*part != '/') {
            return false;
        }
    }
    return true;
}

int strings_check(enum table_type type, const char *text, struct buffer *why)
{
    if (type == TABLE_FREE) {
        return 0;
    }
    if (is_quoted(text)) {
        return strings_refuse(why, text,
                              "contains quotes, which would be part of the value; remove them");
    }
    if (type != TABLE_TEXT && strstr(text, " #")) {
        return strings_refuse(why, text, "contains a #; a comment on the same line begins with ;");
    }
    if (type == TABLE_NAME && !is_name(text)) {
        return strings_refuse(
            why, text, "is not a name; use 1 to 100 of the characters A-Z a-z 0-9 _ . : @ -");
    }
    if (type == TABLE_TEXT && strpbrk(text, " \t")) {
        return strings_refuse(why, text, "contains white space; remove it");
    }
    if (type == TABLE_PATH && *text != '/') {
        return strings_refuse(why, text, "is not an absolute path; begin it with /");
    }
    if (type == TABLE_PATHS && !are_paths(text)) {
        return strings_refuse(why, text,
                              "is not a list of absolute paths; write it like /usr/bin:/bin");
    }
    return 0;
}

int strings_replace(char **text, const char *source)
{
    char *copy = !source ? NULL : strdup(source);

    if (source && !copy) {
        return -1;
    }
    strings_free(text);
    *text = copy;
    return 0;
}

static size_t list_length(char *const *list)
{
    size_t length = 0;

    while (list && list[length]) {
        length++;
    }
    return length;
}

const char *strings_find(char *const *list, const char *name, size_t length, char separator)
{
    for (; list && *list; list++) {
        if (strncmp(*list, name, length) == 0 &&
            ((*list)[length] == separator || (*list)[length] == '\0')) {
            return *list;
        }
    }
    return NULL;
}

/* Why the variable is not valid, or NULL. The message never repeats the value, which may be a
 * secret. */
static const char *variable_fault(char *const *list, const char *text)
{
    size_t name = strspn(text, LETTERS DIGITS "_");

    if (name == 0 || text[name] != '=' || strchr(DIGITS, *text)) {
        return "not NAME=VALUE; use A-Z a-z 0-9 _ for the name, and no digit at its beginning";
    }
    if (strncmp(text, "LEAT_", 5) == 0 || strncmp(text, "TASK_", 5) == 0) {
        return "names that begin with LEAT_ or TASK_ are reserved; use another";
    }
    if (strncmp(text, "PATH=", 5) == 0) {
        return "PATH is set by the key path; write path = ...";
    }
    return strings_find(list, text, name, '=')
               ? "this variable is already set; remove one of the two lines"
               : NULL;
}

int strings_append(char ***list, const char *text, size_t size)
{
    size_t length = list_length(*list);
    char **longer = reallocarray(*list, length + 2, sizeof *longer);

    if (!longer) {
        return -1;
    }
    *list = longer;
    longer[length] = strndup(text, size);
    longer[length + 1] = NULL;
    return !longer[length] ? -1 : 0;
}

static bool holds_twice(char *const *list)
{
    for (size_t i = 0; list && list[i]; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(list[i], list[j]) == 0) {
                return true;
            }
        }
    }
    return false;
}

int strings_set_words(char ***list, const char *text, struct buffer *why)
{
    static const char blanks[] = " \t";

    if (strings_check(TABLE_WORDS, text, why) != 0) {
        return -1;
    }
    for (const char *word = text + strspn(text, blanks); *word != '\0';) {
        size_t size = strcspn(word, blanks);

        if (strings_append(list, word, size) != 0) {
            why->failed = true;
            return -1;
        }
        word += size;
        word += strspn(word, blanks);
    }
    return holds_twice(*list)
               ? strings_refuse(why, text, "contains an entry twice; remove one of them")
               : 0;
}

int strings_add_variable(char ***list, const char *text, struct buffer *why)
{
    const char *fault = variable_fault(*list, text);

    if (fault) {
        (void)buffer_append_text(why,
                                 fault); /* a failure sets why->failed, which the caller checks */
        return -1;
    }
    if (strings_append(list, text, strlen(text)) != 0) {
        why->failed = true;
        return -1;
    }
    return 0;
}

int strings_copy_list(char ***list, char *const *source)
{
    size_t length = list_length(source);
    char **copy;

    if (!source) {
        strings_free_list(list);
        return 0;
    }
    copy = calloc(length + 1, sizeof *copy);
    if (!copy) {
        return -1;
    }
    for (size_t i = 0; i < length; i++) {
        copy[i] = strdup(source[i]);
        if (!copy[i]) {
            strings_free_list(&copy);
            return -1;
        }
    }
    strings_free_list(list);
    *list = copy;
    return 0;
}

void strings_free(char **text)
{
    if (*text) {
        explicit_bzero(*text, strlen(*text));
    }
    free(*text);
    *text = NULL;
}

void strings_free_list(char ***list)
{
    for (size_t i = 0; *list && (*list)[i]; i++) {
        strings_free(&(*list)[i]);
    }
    free(*list);
    *list = NULL;
}
