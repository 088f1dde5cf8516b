/*
 * Lists of words as text of limited size: "a, b, c".
 */
#ifndef LEAT_BASE_JOIN_H
#define LEAT_BASE_JOIN_H

#include <stddef.h>

/* Appends the word to the text, after the separator unless the text is empty. A word that does not
 * fit is left out. size: of the memory of the text. */
void join_word(char *text, size_t size, const char *separator, const char *word);

#endif
