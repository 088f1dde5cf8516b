/*
 * The files of the page, included in the program.
 */
#include "board/page.h"

#include <string.h>

#define INCLUDE(name, file)                                                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global page_" #name "\n"                                                             \
            ".global page_" #name "_end\n"                                                         \
            ".type page_" #name ", %object\n"                                                      \
            "page_" #name ":\n"                                                                    \
            ".incbin \"src/board/page/" file "\"\n"                                                \
            "page_" #name "_end:\n"                                                                \
            ".size page_" #name ", . - page_" #name "\n"                                           \
            ".popsection\n");                                                                      \
    extern const char page_##name[], page_##name##_end[]

INCLUDE(html, "board.html");
INCLUDE(css, "board.css");
INCLUDE(js, "board.js");

const struct page_file *page_find(const char *path)
{
    static struct page_file files[] = {
        {"/", "text/html; charset=utf-8", page_html, 0},
        {"/board.css", "text/css; charset=utf-8", page_css, 0},
        {"/board.js", "text/javascript; charset=utf-8", page_js, 0},
    };
    const char *const ends[] = {page_html_end, page_css_end, page_js_end};

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (strcmp(files[i].path, path) == 0) {
            files[i].size = (size_t)(ends[i] - files[i].data);
            return &files[i];
        }
    }
    return NULL;
}
