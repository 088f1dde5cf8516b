/*
 * Libraries that are loaded when their first function is called, since most runs of a program need
 * none of their functions, and loading them may take longer than all that the program does.
 *
 * A file for each such library defines the functions of it that are used, with the library's own
 * header. So callers do not see how a library is loaded, and the linker does not add it.
 */
#ifndef LEAT_BASE_PROCESS_SHARED_OBJECT_H
#define LEAT_BASE_PROCESS_SHARED_OBJECT_H

#include <string.h>

struct shared_object {
    const char *file; /* its name for the loader, such as libcrypto.so.3 */
    void *handle;     /* NULL until it is loaded; then it stays loaded */
};

/* Returns the address of a function, and loads the library first if it is not loaded. Returns NULL
 * if that fails or there is no such function; the next call tries again. */
void *shared_object_find(struct shared_object *object, const char *function);

/* Defines a function that calls the function of that name in the library. It returns `failure` if
 * the library cannot be loaded. */
#define SHARED_OBJECT_FUNCTION(object, type, name, parameters, arguments, failure)                 \
    type name parameters                                                                           \
    {                                                                                              \
        static __typeof__(name) *function;                                                         \
        if (!function) {                                                                           \
            void *address = shared_object_find(&(object), #name);                                  \
            memcpy(&function, &address, sizeof function);                                          \
        }                                                                                          \
        return function ? function arguments : (failure);                                          \
    }

/* The same for a function without a value that frees something, which only the library can have
 * made. If the library is not loaded, it does nothing. */
#define SHARED_OBJECT_FREE(object, name, parameters, arguments)                                    \
    void name parameters                                                                           \
    {                                                                                              \
        void *address = (object).handle ? shared_object_find(&(object), #name) : NULL;             \
        __typeof__(name) *function;                                                                \
        memcpy(&function, &address, sizeof function);                                              \
        if (function) {                                                                            \
            function arguments;                                                                    \
        }                                                                                          \
    }

#endif
