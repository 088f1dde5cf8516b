/* Paths of output files: the file is always in its folder, whatever the names of task and queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/types/outputs.h"

static const struct {
    const char *queue, *directory, *logs, *tid, *path;
} cases[] = {
    {"mails", NULL, NULL, "17-0", "/var/log/leat/mails/17-0.log"},
    {"mails", NULL, "/var/log/x", "17-0", "/var/log/x/mails/17-0.log"},
    {"mails", NULL, "/var/log/x:/var/log/y", "17-0", "/var/log/x/mails/17-0.log"},
    {"mails", NULL, "", "17-0", "/var/log/leat/mails/17-0.log"},
    {"mails", NULL, "relative", "17-0", "/var/log/leat/mails/17-0.log"},
    {"mails", "/srv/out", "/var/log/x", "17-0", "/srv/out/17-0.log"},
    {"..", NULL, NULL, "..", "/var/log/leat/%2e./%2e..log"},
    {"mails", "/o", NULL, "../../etc/passwd", "/o/%2e.%2f..%2fetc%2fpasswd.log"},
    {"mails", "/o", NULL, "", "/o/.log"},
    {"mails", "/o", NULL, "a b\n%2f\xff", "/o/a%20b%0a%252f%ff.log"},
};

/* Goal: names are safe and different for each id, and the folder is the configured one. */
static void names_stay_in_the_folder(void **state)
{
    (void)state;
    struct buffer path = BUFFER_INIT;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config config = {.queue.name = (char *)cases[i].queue,
                                .output.directory = (char *)cases[i].directory};
        size_t folder;

        assert_int_equal(outputs_file(&config, cases[i].logs, cases[i].tid, &path), 0);
        assert_string_equal(path.data, cases[i].path);
        folder = (size_t)(strrchr(path.data, '/') - path.data);
        assert_int_equal(outputs_folder(&config, cases[i].logs, &path), 0);
        assert_int_equal(path.size, folder + 1);
        assert_memory_equal(path.data, cases[i].path, folder);
    }
    buffer_free(&path);
}

/* Goal: an id that is too long for a name is an error and is not truncated. */
static void long_ids_are_refused(void **state)
{
    (void)state;
    struct buffer path = BUFFER_INIT;
    struct config config = {.queue.name = (char *)"mails"};
    char tid[400];

    memset(tid, 'x', sizeof tid);
    tid[251] = '\0';
    assert_int_equal(outputs_file(&config, NULL, tid, &path), 0);
    tid[251] = 'x';
    tid[252] = '\0';
    assert_int_equal(outputs_file(&config, NULL, tid, &path), -1);
    tid[251] = '\0';
    tid[0] = '\n';
    assert_int_equal(outputs_file(&config, NULL, tid, &path), -1);
    buffer_free(&path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_stay_in_the_folder),
        cmocka_unit_test(long_ids_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
