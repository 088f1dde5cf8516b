/*
 * Splits simple shell lines into words.
 */
#include "exec/start/words.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Keywords and builtins of dash, bash, ksh and busybox, and names that POSIX leaves unspecified;
 * sorted. */
static const char *const shell_names[] = {
    ".",        ":",        "alias",   "autoload",  "bg",       "bind",    "break",   "builtin",
    "bye",      "caller",   "case",    "cd",        "chdir",    "command", "compgen", "complete",
    "compopt",  "continue", "coproc",  "declare",   "dirs",     "disable", "disown",  "do",
    "done",     "echo",     "elif",    "else",      "enable",   "esac",    "eval",    "exec",
    "exit",     "export",   "false",   "fc",        "fg",       "fi",      "float",   "for",
    "function", "getopts",  "global",  "hash",      "help",     "hist",    "history", "if",
    "in",       "integer",  "jobs",    "kill",      "let",      "local",   "log",     "login",
    "logout",   "mapfile",  "nameref", "namespace", "newgrp",   "popd",    "print",   "printf",
    "pushd",    "pwd",      "read",    "readarray", "readonly", "rename",  "repeat",  "return",
    "select",   "set",      "shift",   "shopt",     "sleep",    "source",  "stop",    "suspend",
    "test",     "then",     "time",    "times",     "trap",     "true",    "type",    "typeset",
    "ulimit",   "umask",    "unalias", "unset",     "until",    "wait",    "whence",  "while",
};

static int compare_names(const void *name, const void *entry)
{
    return strcmp(name, *(const char *const *)entry);
}

static bool is_shell_name(const char *word)
{
    return bsearch(word, shell_names, sizeof shell_names / sizeof *shell_names, sizeof *shell_names,
                   compare_names);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("_./=:,@%+-", c));
}

/* Returns the number of words, or 0 if the line has a byte that a shell may treat specially. */
static size_t count_words(const char *command, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++) {
        if (is_blank(command[i])) {
            continue;
        }
        if (!is_plain(command[i])) {
            return 0;
        }
        count += i == 0 || is_blank(command[i - 1]);
    }
    return count;
}

static bool is_program(const char *word)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): count_words has found a word */
    if (strchr("%+-", word[0]) || strchr(word, '=')) {
        return false;
    }
    return strchr(word, '/') || !is_shell_name(word);
}

/* Copies the line behind the pointers, ends each word with NUL and points to it. */
static void fill_words(char **words, size_t count, const char *command, size_t size)
{
    char *text = (char *)(words + count + 1);
    size_t found = 0;
    memcpy(text, command, size);
    text[size] = '\0';
    for (size_t i = 0; i < size; i++) {
        if (is_blank(text[i])) {
            text[i] = '\0';
        } else if (i == 0 || text[i - 1] == '\0') {
            words[found++] = text + i;
        }
    }
    words[found] = NULL;
}

char **words_split(const char *command, size_t size)
{
    size_t count = count_words(command, size);
    if (count == 0) {
        return NULL;
    }

    char **words = malloc((count + 1) * sizeof *words + size + 1);
    if (!words) {
        return NULL;
    }
    fill_words(words, count, command, size);
    if (!is_program(words[0])) {
        free(words);
        return NULL;
    }
    return words;
}
