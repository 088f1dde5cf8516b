/* Commands that need no shell: exactly those that mean the same without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/start/words.h"

static void assert_words(const char *command, const char *const *expected)
{
    char **words = words_split(command, strlen(command));
    size_t count = 0;
    assert_non_null(words);
    for (; expected[count]; count++) {
        assert_string_equal(words[count], expected[count]);
    }
    assert_null(words[count]);
    free(words);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void assert_shell(const char *command, size_t size)
{
    char **words = words_split(command, size);
    if (words) {
        fail_msg("needs a shell: %s", command);
    }
}

/* Goal: plain words are split at any number of blanks. */
static void plain_words_are_split(void **state)
{
    (void)state;
    assert_words("/bin/true", WORDS("/bin/true"));
    assert_words("make thumbs", WORDS("make", "thumbs"));
    assert_words(" \t/opt/x-1.2/run\t --size=10x20  a,b:c@d%e+f_G.h ",
                 WORDS("/opt/x-1.2/run", "--size=10x20", "a,b:c@d%e+f_G.h"));
    assert_words("./echo -- -n", WORDS("./echo", "--", "-n"));
    assert_words("/bin/echo a=b =c", WORDS("/bin/echo", "a=b", "=c"));
}

/* Goal: every byte that is not plain sends the line to the shell, at any position. */
static void special_bytes_need_a_shell(void **state)
{
    (void)state;
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                        "_./=:,@%+- \t";
    for (int byte = 0; byte < 256; byte++) {
        char command[] = "/bin/echo a?b";
        command[11] = (char)byte;
        if (byte == 0 || !strchr(plain, byte)) {
            assert_shell(command, sizeof command - 1);
        }
        command[11] = 'x';
        command[12] = (char)byte;
        if (byte == 0 || !strchr(plain, byte)) {
            assert_shell(command, sizeof command - 1);
        }
    }
}

/* Goal: assignments, options, jobs and an empty line are left to the shell. */
static void first_words_of_the_shell(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "", " ", "\t \t", "A=B", "A=B env", "a=/bin/true", "-c x", "+x /y", "%1", "=x", " -i"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        assert_shell(commands[i], strlen(commands[i]));
    }
}

/* Goal: words that the shells of this machine call a builtin or a keyword are left to them. */
static void builtins_need_a_shell(void **state)
{
    (void)state;
    static const char *const names[] = {
        ".",     ":",        "alias",   "bg",     "break", "builtin",  "case",   "cd",
        "chdir", "command",  "do",      "done",   "echo",  "elif",     "else",   "esac",
        "eval",  "exec",     "exit",    "export", "false", "fc",       "fg",     "fi",
        "for",   "function", "getopts", "hash",   "if",    "in",       "jobs",   "kill",
        "let",   "local",    "printf",  "pwd",    "read",  "readonly", "return", "select",
        "set",   "shift",    "source",  "test",   "then",  "time",     "times",  "trap",
        "true",  "type",     "typeset", "ulimit", "umask", "unalias",  "unset",  "until",
        "wait",  "while"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char command[64];
        assert_true(snprintf(command, sizeof command, "%s /x", names[i]) > 0);
        assert_shell(command, strlen(command));
        assert_shell(names[i], strlen(names[i]));
    }
    FILE *list = popen("bash -c 'compgen -b; compgen -k' 2>/dev/null", "re");
    char name[64];
    while (list && fgets(name, sizeof name, list)) {
        name[strcspn(name, "\n")] = '\0';
        assert_shell(name, strlen(name));
    }
    assert_true(!list || pclose(list) >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_words_are_split),
        cmocka_unit_test(special_bytes_need_a_shell),
        cmocka_unit_test(first_words_of_the_shell),
        cmocka_unit_test(builtins_need_a_shell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
