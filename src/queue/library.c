/* The function library, included in the program. */
#include "queue/library.h"

#include <stdlib.h>
#include <string.h>

/* make joins the parts in src/queue/lua to this file. The NUL after the source makes it a C string.
 */
__asm__(".pushsection .rodata\n"
        ".global library_source\n"
        ".global library_source_end\n"
        ".type library_source, %object\n"
        ".type library_source_end, %object\n"
        "library_source:\n"
        ".incbin \"" LEAT_LIBRARY "\"\n"
        "library_source_end:\n"
        ".byte 0\n"
        ".size library_source, . - library_source\n"
        ".popsection\n");

size_t library_size(void)
{
    return (size_t)((uintptr_t)library_source_end - (uintptr_t)library_source);
}

int64_t library_version(void)
{
    static const char mark[] = "\nlocal VERSION = ";
    const char *found = strstr(library_source, mark);
    if (!found) {
        return 0;
    }
    return strtoll(found + sizeof mark - 1, NULL, 10);
}
