/*
 * Types of values in the table of keys, and words with a special meaning.
 */
#ifndef LEAT_CONFIG_TABLE_TYPE_H
#define LEAT_CONFIG_TABLE_TYPE_H

#include <stdint.h>

enum table_type {
    TABLE_DURATION,
    TABLE_SIZE,
    TABLE_INTEGER,
    TABLE_MEMORY,  /* a size, or a percentage, which is stored as a negative number */
    TABLE_HISTORY, /* a number, or an age, which is stored as negative ms */
    TABLE_PERCENT,
    TABLE_MODE,      /* octal */
    TABLE_NUMBER,    /* a decimal fraction */
    TABLE_BOOLEAN,   /* yes or no */
    TABLE_CHOICE,    /* one of the words */
    TABLE_SET,       /* some of the words, separated by commas or white space */
    TABLE_CODES,     /* exit codes and ranges of them */
    TABLE_NAME,      /* [A-Za-z0-9_.:@-]{1,100} */
    TABLE_TEXT,      /* without white space */
    TABLE_PATH,      /* absolute */
    TABLE_PATHS,     /* absolute, separated by colons */
    TABLE_FREE,      /* any text, so no comment may follow it on its line */
    TABLE_LIST,      /* free text, NAME=VALUE; the key may be repeated */
    TABLE_WORDS,     /* texts separated by white space, none twice */
    TABLE_ADDRESSES, /* HOST:PORT, separated by commas or white space */
    TABLE_RATE,      /* tasks per time: 20/s */
    TABLE_LANES,     /* one row for all lanes: the key is the lane, the value its settings */
    TABLE_RULE,      /* dead, retry or a number of attempts; words lists the words */
    TABLE_EXITS,     /* the same; one row for all keys exit.CODE and exit.LOW-HIGH */
    TABLE_SIGNALS,   /* the same; one row for all keys signal.NAME */

    TABLE_KEY_FILES,       /* NAME:FILE, separated by white space */
    TABLE_KEY_CREDENTIALS, /* NAME or NAME:CREDENTIAL, separated by white space */

    /* in sections with any NAME; values are kept as NAME=VALUE */
    TABLE_PROGRAM,   /* an absolute path, or a name that is looked up on PATH */
    TABLE_ARGUMENTS, /* words with placeholders */
};

/* A word with a special meaning: a value of a choice, or "auto" or "none" instead of a number. */
struct table_word {
    const char *word; /* NULL ends a list */
    int64_t value;
};

#endif
