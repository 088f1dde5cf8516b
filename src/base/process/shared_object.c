/*
 * Loads libraries with the loader of the C library.
 */
#include "base/process/shared_object.h"

#include <dlfcn.h>

void *shared_object_find(struct shared_object *object, const char *function)
{
    if (!object->handle) {
        object->handle = dlopen(object->file, RTLD_LAZY | RTLD_LOCAL);
    }
    return object->handle ? dlsym(object->handle, function) : NULL;
}
