/*
 * The files of the page, included in the program.
 */
#ifndef LEAT_BOARD_PAGE_H
#define LEAT_BOARD_PAGE_H

#include <stddef.h>

struct page_file {
    const char *path; /* of the URL */
    const char *type; /* Content-Type */
    const char *data;
    size_t size;
};

/* The file at that path, or NULL. */
const struct page_file *page_find(const char *path);

#endif
