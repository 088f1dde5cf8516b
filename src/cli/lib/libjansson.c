/*
 * The functions of libjansson that leat uses. The library is loaded with the first JSON that is
 * read or written. If it cannot be loaded, they fail as they do without memory.
 */
#include <jansson.h>
#include <stdarg.h>
#include <string.h>

#include "base/process/shared_object.h"

static struct shared_object libjansson = {.file = "libjansson.so.4"};

#define FUNCTION(type, name, parameters, arguments, failure)                                       \
    SHARED_OBJECT_FUNCTION(libjansson, type, name, parameters, arguments, failure)

/* ---- values */

FUNCTION(json_t *, json_true, (void), (), NULL)
FUNCTION(json_t *, json_false, (void), (), NULL)
FUNCTION(json_t *, json_null, (void), (), NULL)
FUNCTION(json_t *, json_copy, (json_t * value), (value), NULL)
FUNCTION(json_t *, json_integer, (json_int_t value), (value), NULL)
FUNCTION(json_t *, json_real, (double value), (value), NULL)
FUNCTION(json_t *, json_string, (const char *value), (value), NULL)
FUNCTION(json_t *, json_stringn, (const char *value, size_t len), (value, len), NULL)
FUNCTION(json_int_t, json_integer_value, (const json_t *integer), (integer), 0)
FUNCTION(double, json_number_value, (const json_t *json), (json), 0)
FUNCTION(const char *, json_string_value, (const json_t *string), (string), NULL)
FUNCTION(size_t, json_string_length, (const json_t *string), (string), 0)

SHARED_OBJECT_FREE(libjansson, json_delete, (json_t * json), (json))

json_t *json_pack(const char *fmt, ...)
{
    void *address = shared_object_find(&libjansson, "json_vpack_ex");
    __typeof__(json_vpack_ex) *function;
    va_list values;
    json_t *value;

    memcpy(&function, &address, sizeof function);
    va_start(values, fmt);
    value = function ? function(NULL, 0, fmt, values) : NULL;
    va_end(values);
    return value;
}

/* ---- arrays and objects */

FUNCTION(json_t *, json_array, (void), (), NULL)
FUNCTION(size_t, json_array_size, (const json_t *array), (array), 0)
FUNCTION(json_t *, json_array_get, (const json_t *array, size_t index), (array, index), NULL)
FUNCTION(int, json_array_append_new, (json_t * array, json_t *value), (array, value), -1)
FUNCTION(int, json_array_extend, (json_t * array, json_t *other), (array, other), -1)
FUNCTION(json_t *, json_object, (void), (), NULL)
FUNCTION(size_t, json_object_size, (const json_t *object), (object), 0)
FUNCTION(json_t *, json_object_get, (const json_t *object, const char *key), (object, key), NULL)
FUNCTION(int, json_object_set_new, (json_t * object, const char *key, json_t *value),
         (object, key, value), -1)
FUNCTION(int, json_object_del, (json_t * object, const char *key), (object, key), -1)
FUNCTION(void *, json_object_iter, (json_t * object), (object), NULL)
FUNCTION(void *, json_object_key_to_iter, (const char *key), (key), NULL)
FUNCTION(void *, json_object_iter_next, (json_t * object, void *iter), (object, iter), NULL)
FUNCTION(const char *, json_object_iter_key, (void *iter), (iter), NULL)
FUNCTION(json_t *, json_object_iter_value, (void *iter), (iter), NULL)

/* ---- text */

FUNCTION(int, json_dump_callback,
         (const json_t *json, json_dump_callback_t callback, void *data, size_t flags),
         (json, callback, data, flags), -1)

/* Returns NULL for json_loadb, and tells why. error may be NULL. */
static json_t *not_loaded(json_error_t *error)
{
    if (error) {
        *error = (json_error_t){.text = "libjansson cannot be loaded"};
    }
    return NULL;
}

FUNCTION(json_t *, json_loadb,
         (const char *buffer, size_t buflen, size_t flags, json_error_t *error),
         (buffer, buflen, flags, error), not_loaded(error))
