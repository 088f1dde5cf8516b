// Tasks from start to end: exit codes, stdin, inherited state, and failed starts.
#include "../lib/runner_trial.h"

// Goal: exit codes and signals are reported unchanged, with times and the attempt's numbers.
static void endings_arrive(void **state)
{
    struct trial *trial = *state;
    int64_t before_ms = clock_wall_ms();
    struct attempt *attempt = run(trial, "/bin/true");
    assert_ending(attempt, "exit 0");
    assert_int_equal(attempt->ending.attempt, 2);
    assert_in_range(attempt->started_wall_ms, before_ms, clock_wall_ms());
    assert_true(attempt->duration_us > 0 && attempt->duration_us < 60000000);
    assert_ending(run(trial, "false"), "exit 1");
    assert_ending(run(trial, "exit 3"), "exit 3");
    assert_ending(run(trial, "exit 255"), "exit 255");
    assert_ending(run(trial, "kill -9 $$"), "killed by SIGKILL");
    assert_ending(run(trial, "ulimit -c 0; kill -SEGV $$"), "SIGSEGV");
    assert_ending(run(trial, "kill -TERM $$; sleep 9"), "SIGTERM");
}

// Goal: both streams are kept apart; a silent task has no tails.
static void output_is_kept(void **state)
{
    struct trial *trial = *state;
    struct attempt *attempt = run(trial, "echo out; echo err >&2; printf end");
    assert_bytes(attempt->stdout_tail, "out\nend");
    assert_bytes(attempt->stderr_tail, "err\n");
    attempt = run(trial, "/bin/true");
    assert_null(attempt->stdout_tail.data);
    assert_null(attempt->stderr_tail.data);
}

// Goal: the output of a long-running task is read while it runs: more than a pipe holds.
static void output_is_read_meanwhile(void **state)
{
    struct trial *trial = *state;
    struct attempt *attempt = run(trial, "head -c 1000000 /dev/zero; echo; echo last");
    assert_ending(attempt, "exit 0");
    assert_int_equal(attempt->stdout_tail.size, 4096);
    assert_memory_equal(attempt->stdout_tail.data + 4096 - 6, "\nlast\n", 6);
}

/* Runs the command with and without the shortcut past the shell, which /usr/bin/sh does not
 * have, and expects the same of both. */
static void assert_same(struct trial *trial, const char *command)
{
    struct attempt *attempt = run(trial, command);
    struct ending ending = attempt->ending;
    struct bytes out = attempt->stdout_tail, err = attempt->stderr_tail;
    attempt->stdout_tail = attempt->stderr_tail = (struct bytes){NULL, 0};

    trial->config.task.shell = (char *)"/usr/bin/sh";
    runner_set_config(trial->runner, &trial->config);
    attempt = run(trial, command);
    trial->config.task.shell = (char *)"/bin/sh";
    runner_set_config(trial->runner, &trial->config);

    if (ending.cause != attempt->ending.cause || ending.exit_code != attempt->ending.exit_code ||
        out.size != attempt->stdout_tail.size || err.size != attempt->stderr_tail.size ||
        memcmp(out.size ? out.data : "", out.size ? attempt->stdout_tail.data : "", out.size) !=
            0 ||
        memcmp(err.size ? err.data : "", err.size ? attempt->stderr_tail.data : "", err.size) !=
            0) {
        fail_msg("%s: differs: exit %d and %d, \"%.*s\" and \"%.*s\"", command, ending.exit_code,
                 attempt->ending.exit_code, (int)err.size, err.data, (int)attempt->stderr_tail.size,
                 attempt->stderr_tail.data);
    }
    free((char *)out.data);
    free((char *)err.data);
}

// Goal: commands that are executed without a shell do the same as with one: output, messages and
// exit codes, missing and unusual programs included.
static void shortcut_changes_nothing(void **state)
{
    struct trial *trial = *state;
    char path[256];
    static const char *const commands[] = {"/bin/echo a  b",
                                           "echo a  b",
                                           "pwd",
                                           "true",
                                           "basename /x/y.z .z",
                                           "/nonexistent/x",
                                           "nonexistent",
                                           "/etc/passwd x",
                                           "/tmp",
                                           "./script a b",
                                           "script a b",
                                           "./program c",
                                           "program c",
                                           "./plain",
                                           "plain",
                                           "./missing-interpreter",
                                           "hidden",
                                           "folder",
                                           "./folder",
                                           "-x",
                                           "+x",
                                           "%1",
                                           "A=B",
                                           "A=B printenv A",
                                           "",
                                           "  ",
                                           "./folder/program",
                                           "printenv PWD",
                                           "printenv PATH TASK_x"};
    write_text(trial, "script", "echo \"script: $*\"\n", 0755);
    write_text(trial, "program", "#!/bin/sh\necho \"$0: $*\"\n", 0755);
    write_text(trial, "plain", "text\n", 0644);
    write_text(trial, "missing-interpreter", "#!/nonexistent/interpreter\n", 0755);
    assert_true(snprintf(path, sizeof path, "%s/folder", trial->folder) > 0);
    assert_int_equal(mkdir(path, 0755), 0);
    write_text(trial, "folder/program", "#!/bin/sh\necho second\n", 0755);
    write_text(trial, "folder/hidden", "#!/bin/sh\necho hidden\n", 0755);
    write_text(trial, "folder/plain", "#!/bin/sh\necho behind\n", 0755);
    write_text(trial, "hidden", "not executable", 0644);

    assert_true(snprintf(path, sizeof path, "%s:%s/folder:/nonexistent::/usr/bin:/bin",
                         trial->folder, trial->folder) > 0);
    trial->config.task.path = path;
    runner_set_config(trial->runner, &trial->config);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (commands[i][0]) {
            assert_same(trial, commands[i]);
        }
    }
    trial->config.task.path = (char *)"/usr/bin:/bin";
    runner_set_config(trial->runner, &trial->config);
}

// Goal: a payload arrives on stdin byte by byte: empty, 128 KiB and 64 MiB, with NULs; no process
// can change it.
static void payloads_arrive(void **state)
{
    struct trial *trial = *state;
    static const size_t sizes[] = {0, 1, 131072, 64 << 20};
    char *payload = malloc(64 << 20);
    assert_non_null(payload);
    for (size_t i = 0; i < (64 << 20); i++) {
        payload[i] = (char)((i * 2654435761U) >> 13);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        write_file(trial, "expected", payload, sizes[i], 0600);
        struct task *task = make_task(TEXTS("command", "cmp - expected && cmp /dev/stdin expected"),
                                      payload, sizes[i], false);
        assert_ending(run_task(trial, task), "exit 0");
    }
    assert_ending(
        run_task(trial, make_task(TEXTS("command", "echo x >/proc/self/fd/0"), "abc", 3, false)),
        "exit 2");
    free(payload);
}

// Goal: without a payload, or with a config that passes none, stdin is /dev/null.
static void no_payload_is_null(void **state)
{
    struct trial *trial = *state;
    assert_bytes(run(trial, "readlink /proc/self/fd/0")->stdout_tail, "/dev/null\n");
    trial->config.task.stdin_from = CONFIG_STDIN_NULL;
    struct task *task = make_task(TEXTS("command", "wc -c"), "payload", 7, false);
    assert_bytes(run_task(trial, task)->stdout_tail, "0\n");
}

/* State that a bad service manager, or a careless user, may leave us. */
static void inherit_badly(void)
{
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGTERM);
    sigaddset(&some, SIGUSR1);
    sigaddset(&some, SIGRTMAX);
    assert_int_equal(sigprocmask(SIG_BLOCK, &some, NULL), 0);
    assert_true(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    assert_true(signal(SIGHUP, SIG_IGN) != SIG_ERR);
    assert_true(signal(SIGRTMAX, SIG_IGN) != SIG_ERR);
    assert_int_equal(dup2(1, 77), 77);
    umask(0);
}

static void inherit_well(void)
{
    sigset_t none;
    sigemptyset(&none);
    assert_int_equal(sigprocmask(SIG_SETMASK, &none, NULL), 0);
    assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    assert_true(signal(SIGHUP, SIG_DFL) != SIG_ERR);
    assert_true(signal(SIGRTMAX, SIG_DFL) != SIG_ERR);
    assert_int_equal(close(77), 0);
    umask(022);
}

// Goal: whatever the daemon inherited, tasks have default signals, three descriptors, their own
// session, and the configured umask, directory and limit.
static void nothing_bad_is_inherited(void **state)
{
    struct trial *trial = *state;
    char expected[64];
    inherit_badly();
    assert_bytes(run(trial, "sed -n '/^Sig[BIC]/p' /proc/self/status")->stdout_tail,
                 "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
                 "SigCgt:\t0000000000000000\n");
    assert_bytes(run(trial, "ls /proc/self/fd")->stdout_tail, "0\n1\n2\n3\n");
    assert_bytes(run(trial, "umask; ulimit -Sn")->stdout_tail, "0027\n300\n");
    assert_true(snprintf(expected, sizeof expected, "%s\n", trial->folder) > 0);
    assert_bytes(run(trial, "readlink /proc/self/cwd")->stdout_tail, expected);
    assert_bytes(run(trial, "set -- $(cat /proc/$$/stat); [ $1 = $5 ] && [ $1 = $6 ] && echo own")
                     ->stdout_tail,
                 "own\n");
    inherit_well();
}

static void assert_failure(const struct attempt *attempt, enum cause cause, const char *reason)
{
    assert_int_equal(attempt->ending.cause, cause);
    assert_string_equal(attempt->reason, reason);
}

// Goal: a start that fails because of the host says why, runs nothing and does not count as the
// task's failure.
static void host_faults_are_told(void **state)
{
    struct trial *trial = *state;
    struct task *task;
    trial->config.task.directory = (char *)"/nonexistent";
    runner_set_config(trial->runner, &trial->config);
    assert_failure(run(trial, "/bin/true"), CAUSE_HOST,
                   "cannot change to directory /nonexistent: No such file or directory");

    trial->config.task.directory = trial->folder;
    trial->config.task.shell = (char *)"/nonexistent/sh";
    runner_set_config(trial->runner, &trial->config);
    assert_failure(run(trial, "/bin/true"), CAUSE_HOST,
                   "cannot execute /nonexistent/sh: No such file or directory");

    trial->config.task.shell = (char *)"/bin/sh";
    trial->config.task.command = (char *)"/nonexistent/thumbnail --all 2>&1";
    runner_set_config(trial->runner, &trial->config);
    task = make_task(TEXTS("url", "x"), NULL, 0, true);
    assert_failure(run_task(trial, task), CAUSE_HOST,
                   "cannot execute /nonexistent/thumbnail: No such file or directory");

    trial->config.task.command = (char *)"/etc/passwd";
    runner_set_config(trial->runner, &trial->config);
    task = make_task(TEXTS("url", "x"), NULL, 0, true);
    assert_failure(run_task(trial, task), CAUSE_HOST,
                   "cannot execute /etc/passwd: Permission denied");
}

// Goal: 126 and 127 of a configured command are host faults, unless the config has a rule for them;
// of a task's own command they are exit codes.
static void missing_programs_are_host_faults(void **state)
{
    struct trial *trial = *state;
    assert_ending(run(trial, "nonexistent"), "exit 127");
    assert_ending(run(trial, "/nonexistent"), "exit 127");

    trial->config.task.command = (char *)"nonexistent $TASK_url";
    runner_set_config(trial->runner, &trial->config);
    assert_failure(run_task(trial, make_task(TEXTS("url", "x"), NULL, 0, true)), CAUSE_HOST,
                   "the configured command cannot be executed: exit 127");
    trial->config.task.command = (char *)"exit 126";
    runner_set_config(trial->runner, &trial->config);
    assert_failure(run_task(trial, make_task(TEXTS("url", "x"), NULL, 0, true)), CAUSE_HOST,
                   "the configured command cannot be executed: exit 126");
    trial->config.retry.exits.of[126].kind = CONFIG_RULE_DEAD;
    assert_ending(run_task(trial, make_task(TEXTS("url", "x"), NULL, 0, true)), "exit 126");
}

// Goal: a configured command runs for every task, with the task's fields and payload.
static void configured_commands_run(void **state)
{
    struct trial *trial = *state;
    trial->config.task.command = (char *)"echo \"$TASK_url $(cat)\"; exit 4";
    runner_set_config(trial->runner, &trial->config);
    struct attempt *attempt =
        run_task(trial, make_task(TEXTS("url", "a b", "size", "1"), "pay", 3, true));
    assert_ending(attempt, "exit 4");
    assert_bytes(attempt->stdout_tail, "a b pay\n");

    trial->config.task.command = (char *)"/bin/echo plain words";
    runner_set_config(trial->runner, &trial->config);
    attempt = run_task(trial, make_task(TEXTS("url", "x"), NULL, 0, true));
    assert_bytes(attempt->stdout_tail, "plain words\n");
}

// Goal: fields that the kernel does not accept as arguments refuse the task, and are no host fault.
static void too_long_is_refused(void **state)
{
    struct trial *trial = *state;
    static char value[120000];
    struct rlimit before, small = {.rlim_cur = 1 << 20};
    memset(value, 'v', sizeof value - 1);
    assert_int_equal(getrlimit(RLIMIT_STACK, &before), 0);
    small.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_STACK, &small), 0);
    struct task *task = make_task(TEXTS("command", "/bin/true", "a", value, "b", value, "c", value),
                                  NULL, 0, false);
    struct attempt *attempt = run_task(trial, task);
    assert_int_equal(setrlimit(RLIMIT_STACK, &before), 0);
    assert_failure(attempt, CAUSE_CANNOT_EXECUTE, "cannot execute /bin/sh: Argument list too long");
}

// Goal: without descriptors a start fails as a host fault and leaves none behind, and the next one
// with them works.
static void no_descriptors_is_a_host_fault(void **state)
{
    struct trial *trial = *state;
    struct rlimit before;
    assert_ending(run(trial, "/bin/true"), "exit 0");
    size_t descriptors = count_descriptors();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    size_t faults = 0;
    for (struct rlimit few = {3, before.rlim_max}; few.rlim_cur < before.rlim_cur; few.rlim_cur++) {
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        struct task *task = make_task(TEXTS("command", "cat"), "pay", 3, false);
        struct attempt *attempt = run_task(trial, task);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(count_descriptors(), descriptors);
        if (attempt->ending.cause == CAUSE_EXIT) {
            break;
        }
        assert_int_equal(attempt->ending.cause, CAUSE_HOST);
        assert_non_null(strstr(attempt->reason, ": Too many open files"));
        faults++;
    }
    assert_true(faults >= 5); /* the payload and the ends of two pipes */
    assert_ending(run(trial, "/bin/true"), "exit 0");
}

// Goal: a refused task is reported like any other, and nothing ran.
static void refused_tasks_are_reported(void **state)
{
    struct trial *trial = *state;
    struct task *task = make_task(TEXTS("command", "echo ran"), NULL, 0, false);
    assert_non_null(task);
    assert_int_equal(runner_refuse(trial->runner, task, "no such thing"), 0);
    assert_int_equal(trial->ended, 1);
    assert_failure(trial->last, CAUSE_REFUSED, "no such thing");
    assert_null(trial->last->stdout_tail.data);
    assert_int_equal(runner_count(trial->runner), 0);
}

// Goal: thousands of tasks of all kinds, many at a time, leave no descriptor and no child.
static void nothing_leaks(void **state)
{
    enum { ROUNDS = 40, WIDTH = 50 };
    struct trial *trial = *state;
    static const char *const commands[] = {"/bin/true",  "exit 1",       "echo x; echo y >&2",
                                           "kill -9 $$", "/nonexistent", "sleep 100 & exit 0"};
    trial->config.task.kill_grace_ms = 20;
    assert_ending(run(trial, "/bin/true"), "exit 0");
    size_t descriptors = count_descriptors();
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < WIDTH; i++) {
            const char *command = commands[i % (sizeof commands / sizeof *commands)];
            start_task_now(trial, make_task(TEXTS("command", command), "pay", i % 3, false));
        }
        assert_int_equal(runner_count(trial->runner), WIDTH);
        await(trial, WIDTH);
    }
    assert_int_equal(runner_count(trial->runner), 0);
    assert_int_equal(count_descriptors(), descriptors);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(endings_arrive),
        TEST(output_is_kept),
        TEST(output_is_read_meanwhile),
        TEST(shortcut_changes_nothing),
        TEST(payloads_arrive),
        TEST(no_payload_is_null),
        TEST(nothing_bad_is_inherited),
        TEST(host_faults_are_told),
        TEST(missing_programs_are_host_faults),
        TEST(configured_commands_run),
        TEST(too_long_is_refused),
        TEST(no_descriptors_is_a_host_fault),
        TEST(refused_tasks_are_reported),
        TEST(nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
