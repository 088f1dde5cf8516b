// Lock files of workers: what they prove, and what they do not.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "exec/guard/worker_lock.h"
#include "exec/guard/worker_locks.h"
#include "exec/guard/worker_name.h"

/* In texts of files, this stands for the name of a worker of this host whose id no process has. */
#define NAME "host:7:00c0ffee"
static char own_name[128];

struct slot_index {
    char folder[64];
    char boot[64]; /* of the running kernel */
    pid_t gone;    /* a process that has ended */
};

static int set_up(void **state)
{
    char host[WORKER_NAME_HOST_SIZE];
    assert_int_equal(worker_name_host(host), 0);
    assert_true(snprintf(own_name, sizeof own_name, "%s:%d:00c0ffee", host, INT32_MAX) > 0);
    struct slot_index *slot_index = calloc(1, sizeof *slot_index);
    assert_non_null(slot_index);
    strcpy(slot_index->folder, "/tmp/leat-holds-XXXXXX");
    assert_non_null(mkdtemp(slot_index->folder));
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%63s", slot_index->boot), 1);
    fclose(file);
    slot_index->gone = fork();
    if (slot_index->gone == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(slot_index->gone, NULL, 0), slot_index->gone);
    *state = slot_index;
    return 0;
}

static int tear_down(void **state)
{
    struct slot_index *slot_index = *state;
    char **names = worker_locks_list(slot_index->folder);
    assert_non_null(names);
    for (size_t i = 0; names[i]; i++) {
        assert_int_equal(worker_locks_remove(slot_index->folder, names[i]), 0);
    }
    worker_locks_list_free(names);
    assert_int_equal(rmdir(slot_index->folder), 0);
    free(slot_index);
    return 0;
}

/* Writes the file and returns its descriptor, open for as long as its process lives. */
static int write_file(const struct slot_index *slot_index, const char *text)
{
    char path[256];
    assert_true(snprintf(path, sizeof path, "%s/%s", slot_index->folder, own_name) > 0);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (const char *at; (at = strstr(text, NAME)); text = at + strlen(NAME)) {
        assert_true(dprintf(fd, "%.*s%s", (int)(at - text), text, own_name) > 0);
    }
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    return fd;
}

static enum worker_lock_state look(const struct slot_index *slot_index,
                                   struct worker_lock_found *found)
{
    return worker_locks_look(slot_index->folder, own_name, found);
}

static enum worker_lock_state judge(const struct slot_index *slot_index, const char *text)
{
    struct worker_lock_found found;
    close(write_file(slot_index, text));
    return look(slot_index, &found);
}

// Goal: a held lock means that a process lives, whatever the lines say; the pid only says whether
// that is the daemon. Two that check at once do not take each other for the owner.
static void a_lock_is_life(void **state)
{
    const struct slot_index *slot_index = *state;
    struct worker_lock_found found;
    char text[256];
    snprintf(text, sizeof text, "worker " NAME "\nboot other\npid %d\ndead " NAME "\n", getpid());
    int fd = write_file(slot_index, text);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(look(slot_index, &found), WORKER_LOCK_LIVES);
    assert_string_equal(found.consumer, own_name);
    close(fd);
    assert_int_equal(look(slot_index, &found), WORKER_LOCK_PROVED);
    int64_t age_ms = clock_wall_ms() - found.dead_ms;
    assert_in_range(age_ms + 1000, 0, 60000); /* clocks of files are coarse */

    snprintf(text, sizeof text, "worker " NAME "\nboot %s\npid %d\n", slot_index->boot,
             slot_index->gone);
    fd = write_file(slot_index, text);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(look(slot_index, &found), WORKER_LOCK_ENDS);
    assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), 0);
    assert_int_equal(look(slot_index, &found), WORKER_LOCK_UNPROVED);
    close(fd);
}

// Goal: only a whole line of the guard's about this very worker, or another boot, is a proof.
static void what_proves(void **state)
{
    const struct slot_index *slot_index = *state;
    char text[256];
    struct {
        const char *rest;
        enum worker_lock_state state;
    } cases[] = {
        {"dead " NAME "\n", WORKER_LOCK_PROVED},
        {"", WORKER_LOCK_UNPROVED},
        {"dead " NAME, WORKER_LOCK_UNPROVED},
        {"dead host:7:0\n", WORKER_LOCK_UNPROVED},
        {"dead\n", WORKER_LOCK_UNPROVED},
        {"deadly " NAME "\n", WORKER_LOCK_UNPROVED},
        {"undead " NAME "\n", WORKER_LOCK_UNPROVED},
        {"dead " NAME " \n", WORKER_LOCK_UNPROVED},
        {"cgroup /x\nother\n\ndead " NAME "\n", WORKER_LOCK_PROVED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "worker " NAME "\nboot %s\npid %d\n%s", slot_index->boot,
                 slot_index->gone, cases[i].rest);
        assert_int_equal(judge(slot_index, text), cases[i].state);
    }
    assert_int_equal(judge(slot_index, "worker " NAME "\npid 1\n"), WORKER_LOCK_UNPROVED);
    assert_int_equal(judge(slot_index, "worker " NAME "\nboot another\npid 1\n"),
                     WORKER_LOCK_PROVED);
    assert_int_equal(judge(slot_index, "dead " NAME "\nworker"), WORKER_LOCK_NONE);
    assert_int_equal(judge(slot_index, ""), WORKER_LOCK_NONE);
    assert_int_equal(judge(slot_index, "\n\n\n"), WORKER_LOCK_NONE);
}

/* Writes a file with a proof, in the name of a worker with this process id. */
static void write_proof_of(const struct slot_index *slot_index, const char *host, pid_t pid)
{
    char path[256], text[512];
    snprintf(path, sizeof path, "%s/%s:%d:00c0ffee", slot_index->folder, host, (int)pid);
    const char *name = strrchr(path, '/') + 1;
    snprintf(text, sizeof text, "worker %s\nboot other\npid 1\ndead %s\n", name, name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static enum worker_lock_state look_at_proof_of(const struct slot_index *slot_index,
                                               const char *host, pid_t pid)
{
    char name[128];
    struct worker_lock_found found;
    snprintf(name, sizeof name, "%s:%d:00c0ffee", host, (int)pid);
    return worker_locks_look(slot_index->folder, name, &found);
}

static enum worker_lock_state judge_proof_of(const struct slot_index *slot_index, const char *host,
                                             pid_t pid)
{
    write_proof_of(slot_index, host, pid);
    return look_at_proof_of(slot_index, host, pid);
}

static pid_t start_process(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    assert_true(pid > 0);
    return pid;
}

// Goal: whatever a file says, no proof is believed while the process lives that the worker's name
// holds, nor of a worker of another host, whose processes cannot be looked at; a zombie does not
// live.
static void nothing_proves_while_the_worker_lives(void **state)
{
    const struct slot_index *slot_index = *state;
    char host[WORKER_NAME_HOST_SIZE];
    siginfo_t ended;
    assert_int_equal(worker_name_host(host), 0);
    pid_t pid = start_process();
    assert_int_equal(judge_proof_of(slot_index, host, pid), WORKER_LOCK_LIVES);
    assert_int_equal(judge_proof_of(slot_index, "another-host", pid), WORKER_LOCK_UNPROVED);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
    assert_int_equal(judge_proof_of(slot_index, host, pid), WORKER_LOCK_PROVED);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(judge_proof_of(slot_index, host, pid), WORKER_LOCK_PROVED);
}

static void end_process(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

// Goal: a process that started after the file's last change only has the same id as the worker.
static void a_reused_id_is_not_the_worker(void **state)
{
    enum { IDS = 900 }; /* files for the next ids: a process will get one of them */
    const struct slot_index *slot_index = *state;
    char host[WORKER_NAME_HOST_SIZE];
    assert_int_equal(worker_name_host(host), 0);
    pid_t first = start_process();
    end_process(first);
    for (pid_t pid = first + 1; pid < first + IDS; pid++) {
        write_proof_of(slot_index, host, pid);
    }
    enum worker_lock_state found;
    bool is_among;
    int64_t deadline_ns = clock_boot_ns() + 10000 * CLOCK_NS_PER_MS;
    do { /* the clocks are coarse */
        (void)poll(NULL, 0, 10);
        pid_t pid = start_process();
        is_among = pid > first && pid < first + IDS;
        found = look_at_proof_of(slot_index, host, pid);
        end_process(pid);
    } while (is_among && found == WORKER_LOCK_LIVES && clock_boot_ns() < deadline_ns);
    if (!is_among) {
        skip(); /* others have started that many processes meanwhile */
    }
    assert_int_equal(found, WORKER_LOCK_PROVED);
}

// Goal: the process id of a name is found only in whole names of this host.
static void names_of_workers(void **state)
{
    (void)state;
    char host[WORKER_NAME_HOST_SIZE], name[128];
    const struct {
        const char *rest;
        pid_t pid;
    } cases[] = {{":7:0", 7}, {":7", 0},  {"", 0},      {"x:7:0", 0},          {":-7:0", 0},
                 {":0:0", 0}, {"::0", 0}, {":7x:0", 0}, {":99999999999:0", 0}, {":1:", 1}};
    assert_int_equal(worker_name_host(host), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(name, sizeof name, "%s%s", host, cases[i].rest);
        assert_int_equal(worker_name_pid(name), cases[i].pid);
    }
}

// Goal: a worker sees that its own file is missing or is another one, even with the same lines.
static void a_replaced_file_is_noticed(void **state)
{
    const struct slot_index *slot_index = *state;
    struct worker_lock lock;
    char path[128];
    assert_int_equal(worker_lock_make(&lock, slot_index->folder, NAME, "-"), 0);
    assert_true(worker_lock_is_in_place(&lock));
    snprintf(path, sizeof path, "%s/moved", slot_index->folder);
    assert_int_equal(rename(lock.path, path), 0);
    assert_false(worker_lock_is_in_place(&lock));
    close(open(lock.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_false(worker_lock_is_in_place(&lock));
    assert_int_equal(rename(path, lock.path), 0);
    assert_true(worker_lock_is_in_place(&lock));
    worker_lock_drop(&lock, true);
}

// Goal: a worker that was told to stop leaves that in its file. Only a whole line about it counts.
static void tells_a_stop(void **state)
{
    const struct slot_index *slot_index = *state;
    struct worker_lock_found found;
    struct worker_lock lock;
    judge(slot_index, "worker " NAME "\nboot another\nstopped host:7:0\nstopped");
    assert_int_equal(look(slot_index, &found), WORKER_LOCK_PROVED);
    assert_false(found.stopped);
    assert_int_equal(worker_lock_make(&lock, slot_index->folder, own_name, "-"), 0);
    worker_lock_note_stop(&lock, own_name);
    worker_lock_drop(&lock, false);
    assert_int_equal(look(slot_index, &found), WORKER_LOCK_UNPROVED);
    assert_true(found.stopped);
}

// Goal: the cgroup is returned if it can be checked, because it is of this boot.
static void tells_the_cgroup(void **state)
{
    const struct slot_index *slot_index = *state;
    struct worker_lock_found found;
    char text[256];
    snprintf(text, sizeof text, "worker " NAME "\nboot %s\ncgroup /a/b\n", slot_index->boot);
    assert_int_equal(judge(slot_index, text), WORKER_LOCK_UNPROVED);
    look(slot_index, &found);
    assert_string_equal(found.cgroup, "/a/b");
    assert_int_equal(found.dead_ms, 0);
    snprintf(text, sizeof text, "worker " NAME "\nboot %s\ncgroup -\n", slot_index->boot);
    assert_int_equal(judge(slot_index, text), WORKER_LOCK_UNPROVED);
    look(slot_index, &found);
    assert_string_equal(found.cgroup, "");
}

// Goal: folders, links, fifos, foreign files and huge ones are left alone.
static void takes_nothing_else(void **state)
{
    const struct slot_index *slot_index = *state;
    struct worker_lock_found found;
    char path[256], text[8192];
    snprintf(path, sizeof path, "%s/%s", slot_index->folder, own_name);
    assert_int_equal(look(slot_index, &found), WORKER_LOCK_NONE);
    assert_int_equal(worker_locks_look("/nonexistent", own_name, &found), WORKER_LOCK_NONE);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(look(slot_index, &found), WORKER_LOCK_NONE);
    assert_int_equal(worker_locks_remove(slot_index->folder, own_name), -1);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(look(slot_index, &found), WORKER_LOCK_NONE);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(look(slot_index, &found), WORKER_LOCK_NONE);
    assert_int_equal(unlink(path), 0);

    assert_int_equal(judge(slot_index, "worker other\nboot other\ndead other\n"), WORKER_LOCK_NONE);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(judge(slot_index, text), WORKER_LOCK_NONE);
    memcpy(text, "worker ", 7);
    text[4000] = '\n';
    assert_int_equal(judge(slot_index, text), WORKER_LOCK_NONE);
    if (geteuid() == 0) {
        assert_int_equal(judge(slot_index, "worker " NAME "\nboot other\n"), WORKER_LOCK_PROVED);
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_int_equal(look(slot_index, &found), WORKER_LOCK_NONE);
    }
}

// Goal: the list has every file but those that are being made; removing a missing file is no error.
static void lists_and_removes(void **state)
{
    const struct slot_index *slot_index = *state;
    char path[256];
    close(write_file(slot_index, "x"));
    snprintf(path, sizeof path, "%s/.%s", slot_index->folder, own_name);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    char **names = worker_locks_list(slot_index->folder);
    assert_non_null(names);
    assert_string_equal(names[0], own_name);
    assert_null(names[1]);
    worker_locks_list_free(names);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(worker_locks_remove(slot_index->folder, own_name), 0);
    assert_int_equal(worker_locks_remove(slot_index->folder, own_name), 0);
    assert_int_equal(worker_locks_remove("/nonexistent", own_name), 0);
    assert_null(worker_locks_list("/nonexistent"));
    assert_int_equal(errno, ENOENT);
    worker_locks_list_free(NULL);
}

// Goal: the folder is the configured one, otherwise systemd's, otherwise below /run.
static void folder_of_a_queue(void **state)
{
    (void)state;
    const struct {
        const char *state, *environment, *folder;
    } cases[] = {
        {"/a:b", "/x", "/a:b/emails"},    {NULL, "/x", "/x/emails"},
        {NULL, "/x:/y", "/x/emails"},     {NULL, "", "/run/leat/emails"},
        {NULL, NULL, "/run/leat/emails"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(cases[i].environment ? setenv("RUNTIME_DIRECTORY", cases[i].environment, 1)
                                              : unsetenv("RUNTIME_DIRECTORY"),
                         0);
        char *folder = worker_locks_folder(cases[i].state, "emails");
        assert_string_equal(folder, cases[i].folder);
        free(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folder_of_a_queue),
        cmocka_unit_test_setup_teardown(a_lock_is_life, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_proves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_proves_while_the_worker_lives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reused_id_is_not_the_worker, set_up, tear_down),
        cmocka_unit_test(names_of_workers),
        cmocka_unit_test_setup_teardown(a_replaced_file_is_noticed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tells_a_stop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tells_the_cgroup, set_up, tear_down),
        cmocka_unit_test_setup_teardown(takes_nothing_else, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lists_and_removes, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
