/* The manual page, the sample file and the examples agree with the table of keys. Runs in the root
 * of the project. */
#include <ctype.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/file/load.h"
#include "config/table.h"

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 65536);

    if (!file || !text) {
        fail_msg("%s cannot be read", path);
    } else {
        assert_true(fread(text, 1, 65535, file) > 0);
    }
    assert_int_equal(fclose(file), 0);
    return text;
}

/* Finds the line in the text after `from`; fails the test if it is missing. */
static const char *find_line(const char *path, const char *from, const char *line)
{
    size_t length = strlen(line);

    for (const char *at = from; at && *at != '\0'; at = strchr(at, '\n')) {
        at += *at == '\n' ? 1 : 0;
        if (strncmp(at, line, length) == 0 && (at[length] == '\n' || at[length] == '\0')) {
            return at;
        }
    }
    fail_msg("%s lacks the line, or has it elsewhere: %s", path, line);
    return NULL;
}

static size_t count_lines(const char *text, const char *start)
{
    size_t count = 0, length = strlen(start);

    for (const char *at = text; at && *at != '\0'; at = strchr(at, '\n')) {
        at += *at == '\n' ? 1 : 0;
        count += strncmp(at, start, length) == 0 ? 1 : 0;
    }
    return count;
}

/* Goal: the manual page has the keys of the table, in its order and sections, with its types and
 * defaults, and no others. */
static void the_man_page_agrees(void **state)
{
    (void)state;
    static const char path[] = "conf/leat.ini.5";
    char *text = read_text(path);
    const char *at = text, *section = "";
    const struct config_key *key;
    char line[256];

    for (size_t i = 0; (key = config_key_at(i)); i++) {
        bool known = *key->default_value != '\0';

        if (strcmp(section, key->section) != 0) {
            section = key->section;
            assert_true(snprintf(line, sizeof line, ".Sh %s", section) > 0);
            for (char *letter = line + 4; *letter != '\0'; letter++) {
                *letter = (char)toupper((unsigned char)*letter);
            }
            at = find_line(path, at, line);
        }
        assert_true(snprintf(line, sizeof line, ".It Ic %s Pq %s, %s%s%s", key->name, key->type,
                             known ? "default " : "no default", key->default_value,
                             key->reloadable ? "" : ", restart") > 0);
        at = find_line(path, at, line);
    }
    assert_int_equal(count_lines(text, ".It Ic "), TABLE_ROWS);
    free(text);
}

/* True for keys like exit.CODE: the sample has a key of that kind, with any value. */
static bool is_pattern(const struct config_key *key)
{
    return strchr(key->name, '.');
}

/* Goal: the sample has every key in its section, with its default if there is one. */
static void the_sample_agrees(void **state)
{
    (void)state;
    static const char path[] = "conf/leat.ini";
    char *text = read_text(path);
    const struct config_key *key;
    char line[256];

    for (size_t i = 0; (key = config_key_at(i)); i++) {
        assert_true(snprintf(line, sizeof line, "[%s]", key->section) > 0);
        const char *section = find_line(path, text, line);
        const char *end = strstr(section, "\n[");
        bool required = strcmp(key->section, "queue") == 0 && strcmp(key->name, "name") == 0;
        bool known = *key->default_value != '\0';
        const char *found;
        size_t shown = is_pattern(key) ? strcspn(key->name, ".") + 1 : strlen(key->name);

        assert_true(snprintf(line, sizeof line, "\n%s%.*s%s%s%s", required ? "" : ";", (int)shown,
                             key->name, is_pattern(key) ? "" : " = ", key->default_value,
                             known ? "\n" : "") > 0);
        found = strstr(section, line);
        if (!found || (end && found > end)) {
            fail_msg("%s lacks under [%s]:%s", path, key->section, line);
        }
    }
    free(text);
}

/* Goal: every shipped file is valid, and the sample also with all its keys enabled. */
static void shipped_files_are_valid(void **state)
{
    (void)state;
    struct config *config;
    struct buffer errors = BUFFER_INIT;
    glob_t found;

    assert_int_equal(glob("conf/*.ini", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (config_load(found.gl_pathv[i], &config, &errors) != 0) {
            fail_msg("%.*s", (int)errors.size, errors.data);
        }
        config_free(config);
    }
    globfree(&found);

    /* except keys that cannot be combined */
    char *text = read_text("conf/leat.ini");
    const char *left_out[] = {"host",          "port",     "password_credential",
                              "password_file", "program",  "arguments",
                              "sentinel",      "master",   "cluster",
                              "tls_",          "resident_"};
    for (char *at = text; (at = strchr(at, '\n')); at++) {
        bool skipped = at[1] != ';' || at[2] == ' ' || at[2] == '\n';

        for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
            skipped |= strncmp(at + 2, left_out[i], strlen(left_out[i])) == 0;
        }
        if (!skipped) {
            memmove(at + 1, at + 2, strlen(at + 2) + 1);
        }
    }
    if (config_parse("f.ini", text, strlen(text), &config, &errors) != 0) {
        fail_msg("%.*s", (int)errors.size, errors.data);
    }
    assert_string_equal(config->redis.password, "secret");
    assert_int_equal(config->shutdown.drain_ms, 90000);
    config_free(config);
    free(text);
    buffer_free(&errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_man_page_agrees),
        cmocka_unit_test(the_sample_agrees),
        cmocka_unit_test(shipped_files_are_valid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
