/* Lists of words as text of limited size. */
#include "base/join.h"

#include <stdio.h>
#include <string.h>

void join_word(char *text, size_t size, const char *separator, const char *word)
{
    size_t used = strlen(text);
    int length = snprintf(text + used, size - used, "%s%s", used > 0 ? separator : "", word);

    if (length < 0 || (size_t)length >= size - used) {
        text[used] = '\0';
    }
}
