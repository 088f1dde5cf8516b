/*
 * A field of a log record.
 */
#ifndef LEAT_BASE_LOG_LOG_FIELD_H
#define LEAT_BASE_LOG_LOG_FIELD_H

#include <stddef.h>
#include <string.h>

/* A field of a record. The name has the form that journald requires (A-Z, 0-9, _); the value may be
 * any bytes. */
struct log_field {
    const char *name;
    const void *data;
    size_t size;
};

#define LOG_TEXT(field_name, text)                                                                 \
    ((struct log_field){.name = (field_name), .data = (text), .size = strlen(text)})

#endif
