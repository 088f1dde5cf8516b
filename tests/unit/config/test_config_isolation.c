/* Resource limits of tasks: reading [isolation], [limits] and priorities, and their errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/file/load.h"
#include "exec/start/allowance.h"

#define QUEUE "[queue]\nname = q\n"

static struct config *parse(const char *lines)
{
    struct config *config = NULL;
    struct buffer errors = BUFFER_INIT;
    char text[1024];
    int length = snprintf(text, sizeof text, QUEUE "%s", lines);

    if (config_parse("f", text, (size_t)length, &config, &errors) != 0) {
        fail_msg("%.*s", (int)errors.size, errors.data);
    }
    buffer_free(&errors);
    return config;
}

static void assert_wrong(const char *lines, const char *expected)
{
    struct config *config = NULL;
    struct buffer errors = BUFFER_INIT;
    char text[1024];
    int length = snprintf(text, sizeof text, QUEUE "%s", lines);

    assert_int_equal(config_parse("f", text, (size_t)length, &config, &errors), -1);
    assert_int_equal(buffer_append(&errors, "", 1), 0);
    if (!strstr(errors.data, expected)) {
        fail_msg("%s: says %s", lines, errors.data);
    }
    buffer_free(&errors);
}

/* Goal: limits are read with their units; none is 0. */
static void bounds_are_read(void **state)
{
    (void)state;
    struct config *config =
        parse("[isolation]\ncgroup = required\nmemory_max = 512M\nmemory_high = 256M\npids_max = "
              "200\ncpu_max = 150%\ncpu_weight = 10\nio_weight = none\n");

    assert_int_equal(config->isolation.cgroup, CONFIG_CGROUP_REQUIRED);
    assert_int_equal(config->isolation.memory_max, INT64_C(512) << 20);
    assert_int_equal(config->isolation.memory_high, INT64_C(256) << 20);
    assert_int_equal(config->isolation.pids_max, 200);
    assert_int_equal(config->isolation.cpu_max, 150);
    assert_int_equal(config->isolation.cpu_weight, 10);
    assert_int_equal(config->isolation.io_weight, 0);
    config_free(config);
}

/* Goal: only configured limits are applied, and none by default. SIGXCPU comes before SIGKILL. */
static void allowances_are_made(void **state)
{
    (void)state;
    struct allowance allowance;
    struct config *config = parse("");

    allowance_make(&allowance, config);
    assert_int_equal(allowance.limit_count, 0);
    assert_false(allowance.has_nice || allowance.has_ionice || allowance.oom_score_adj[0]);
    config_free(config);

    config = parse("[limits]\ncpu_time = 1m\ncore = none\nopen_files = 100\nstack = inherit\n"
                   "[task]\nnice = -5\nionice = best-effort 7\noom_score_adj = -1000\n");
    allowance_make(&allowance, config);
    assert_int_equal(allowance.limit_count, 3);
    assert_true(allowance_limits(&allowance, RLIMIT_NOFILE));
    assert_false(allowance_limits(&allowance, RLIMIT_STACK));
    for (size_t i = 0; i < allowance.limit_count; i++) {
        const struct rlimit *limit = &allowance.limits[i].limit;

        if (allowance.limits[i].resource == RLIMIT_CPU) {
            assert_int_equal(limit->rlim_cur, 60);
            assert_int_equal(limit->rlim_max, 61);
        } else if (allowance.limits[i].resource == RLIMIT_CORE) {
            assert_true(limit->rlim_cur == RLIM_INFINITY && limit->rlim_max == RLIM_INFINITY);
        }
    }
    assert_int_equal(allowance.nice, -5);
    assert_int_equal(allowance.ionice, (2 << 13) | 7);
    assert_string_equal(allowance.oom_score_adj, "-1000");
    config_free(config);
}

/* Goal: errors say which values are impossible or have no effect, and what to do. */
static void wrong_ones_are_told(void **state)
{
    (void)state;
    assert_wrong("[isolation]\ncgroup = off\npids_max = 5\n",
                 "f:5: pids_max: requires cgroups, but cgroup is off; remove one of them\n");
    assert_wrong("[isolation]\nmemory_high = 2M\nmemory_max = 1M\n",
                 "f:5: memory_high: has no effect above memory_max; lower memory_high or raise "
                 "memory_max\n");
    assert_wrong("[isolation]\ncpu_max = 50\n",
                 "f:4: cpu_max: \"50\" is not a percentage; write it like 50%\n");
    assert_wrong("[isolation]\ncpu_max = 0%\n",
                 "f:4: cpu_max: \"0%\" is out of range; use 1% to 1000000%, or none\n");
    assert_wrong("[isolation]\ncgroup = yes\n", "is not one of auto, required and off");
    assert_wrong("[limits]\ncpu_time = 1500ms\n",
                 "f:4: cpu_time: \"1500ms\" is not a whole number of seconds");
    assert_wrong("[limits]\nstack = 1K\n", "out of range; use 64K to");
    assert_wrong("[task]\nionice = best-effort 8\n", "did you mean best-effort");
    assert_wrong("[task]\nnice = 20\n", "use -20 to 19, or inherit");
    assert_wrong("[intake]\nlists = a\nfield = memory_max\n", "use payload, command or");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_read),
        cmocka_unit_test(allowances_are_made),
        cmocka_unit_test(wrong_ones_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
