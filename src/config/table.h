/*
 * The table of all keys: what a file may say, and where in struct config it goes.
 */
#ifndef LEAT_CONFIG_TABLE_H
#define LEAT_CONFIG_TABLE_H

#include "config/config.h"

enum table_type {
    TABLE_DURATION,
    TABLE_SIZE,
    TABLE_INTEGER,
    TABLE_MEMORY, /* a size, or percent, stored below 0 */
    TABLE_PERCENT,
    TABLE_MODE,      /* octal */
    TABLE_NUMBER,    /* a decimal fraction */
    TABLE_BOOLEAN,   /* yes or no */
    TABLE_CHOICE,    /* one of the words */
    TABLE_CODES,     /* exit codes and ranges of them */
    TABLE_NAME,      /* [A-Za-z0-9_.:@-]{1,100} */
    TABLE_TEXT,      /* no white space inside */
    TABLE_PATH,      /* absolute */
    TABLE_PATHS,     /* absolute, with colons between */
    TABLE_FREE,      /* any text: an inline comment would be mistaken for a part of it */
    TABLE_LIST,      /* free text, NAME=VALUE; the key may be repeated */
    TABLE_WORDS,     /* several texts with white space between, none twice */
    TABLE_ADDRESSES, /* HOST:PORT, several with commas or white space between */
    TABLE_RATE,      /* tasks in a while: 20/s */
    TABLE_LANES,     /* a row for any name: each is a lane, the values its settings */
    TABLE_RULE,      /* what follows: dead, retry, a number of attempts; the words say which */
    TABLE_EXITS,     /* the same; a row for all keys exit.CODE and exit.LOW-HIGH */
    TABLE_SIGNALS,   /* the same; a row for all keys signal.NAME */

    TABLE_KEY_FILES,       /* NAME:FILE, several with white space between */
    TABLE_KEY_CREDENTIALS, /* NAME or NAME:CREDENTIAL, the same */

    /* in sections for any NAME: each value is kept as NAME=VALUE */
    TABLE_PROGRAM,   /* absolute, or a name for PATH */
    TABLE_ARGUMENTS, /* words with placeholders */
};

/* A word with a meaning of its own: the values of a choice, or "auto" and "none" beside numbers. */
struct table_word {
    const char *word; /* NULL ends a list */
    int64_t value;
};

struct table_row {
    struct config_key key;
    enum table_type type;
    size_t offset;            /* into struct config */
    size_t size;              /* of the member */
    int64_t low, high, scale; /* of numbers; scale: milliseconds in a unit of the member */
    const struct table_word *words;
};

enum { TABLE_ROWS = 128 };

extern const struct table_row table[TABLE_ROWS];

/* Whether a file's section is that one of the table's. */
bool table_is_section(const char *known, const char *section);

/* What follows the dot in the name of a section that the table has for any NAME ("command.NAME"),
 * or NULL. */
const char *table_section_name(const char *section);

/* The row of that key, or NULL. */
const struct table_row *table_find(const char *section, const char *name);

/* True where it stands for keys of several names, or its key may be repeated. */
bool table_is_open(const struct table_row *row);

/* The row's number. */
size_t table_index(const struct table_row *row);

/* True where the table has such a section. */
bool table_has_section(const char *section);

/* What somebody who wrote that key probably meant, or NULL: the same name in another section, or
 * the nearest name in this one, or else in any. */
const struct table_row *table_nearest(const char *section, const char *name);

/* The section that is nearest to a wrong one, or NULL. */
const char *table_nearest_section(const char *section);

#endif
