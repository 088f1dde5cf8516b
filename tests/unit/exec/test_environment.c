/* The environment of tasks: all documented variables, none twice, and none of other programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../lib/task_made.h"
#include "exec/start/environment.h"

static const char *find(char **block, const char *name)
{
    size_t size = strlen(name);
    const char *found = NULL;
    for (size_t i = 0; block[i]; i++) {
        if (strncmp(block[i], name, size) == 0 && block[i][size] == '=') {
            assert_null(found); /* twice */
            found = block[i] + size + 1;
        }
    }
    return found;
}

static size_t count(char **block)
{
    size_t found = 0;
    while (block[found]) {
        found++;
    }
    return found;
}

static void assert_variable(char **block, const char *name, const char *value)
{
    const char *found = find(block, name);
    if (!value) {
        assert_null(found);
    } else {
        assert_non_null(found);
        assert_string_equal(found, value);
    }
}

static struct config plain_config(void)
{
    return (struct config){.queue.name = (char *)"mails",
                           .task = {.shell = (char *)"/bin/sh",
                                    .directory = (char *)"/srv",
                                    .path = (char *)"/usr/bin:/bin"}};
}

static void set_daemon(void)
{
    clearenv();
    assert_int_equal(setenv("HOME", "/var/lib/leat", 1), 0);
    assert_int_equal(setenv("USER", "leat", 1), 0);
    assert_int_equal(setenv("LANG", "C.UTF-8", 1), 0);
    assert_int_equal(setenv("LD_PRELOAD_X", "evil", 1), 0);
    assert_int_equal(setenv("CREDENTIALS_DIRECTORY", "/run/credentials", 1), 0);
}

/* Goal: a task with all settings has exactly the variables that the header lists. */
static void all_is_there_and_no_more(void **state)
{
    (void)state;
    set_daemon();
    struct config config = plain_config();
    struct environment *environment = environment_new(&config, NULL, "host:7:abc");
    struct task *task = make_task(
        TEXTS("command", "x", "id", "order 7", "url", "http://x/?a=b", "Url", "", "timeout", "5s"),
        "pay", 3, false);
    struct environment_limits limits = {.max_attempts = 5, .deadline_wall_ms = 1700000001000};
    assert_non_null(environment);
    assert_non_null(task);
    char **block = environment_block(environment, task, &limits);
    assert_non_null(block);

    assert_variable(block, "PATH", "/usr/bin:/bin");
    assert_variable(block, "SHELL", "/bin/sh");
    assert_variable(block, "PWD", "/srv");
    assert_variable(block, "HOME", "/var/lib/leat");
    assert_variable(block, "USER", "leat");
    assert_variable(block, "LOGNAME", "leat");
    assert_variable(block, "LANG", "C.UTF-8");
    assert_variable(block, "LEAT_QUEUE", "mails");
    assert_variable(block, "LEAT_WORKER", "host:7:abc");
    assert_variable(block, "LEAT_TASK", "1700000000123-0");
    assert_variable(block, "LEAT_ID", "order 7");
    assert_variable(block, "LEAT_ATTEMPT", "2");
    assert_variable(block, "LEAT_MAX_ATTEMPTS", "5");
    assert_variable(block, "LEAT_FENCE", "3");
    assert_variable(block, "LEAT_ENQUEUED_AT", "1700000000.123");
    assert_variable(block, "LEAT_DEADLINE", "1700000001.000");
    assert_variable(block, "TASK_url", "http://x/?a=b");
    assert_variable(block, "TASK_Url", "");
    assert_int_equal(count(block), 18);
    free(block);
    task_free(task);
    environment_free(environment);
}

/* Goal: PWD is the task's directory, otherwise the configured one, otherwise the home. */
static void directories_are_told(void **state)
{
    (void)state;
    set_daemon();
    struct config config = plain_config();
    for (int configured = 1; configured >= 0; configured--) {
        config.task.directory = (char *)(configured ? "/srv" : NULL);
        struct environment *environment = environment_new(&config, NULL, "host:7:abc");
        struct task *own =
            make_task(TEXTS("command", "x", "directory", "/srv/own"), NULL, 0, false);
        struct task *other = make_task(TEXTS("command", "x", "directory", ""), NULL, 0, false);
        const struct environment_limits limits = {.max_attempts = 5};
        assert_non_null(environment);
        assert_non_null(own);
        assert_non_null(other);
        assert_string_equal(environment_home(environment), "/var/lib/leat");
        char **block = environment_block(environment, own, &limits);
        assert_non_null(block);
        assert_variable(block, "PWD", "/srv/own");
        assert_variable(block, "HOME", "/var/lib/leat");
        assert_null(find(block, "TASK_directory"));
        free(block);
        block = environment_block(environment, other, &limits);
        assert_non_null(block);
        assert_variable(block, "PWD", configured ? "/srv" : "/var/lib/leat");
        free(block);
        task_free(own);
        task_free(other);
        environment_free(environment);
    }
}

/* Goal: LEAT_BATCH is the number of tasks; with several, no variable of a single task is set. */
static void batches_are_counted(void **state)
{
    (void)state;
    set_daemon();
    struct config config = plain_config();
    struct environment *environment = environment_new(&config, NULL, "host:7:abc");
    struct task *task = make_task(TEXTS("command", "x", "url", "y"), NULL, 0, false);
    struct environment_limits limits = {
        .max_attempts = 5, .deadline_wall_ms = 1700000001000, .batch = 1};
    assert_non_null(environment);
    assert_non_null(task);
    char **one = environment_block(environment, task, &limits);
    limits.batch = 1000;
    char **many = environment_block(environment, NULL, &limits);
    assert_non_null(one);
    assert_non_null(many);
    assert_variable(one, "LEAT_BATCH", "1");
    assert_variable(one, "LEAT_TASK", "1700000000123-0");
    assert_variable(many, "LEAT_BATCH", "1000");
    assert_variable(many, "LEAT_QUEUE", "mails");
    assert_variable(many, "LEAT_DEADLINE", "1700000001.000");
    for (size_t i = 0; many[i]; i++) {
        assert_int_not_equal(strncmp(many[i], "TASK_", 5), 0);
    }
    /* LEAT_TASK, LEAT_ATTEMPT, LEAT_MAX_ATTEMPTS, LEAT_FENCE, LEAT_ENQUEUED_AT, TASK_url */
    assert_int_equal(count(one), count(many) + 6);
    free(one);
    free(many);
    task_free(task);
    environment_free(environment);
}

/* Goal: variables without a value are absent: no label, no deadline. */
static void absent_things_are_absent(void **state)
{
    (void)state;
    set_daemon();
    unsetenv("LANG");
    struct config config = plain_config();
    struct environment *environment = environment_new(&config, NULL, "w");
    struct task *task = make_task(TEXTS("command", "x"), NULL, 0, false);
    struct environment_limits limits = {.max_attempts = 5};
    assert_non_null(environment);
    assert_non_null(task);
    char **block = environment_block(environment, task, &limits);
    assert_non_null(block);
    assert_variable(block, "LEAT_ID", NULL);
    assert_variable(block, "LEAT_DEADLINE", NULL);
    assert_variable(block, "LANG", NULL);
    assert_int_equal(count(block), 13);
    free(block);
    task_free(task);
    environment_free(environment);
}

/* Goal: the configuration adds and replaces variables, but not those of tasks or of leat. */
static void config_adds_and_replaces(void **state)
{
    (void)state;
    set_daemon();
    char *entries[] = {(char *)"HOME=/tmp",   (char *)"API=x=y",       (char *)"API=z",
                       (char *)"TASK_url=no", (char *)"LEAT_QUEUE=no", (char *)"EMPTY=",
                       (char *)"HOMES=1",     (char *)"nonsense",      NULL};
    struct config config = plain_config();
    config.task.environment = entries;
    struct environment *environment = environment_new(&config, NULL, "w");
    struct task *task = make_task(TEXTS("command", "x"), NULL, 0, false);
    struct environment_limits limits = {.max_attempts = 5};
    assert_non_null(environment);
    assert_non_null(task);
    char **block = environment_block(environment, task, &limits);
    assert_non_null(block);
    assert_variable(block, "HOME", "/tmp");
    assert_variable(block, "HOMES", "1");
    assert_variable(block, "API", "z");
    assert_variable(block, "EMPTY", "");
    assert_variable(block, "TASK_url", NULL);
    assert_variable(block, "LEAT_QUEUE", "mails");
    assert_variable(block, "nonsense", NULL);
    free(block);
    task_free(task);
    environment_free(environment);
}

/* Goal: names that would change how programs run appear only behind TASK_, and invalid names are
 * refused before. */
static void hostile_names_do_not_appear(void **state)
{
    (void)state;
    set_daemon();
    struct config config = plain_config();
    struct environment *environment = environment_new(&config, NULL, "w");
    struct environment_limits limits = {.max_attempts = 5};
    static const char *const names[] = {"LD_PRELOAD", "BASH_ENV", "ENV", "IFS", "PATH", "HOME"};
    assert_non_null(environment);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct task *task = make_task(TEXTS("command", "x", names[i], "/evil"), NULL, 0, false);
        assert_non_null(task);
        char **block = environment_block(environment, task, &limits);
        assert_non_null(block);
        for (size_t j = 0; block[j]; j++) {
            assert_true(!strstr(block[j], "/evil") || strncmp(block[j], "TASK_", 5) == 0);
        }
        free(block);
        task_free(task);
    }
    assert_null(make_task(TEXTS("command", "x", "BASH_FUNC_x%%", "() { :; }"), NULL, 0, false));
    assert_null(make_task(TEXTS("command", "x", "A=B", "c"), NULL, 0, false));
    environment_free(environment);
}

/* Goal: without HOME and USER they come from the system's user database. */
static void user_comes_from_the_system(void **state)
{
    (void)state;
    clearenv();
    struct config config = plain_config();
    struct environment *environment = environment_new(&config, NULL, "w");
    struct task *task = make_task(TEXTS("command", "x"), NULL, 0, false);
    struct environment_limits limits = {.max_attempts = 5};
    assert_non_null(environment);
    assert_non_null(task);
    char **block = environment_block(environment, task, &limits);
    assert_non_null(block);
    if (find(block, "HOME")) {
        assert_true(find(block, "HOME")[0] == '/');
        assert_string_equal(find(block, "USER"), find(block, "LOGNAME"));
    }
    free(block);
    task_free(task);
    environment_free(environment);
}

/* Goal: a thousand fields of a kilobyte and extreme numbers fit: the size of the block is right. */
static void large_blocks_fit(void **state)
{
    (void)state;
    enum { FIELDS = 990, VALUE = 1000 };
    set_daemon();
    struct config config = plain_config();
    struct environment *environment = environment_new(&config, NULL, "w");
    static char names[FIELDS][16], value[VALUE + 1];
    static const char *texts[2 * FIELDS + 4];
    memset(value, 'v', VALUE);
    texts[0] = "command";
    texts[1] = "x";
    for (size_t i = 0; i < FIELDS; i++) {
        assert_true(snprintf(names[i], sizeof names[i], "n%zu", i) > 0);
        texts[2 + 2 * i] = names[i];
        texts[3 + 2 * i] = value;
    }
    struct task *task = make_task(texts, NULL, 0, false);
    assert_non_null(task);
    task->attempt = task->fence = task->enqueued_ms = INT64_MAX;
    struct environment_limits limits = {.max_attempts = INT64_MIN, .deadline_wall_ms = INT64_MAX};
    char **block = environment_block(environment, task, &limits);
    assert_non_null(block);
    assert_variable(block, "TASK_n989", value);
    assert_variable(block, "LEAT_FENCE", "9223372036854775807");
    assert_variable(block, "LEAT_MAX_ATTEMPTS", "-9223372036854775808");
    assert_variable(block, "LEAT_DEADLINE", "9223372036854775.807");
    free(block);
    task_free(task);
    environment_free(environment);
}

/* Goal: a trace context is in the variables that tracing programs read, beside the fields, and
 * replaces those of [task] environment. One that is not well-formed is only a field. */
static void traces_are_passed_on(void **state)
{
    (void)state;
    set_daemon();
    static const char parent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    char *entries[] = {(char *)"TRACEPARENT=configured", (char *)"BAGGAGE=configured", NULL};
    struct config config = plain_config();
    config.task.environment = entries;
    struct environment *environment = environment_new(&config, NULL, "w");
    const struct environment_limits limits = {.max_attempts = 5};
    struct task *task = make_task(TEXTS("command", "x", "traceparent", parent, "tracestate", "a=1"),
                                  NULL, 0, false);
    struct task *other = make_task(
        TEXTS("command", "x", "traceparent", "00-1-2-3", "tracestate", "a=1"), NULL, 0, false);
    assert_non_null(environment);
    assert_non_null(task);
    assert_non_null(other);
    char **block = environment_block(environment, task, &limits);
    assert_non_null(block);
    assert_variable(block, "TRACEPARENT", parent);
    assert_variable(block, "TASK_traceparent", parent);
    assert_variable(block, "TRACESTATE", "a=1");
    assert_variable(block, "BAGGAGE", "configured");
    free(block);
    block = environment_block(environment, other, &limits);
    assert_non_null(block);
    assert_variable(block, "TRACEPARENT", "configured");
    assert_variable(block, "TASK_traceparent", "00-1-2-3");
    assert_variable(block, "TRACESTATE", NULL);
    free(block);
    task_free(task);
    task_free(other);
    environment_free(environment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directories_are_told),       cmocka_unit_test(batches_are_counted),
        cmocka_unit_test(all_is_there_and_no_more),   cmocka_unit_test(absent_things_are_absent),
        cmocka_unit_test(config_adds_and_replaces),   cmocka_unit_test(hostile_names_do_not_appear),
        cmocka_unit_test(user_comes_from_the_system), cmocka_unit_test(large_blocks_fit),
        cmocka_unit_test(traces_are_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
