// File systems that may hang are found in the table of mounts, and a task on one that hangs stops
// no other task. Needs root and FUSE; otherwise the tests are skipped.
#include "../lib/runner_trial.h"

#include <sched.h>
#include <sys/mount.h>

#include "base/process/mounts.h"

/* Mounts in a private namespace, which only this process sees. */
static bool own_mounts;

/* Mounts a FUSE file system whose server never answers. Returns the descriptor of the server, or -1
 * if this host does not allow it. */
static int mount_hanging(const char *path)
{
    char options[128];
    int server = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (server < 0) {
        return -1;
    }
    assert_true(
        snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", server) > 0);
    if (!own_mounts || mount("hanging", path, "fuse.hanging", 0, options) < 0) {
        close(server);
        return -1;
    }
    return server;
}

/* Goal: ordinary paths are local; a missing path is not remote. */
static void ordinary_places_are_local(void **state)
{
    const struct trial *trial = *state;
    assert_false(mounts_is_remote("/"));
    assert_false(mounts_is_remote("/proc"));
    assert_false(mounts_is_remote("/bin/sh"));
    assert_false(mounts_is_remote(trial->folder));
    assert_false(mounts_is_remote("/nonexistent/x"));
    assert_false(mounts_is_remote(""));
}

// Goal: a directory that hangs after the start blocks neither the loop nor other tasks; its task is
// ended in time, as a fault of the host.
static void hanging_directory_stops_nobody(void **state)
{
    struct trial *trial = *state;
    char path[64], below[80], link[64], reason[160];
    assert_true(snprintf(path, sizeof path, "%s/mount", trial->folder) > 0);
    assert_true(snprintf(below, sizeof below, "%s/below", path) > 0);
    assert_true(snprintf(link, sizeof link, "%s/link", trial->folder) > 0);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(symlink(path, link), 0);
    trial->config.task.directory = path;
    trial->config.task.kill_grace_ms = 100;
    runner_set_config(trial->runner, &trial->config);
    assert_ending(run(trial, "/bin/true"), "exit 0");
    assert_ending(run(trial, "/bin/true"), "exit 0");
    trial->config.task.timeout_ms = 3000;
    runner_set_config(trial->runner, &trial->config);

    int server = mount_hanging(path);
    if (server < 0) {
        print_message("no FUSE mounts here: %s\n", strerror(errno));
        skip();
    }
    assert_true(mounts_is_remote(path));
    assert_true(mounts_is_remote(below));
    assert_true(mounts_is_remote(link));

    /* one turn of the loop, in which the runner learns of the mount */
    ev_run(trial->loop, EVRUN_NOWAIT);
    begin(trial, "/bin/true"); /* it returns, though the directory never answers */
    await(trial, 1);
    assert_int_equal(umount2(path, MNT_DETACH), 0);
    close(server);
    assert_ending(trial->last, "host");
    assert_true(snprintf(reason, sizeof reason,
                         "cannot change to directory %s: the call does not return", path) > 0);
    assert_string_equal(trial->last->reason, reason);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ordinary_places_are_local),
        TEST(hanging_directory_stops_nobody),
    };
    own_mounts =
        unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
