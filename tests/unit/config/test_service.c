// Names of services: each queue has a portable name of its own, and a unit.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/file/service.h"
#include "config/file/source.h"

// Goal: the name is the queue's if users may have such a name; otherwise it has a hash of the whole
// name, so that no queue gets the user of another.
static void names_of_users(void **state)
{
    (void)state;
    const struct {
        const char *queue, *beginning;
        size_t size;
    } cases[] = {
        {"mails", "leat-mails", 10},
        {"a_b-1", "leat-a_b-1", 10},
        {"abcdefghijklmnopqrstuvwxyz", "leat-abcdefghijklmnopqrstuvwxyz", 31},
        {"abcdefghijklmnopqrstuvwxyz0", "leat_abcdefghijklmnopq_", 31},
        {"abcdefghijklmnopqrstuvwxyz1", "leat_abcdefghijklmnopq_", 31},
        {"Mails", "leat_mails_", 19},
        {"mAils", "leat_mails_", 19},
        {"a.b", "leat_a_b_", 17},
        {"a:b", "leat_a_b_", 17},
        {"a@b", "leat_a_b_", 17},
        {"tls", "leat_tls_", 17},     /* /run/leat-tls belongs to the tunnel */
        {"board", "leat_board_", 19}, /* leat-board is the user of the board */
    };
    enum { CASES = sizeof cases / sizeof *cases };
    char names[CASES][SERVICE_NAME_SIZE];
    for (size_t i = 0; i < CASES; i++) {
        assert_true(service_is_queue(cases[i].queue));
        service_name(cases[i].queue, names[i]);
        assert_int_equal(strlen(names[i]), cases[i].size);
        assert_memory_equal(names[i], cases[i].beginning, strlen(cases[i].beginning));
        for (size_t other = 0; other < i; other++) {
            assert_string_not_equal(names[i], names[other]);
        }
    }
}

// Goal: what cannot be the instance of a unit is refused; above all a path.
static void names_of_queues(void **state)
{
    (void)state;
    static const char *const refused[] = {"",    ".",        "..",  ".a", "a/b",
                                          "a b", "\xc3\xa4", "a\n", "%i"};
    char longest[102] = {0};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_false(service_is_queue(refused[i]));
    }
    memset(longest, 'x', 100);
    assert_true(service_is_queue(longest));
    longest[100] = 'x';
    assert_false(service_is_queue(longest));
}

// Goal: only files of the folder of queues have a unit.
static void units_of_files(void **state)
{
    (void)state;
    char unit[64];
    assert_int_equal(setenv("LEAT_CONFIG_DIR", "/etc/x", 1), 0);
    assert_int_equal(config_source_unit("/etc/x/mails.ini", unit, sizeof unit), 0);
    assert_string_equal(unit, "leatd@mails.service");
    assert_int_equal(config_source_unit("/etc/x/mails.ini", unit, 10), -1);
    static const char *const others[] = {NULL,           "/etc/x/.ini",        "/etc/x/mails",
                                         "/etc/x.ini",   "/etc/x/a/mails.ini", "mails.ini",
                                         "/etc/xx/a.ini"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(config_source_unit(others[i], unit, sizeof unit), -1);
    }
}

// Goal: the folder is found only if it is there.
static void folders(void **state)
{
    (void)state;
    struct buffer path = BUFFER_INIT;
    assert_int_equal(setenv("LEAT_CONFIG_DIR", "/etc/x", 1), 0);
    assert_int_equal(service_folder("/nonexistent", "/etc/x/mails.ini", &path), -1);
    assert_string_equal(path.data, "/nonexistent/leat-mails");
    assert_int_equal(service_folder("/run", "/etc/y/mails.ini", &path), -1);
    assert_int_equal(service_folder("/run", NULL, &path), -1);
    buffer_free(&path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_users),
        cmocka_unit_test(names_of_queues),
        cmocka_unit_test(units_of_files),
        cmocka_unit_test(folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
