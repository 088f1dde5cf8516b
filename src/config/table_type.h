/*
 * What a row of the table may say of a value: its type, and words with a meaning of their own.
 */
#ifndef LEAT_CONFIG_TABLE_TYPE_H
#define LEAT_CONFIG_TABLE_TYPE_H

#include <stdint.h>

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

#endif
