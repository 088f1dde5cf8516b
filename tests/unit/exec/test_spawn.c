// Starting a process on a file system that may hang: it is forked, nothing waits for it, and its
// progress is known in the end.
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec/guard/guard_entry.h"
#include "exec/start/spawn.h"

struct files {
    int input, output;
    int reader;
};

static struct files open_files(void)
{
    int ends[2];
    struct files files = {.input = open("/dev/null", O_RDONLY | O_CLOEXEC)};
    assert_true(files.input > 2);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    files.reader = ends[0];
    files.output = ends[1];
    return files;
}

static struct spawn describe(const struct files *files, char **shell_words)
{
    static char *environment[] = {NULL};
    return (struct spawn){.shell = "/bin/sh",
                          .shell_words = shell_words,
                          .path = "/bin",
                          .environment = environment,
                          .directory = "/",
                          .umask = 022,
                          .input = files->input,
                          .output = files->output,
                          .error = files->output,
                          .signals = spawn_signals(),
                          .may_hang = true};
}

/* Its output, and its wait status. */
static int finish(pid_t pid, struct files *files, char *text, size_t size)
{
    int status;
    close(files->input);
    close(files->output);
    size_t used = 0;
    for (ssize_t got; (got = read(files->reader, text + used, size - 1 - used)) > 0;) {
        used += (size_t)got;
    }
    text[used] = '\0';
    close(files->reader);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

// Goal: a forked process may have descriptor 3 to write to, and descriptor 4 is not its own.
static void forked_process_gives_verdicts(void **state)
{
    (void)state;
    char *words[] = {(char *)"sh", (char *)"-c", (char *)"echo said >&3; : 2>/dev/null >&4", NULL};
    char text[256];
    int report, ends[2];
    struct spawn_failure failure;
    struct files files = open_files();
    struct spawn spawn = describe(&files, words);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    spawn.verdicts = ends[1];
    assert_true(spawn.verdicts > 3);
    pid_t pid = spawn_start(&spawn, &report, &failure);
    assert_true(pid > 0);
    close(ends[1]);
    int status = finish(pid, &files, text, sizeof text);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    assert_int_equal(read(ends[0], text, sizeof text), 5);
    assert_memory_equal(text, "said\n", 5);
    assert_true(spawn_report(report, &failure));
    close(ends[0]);
    close(report);
}

// Goal: a forked task runs with three descriptors and reports that it executed.
static void forked_task_runs(void **state)
{
    (void)state;
    char *words[] = {(char *)"sh", (char *)"-c",
                     (char *)"for f in 0 1 2 3 4 5 6 7 8 9 10 11; do "
                             "[ -e /proc/$$/fd/$f ] && echo $f; done; exit 7",
                     NULL};
    char text[256];
    int report;
    struct spawn_failure failure;
    struct files files = open_files();
    struct spawn spawn = describe(&files, words);
    pid_t pid = spawn_start(&spawn, &report, &failure);
    assert_true(pid > 0);
    assert_true(report >= 0);
    int status = finish(pid, &files, text, sizeof text);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    assert_string_equal(text, "0\n1\n2\n");
    assert_true(spawn_report(report, &failure));
    close(report);
}

// Goal: a home that cannot be entered is replaced by /, with HOME and PWD, and the reason is known
// in the end.
static void forked_task_without_a_home_is_at_the_root(void **state)
{
    (void)state;
    char *words[] = {(char *)"sh", (char *)"-c",
                     (char *)"echo $(readlink /proc/self/cwd) $HOME $PWD $OLD", NULL};
    char *environment[] = {(char *)"HOME=/nonexistent", (char *)"PWD=/nonexistent",
                           (char *)"OLD=/nonexistent", (char *)"PATH=/usr/bin:/bin", NULL};
    char text[256];
    int report;
    struct spawn_failure failure;
    struct files files = open_files();
    struct spawn spawn = describe(&files, words);
    spawn.environment = environment;
    spawn.directory = "/nonexistent";
    spawn.is_home = true;
    pid_t pid = spawn_start(&spawn, &report, &failure);
    assert_true(pid > 0);
    int status = finish(pid, &files, text, sizeof text);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_string_equal(text, "/ / / /nonexistent\n");
    assert_true(spawn_report(report, &failure));
    assert_int_equal(failure.home_error, ENOENT);
    assert_string_equal(environment[0], "HOME=/nonexistent");
    close(report);
}

static void assert_reported(struct spawn *spawn, struct files *files, enum spawn_step step,
                            int error, const char *expected)
{
    char text[256];
    int report;
    struct spawn_failure failure;
    pid_t pid = spawn_start(spawn, &report, &failure);
    assert_true(pid > 0);
    int status = finish(pid, files, text, sizeof text);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 127);
    assert_false(spawn_report(report, &failure));
    assert_int_equal(failure.step, step);
    assert_int_equal(failure.error, error);
    spawn_describe(spawn, &failure, text, sizeof text);
    assert_string_equal(text, expected);
    close(report);
}

// Goal: the step at which a forked child failed is known when it has exited.
static void forked_failures_are_reported(void **state)
{
    (void)state;
    char *words[] = {(char *)"sh", (char *)"-c", (char *)":", NULL};
    struct files files = open_files();
    struct spawn spawn = describe(&files, words);
    spawn.directory = "/nonexistent";
    assert_reported(&spawn, &files, SPAWN_DIRECTORY, ENOENT,
                    "cannot change to directory /nonexistent: No such file or directory");
    files = open_files();
    spawn = describe(&files, words);
    spawn.shell = "/etc/passwd";
    assert_reported(&spawn, &files, SPAWN_EXECUTE, EACCES,
                    "cannot execute /etc/passwd: Permission denied");
    files = open_files();
    spawn = describe(&files, words);
    spawn.program = "/nonexistent";
    assert_reported(&spawn, &files, SPAWN_PROGRAM, ENOENT,
                    "cannot execute /nonexistent: No such file or directory");
}

// Goal: a child that was killed before it executed counts as not executed, and the step at which it
// hung is known.
static void killed_on_the_way_is_no_execution(void **state)
{
    (void)state;
    int ends[2];
    struct spawn_failure failure, hung = {.step = SPAWN_DIRECTORY};
    char text[128];
    struct spawn spawn = {.directory = "/mnt/away"};
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(write(ends[1], &hung, sizeof hung), sizeof hung);
    close(ends[1]);
    assert_false(spawn_report(ends[0], &failure));
    spawn_describe(&spawn, &failure, text, sizeof text);
    assert_string_equal(text, "cannot change to directory /mnt/away: the call does not return");
    close(ends[0]);
}

// Goal: if a guard has taken the entry before the child starts, nothing is executed.
static void taken_slot_is_no_execution(void **state)
{
    (void)state;
    char *words[] = {(char *)"sh", (char *)"-c", (char *)"echo wrong", NULL};
    struct guard_entry slot = {0};
    guard_entry_arm(&slot, 1);
    assert_true(guard_entry_take(&slot, UINT64_MAX) != 0);
    struct files files = open_files();
    struct spawn spawn = describe(&files, words);
    spawn.entry = &slot;
    assert_reported(&spawn, &files, SPAWN_LATE, ETIME,
                    "the lease expired before the start: Timer expired");

    int report;
    struct spawn_failure failure;
    files = open_files();
    spawn = describe(&files, words);
    spawn.entry = &slot;
    spawn.may_hang = false;
    assert_int_equal(spawn_start(&spawn, &report, &failure), -1);
    assert_int_equal(failure.step, SPAWN_LATE);
    close(files.input);
    close(files.output);
    close(files.reader);
}

// Goal: a child writes its pid before it executes.
static void armed_slot_has_the_number(void **state)
{
    (void)state;
    char *words[] = {(char *)"sh", (char *)"-c", (char *)"echo $$", NULL};
    char text[32];
    int report;
    struct spawn_failure failure;
    struct guard_entry slot = {0};
    guard_entry_arm(&slot, GUARD_NEVER);
    struct files files = open_files();
    struct spawn spawn = describe(&files, words);
    spawn.entry = &slot;
    spawn.may_hang = false;
    pid_t pid = spawn_start(&spawn, &report, &failure);
    assert_true(pid > 0);
    assert_int_equal(slot.pid, pid);
    assert_int_equal(finish(pid, &files, text, sizeof text), 0);
    assert_int_equal(atoi(text), pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forked_process_gives_verdicts),
        cmocka_unit_test(forked_task_runs),
        cmocka_unit_test(forked_task_without_a_home_is_at_the_root),
        cmocka_unit_test(forked_failures_are_reported),
        cmocka_unit_test(killed_on_the_way_is_no_execution),
        cmocka_unit_test(taken_slot_is_no_execution),
        cmocka_unit_test(armed_slot_has_the_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
