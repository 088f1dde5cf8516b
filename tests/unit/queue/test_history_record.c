/* Records of ended tasks: texts of every length, and what does not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "queue/history_record.h"

/* Goal: each text has the header for its length, and empty ones are kept. */
static void packs_texts(void **state)
{
    static const size_t sizes[] = {0, 1, 31, 32, 255, 256, 1024};
    static const unsigned char headers[][3] = {{0xa0},       {0xa1},       {0xbf},      {0xd9, 32},
                                               {0xd9, 0xff}, {0xda, 1, 0}, {0xda, 4, 0}};
    static char text[1024], out[QUEUE_HISTORY_RECORD];
    struct bytes items[HISTORY_ITEMS] = {{0}};
    size_t at = 1;

    (void)state;
    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        items[i] = (struct bytes){text, sizes[i]};
    }
    size_t size = history_record_pack(items, out);
    assert_int_equal((unsigned char)out[0], 0x90 | HISTORY_ITEMS);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t head = sizes[i] < 32 ? 1 : sizes[i] < 256 ? 2 : 3;
        assert_memory_equal(out + at, headers[i], head);
        assert_memory_equal(out + at + head, text, sizes[i]);
        at += head + sizes[i];
    }
    assert_int_equal(size, at + HISTORY_ITEMS - sizeof sizes / sizeof *sizes);
}

/* Goal: a text for which there is no room is left out, and those after it are kept. */
static void leaves_out_what_does_not_fit(void **state)
{
    static char text[QUEUE_HISTORY_RECORD + 1], out[QUEUE_HISTORY_RECORD];
    struct bytes items[HISTORY_ITEMS] = {{0}};
    /* besides the text, the list and the other items have a byte each, and the text a header */
    size_t room = QUEUE_HISTORY_RECORD - 1 - (HISTORY_ITEMS - 1) - 3;

    (void)state;
    items[HISTORY_LANE] = (struct bytes){text, room};
    assert_int_equal(history_record_pack(items, out), QUEUE_HISTORY_RECORD);
    items[HISTORY_LANE].size = room + 1;
    assert_int_equal(history_record_pack(items, out), 1 + HISTORY_ITEMS);
    items[HISTORY_TID] = (struct bytes){text, sizeof text};
    items[HISTORY_COMMAND] = (struct bytes){"true", 4};
    size_t size = history_record_pack(items, out);
    assert_int_equal(size, 1 + HISTORY_ITEMS + 4);
    assert_memory_equal(out + size - 5, "\xa4true", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_texts),
        cmocka_unit_test(leaves_out_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
