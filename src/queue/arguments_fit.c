/*
 * Compares the fields of a task with the arguments of a listed command.
 */
#include "queue/arguments_fit.h"

#include <stdio.h>
#include <string.h>

/* The fields of a task, and where to write why they do not fit. */
struct fit {
    const struct task_field *fields;
    size_t count;
    char *reason;
    size_t reason_size;
};

/* Returns the task's value for the piece, or NULL. */
static const struct bytes *brought(const struct argument_piece *piece,
                                   const struct task_field *fields, size_t count)
{
    for (size_t i = 0; piece->is_field && i < count; i++) {
        if (bytes_equal(fields[i].name, piece->text)) {
            return &fields[i].value;
        }
    }
    return NULL;
}

struct bytes arguments_value(const struct argument_piece *piece, const struct task_field *fields,
                             size_t count)
{
    const struct bytes *value = brought(piece, fields, count);
    const char *text = piece->is_field ? piece->fallback : piece->text;

    if (value) {
        return value->data ? *value : (struct bytes){"", 0};
    }
    return (struct bytes){text, text ? strlen(text) : 0};
}

static bool refuse_field(const struct fit *fit, const struct argument_piece *piece,
                         const char *what)
{
    (void)snprintf(fit->reason, fit->reason_size, "field %s %s", piece->text, what);
    return false;
}

/* Returns true if the task has all that the word needs; otherwise false with the reason. If
 * `options` is true, a "--" stands before the word, and a field at its beginning may begin with
 * '-'. */
static bool word_fits(const struct fit *fit, const struct argument *word, bool options)
{
    size_t length = 0;
    for (size_t i = 0; i < word->count; i++) {
        const struct argument_piece *piece = &word->pieces[i];
        struct bytes value = arguments_value(piece, fit->fields, fit->count);
        if (!value.data) {
            return refuse_field(fit, piece, "is missing: an argument of the command needs it");
        }
        if (memchr(value.data, '\0', value.size)) {
            return refuse_field(fit, piece, "holds a NUL byte: it cannot be an argument");
        }
        if (!options && length == 0 && value.size > 0 && value.data[0] == '-' &&
            brought(piece, fit->fields, fit->count)) {
            return refuse_field(fit, piece, "begins with -: it would be taken for an option");
        }
        if (value.size > TASK_MAX_STRING - length) {
            return refuse_field(fit, piece, "makes an argument longer than 131071 bytes");
        }
        length += value.size;
    }
    return true;
}

static bool ends_options(const struct argument *word)
{
    return word->count == 1 && !word->pieces[0].is_field && strcmp(word->pieces[0].text, "--") == 0;
}

bool arguments_fit(const struct arguments *arguments, const struct task_field *fields, size_t count,
                   char *reason, size_t reason_size)
{
    struct fit fit = {fields, count, reason, reason_size};
    bool options = false;

    for (size_t i = 0; i < arguments->count; i++) {
        const struct argument *word = &arguments->words[i];
        if (!word_fits(&fit, word, options)) {
            return false;
        }
        options = options || ends_options(word);
    }
    return true;
}
