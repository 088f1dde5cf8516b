/* The configuration: reading, reloading, and the sources of passwords. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/file/load.h"
#include "config/types/limits.h"
#include "config/types/scalar.h"

#define QUEUE "[queue]\nname = q\n"

/* Parses the text; fails with the errors if it is not valid. */
static struct config *parse_bytes(const char *text, size_t size)
{
    struct config *config = NULL;
    struct buffer errors = BUFFER_INIT;

    if (config_parse("f.ini", text, size, &config, &errors) != 0) {
        fail_msg("%.*s", (int)errors.size, errors.data);
    }
    assert_int_equal(errors.size, 0);
    buffer_free(&errors);
    return config;
}

static struct config *parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

/* Goal: a file with only the queue's name is valid, and every other key has its default. */
static void a_name_is_enough(void **state)
{
    (void)state;
    struct config *config = parse(QUEUE);

    assert_string_equal(config->path, "f.ini");
    assert_string_equal(config->redis.host, "127.0.0.1");
    assert_int_equal(config->redis.port, 6379);
    assert_null(config->redis.socket);
    assert_null(config->redis.user);
    assert_null(config->redis.password);
    assert_int_equal(config->redis.db, 0);
    assert_int_equal(config->redis.connect_timeout_ms, 5000);
    assert_int_equal(config->redis.command_timeout_ms, 10000);
    assert_int_equal(config->redis.keepalive_s, 60);
    assert_int_equal(config->redis.backoff_base_ms, 100);
    assert_int_equal(config->redis.backoff_cap_ms, 10000);
    assert_string_equal(config->queue.name, "q");
    assert_string_equal(config->queue.stream, "q");
    assert_string_equal(config->queue.group, "leat");
    assert_int_equal(config->queue.concurrency, sysconf(_SC_NPROCESSORS_ONLN));
    assert_int_equal(config->queue.lease_ms, 60000);
    assert_int_equal(config->queue.scan_ms, 0);
    assert_int_equal(config->queue.max_length, 0);
    assert_int_equal(config->queue.max_crashes, 3);
    assert_int_equal(config->queue.load_library, CONFIG_LIBRARY_AUTO);
    config_free(config);
}

/* Goal: the same for the sections about tasks. */
static void tasks_have_defaults(void **state)
{
    (void)state;
    struct config *config = parse(QUEUE);

    assert_null(config->task.command);
    assert_string_equal(config->task.shell, "/bin/sh");
    assert_null(config->task.directory);
    assert_string_equal(config->task.path,
                        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    assert_null(config->task.environment);
    assert_int_equal(config->task.umask, 022);
    assert_int_equal(config->task.timeout_ms, 600000);
    assert_int_equal(config->task.kill_grace_ms, 10000);
    assert_int_equal(config->task.stdin_from, CONFIG_STDIN_PAYLOAD);
    assert_null(config->task.check);
    assert_int_equal(config->task.check_after, CONFIG_CHECK_AFTER_LOST);
    assert_int_equal(config->task.check_timeout_ms, 30000);
    assert_int_equal(config->task.batch, 1);
    assert_int_equal(config->task.batch_wait_ms, 50);
    assert_int_equal(config->task.batch_format, CONFIG_FORMAT_LINES);
    assert_int_equal(config->retry.max_attempts, 5);
    assert_int_equal(config->retry.base_ms, 2000);
    assert_true(config->retry.factor == 2);
    assert_int_equal(config->retry.cap_ms, 600000);
    assert_int_equal(config->retry.jitter, CONFIG_JITTER_FULL);
    assert_int_equal(config->retry.exit.kind, CONFIG_RULE_RETRY);
    assert_int_equal(config->retry.timeout.kind, CONFIG_RULE_RETRY);
    assert_int_equal(config->retry.cannot_execute.kind, CONFIG_RULE_DEAD);
    for (int code = -1; code <= 256; code++) {
        assert_false(config_codes_has(&config->retry.permanent, code));
        assert_int_equal(config_codes_has(&config->retry.success, code), code == 0);
    }
    assert_int_equal(config->dead.output_tail, 4096);
    assert_int_equal(config->log.target, CONFIG_LOG_AUTO);
    assert_int_equal(config->log.level, LOG_INFO);
    assert_int_equal(config->output.to, CONFIG_OUTPUT_JOURNAL);
    assert_false(config->log.started);
    assert_int_equal(config->output.max_line, 8192);
    assert_int_equal(config->shutdown.drain_ms, 90000);
    config_free(config);
}

/* Goal: lists are configured only if the file names them. */
static void lists_are_taken_in_when_asked_for(void **state)
{
    (void)state;
    struct config *config = parse(QUEUE);

    assert_null(config->intake.lists);
    assert_null(config->intake.prefix);
    assert_string_equal(config->intake.field, "payload");
    assert_int_equal(config->intake.lane_from, CONFIG_LANE_FROM_NONE);
    assert_int_equal(config->intake.unique, CONFIG_UNIQUE_NONE);
    assert_int_equal(config->intake.scan_ms, 5000);
    config_free(config);

    config = parse(QUEUE "[intake]\nlists = a \tb:c  d ; three\nprefix = work:\nfield = command\n"
                         "lane_from = suffix\nunique = item\nscan = 1m\n");
    assert_string_equal(config->intake.lists[0], "a");
    assert_string_equal(config->intake.lists[1], "b:c");
    assert_string_equal(config->intake.lists[2], "d");
    assert_null(config->intake.lists[3]);
    assert_string_equal(config->intake.prefix, "work:");
    assert_int_equal(config->intake.lane_from, CONFIG_LANE_FROM_SUFFIX);
    assert_int_equal(config->intake.unique, CONFIG_UNIQUE_ITEM);
    assert_int_equal(config->intake.scan_ms, 60000);
    config_free(config);
}

/* Goal: any key of [lanes] is a lane, and its settings get one canonical form. */
static void lanes_and_rates_are_taken(void **state)
{
    (void)state;
    struct config *config = parse(QUEUE);

    assert_null(config->lanes.list);
    assert_null(config->limits.rate);
    assert_int_equal(config->limits.burst, 1);
    config_free(config);

    config =
        parse(QUEUE "[limits]\nrate = 0.5/min\nburst = 40\n[lanes]\nbig one = 2,3 ; three\n"
                    "name = strict\na = 1 ,-, 20/s\nb = 0.001, 10 , 100/m, 7\nc = 1000, -, -, -\n"
                    "\xc3\xa4 = 1,,,5\n");
    assert_string_equal(config->limits.rate, "0.5/min");
    assert_int_equal(config->limits.burst, 40);
    const char *expected[] = {"big one=2, 3",          "name=strict", "a=1, -, 20/s",
                              "b=0.001, 10, 100/m, 7", "c=1000",      "\xc3\xa4=1, -, -, 5"};
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(config->lanes.list[i], expected[i]);
    }
    assert_null(config->lanes.list[6]);

    const char *settings;
    assert_int_equal(limits_split_lane(config->lanes.list[0], &settings), 7);
    assert_string_equal(settings, "2, 3");
    config_free(config);
}

/* Goal: the struct has the values of the file. */
static void values_are_taken(void **state)
{
    (void)state;
    struct config *config = parse(
        "[redis]\nsocket = /run/r.sock ; a comment\nuser=u\npassword = p w;x#\ndb = 3\n"
        "keepalive = none\n[queue]\nname = a.b:c@d-e_f\nstream = x{tag}y\n"
        "concurrency = 8\nlease = 2m\nscan = 5s\nmax_length = 1000\nload_library = never\n"
        "[task]\ncommand = a; b | c > /dev/null # d\nshell = /bin/bash\numask = 0077\n"
        "environment = A=1\nenvironment = B_2=x = y\ntimeout = none\nkill_grace = 0\n"
        "stdin = null\nbatch_wait = 2s\nbatch_format = json\n[retry]\nfactor = 1.5\njitter = "
        "none\npermanent = 64-66, 100 255\n"
        "success = 3\n[log]\ntarget = stderr\nlevel = warning\nstarted=true\n"
        "[output]\nto = discard\nmax_line = 1K\n[dead]\noutput_tail = 0\n[shutdown]\ndrain = 0\n");

    assert_string_equal(config->redis.socket, "/run/r.sock");
    assert_string_equal(config->redis.password, "p w;x#");
    assert_int_equal(config->redis.keepalive_s, 0);
    assert_string_equal(config->queue.stream, "x{tag}y");
    assert_int_equal(config->queue.scan_ms, 5000);
    assert_int_equal(config->queue.load_library, CONFIG_LIBRARY_NEVER);
    assert_string_equal(config->task.command, "a; b | c > /dev/null # d");
    assert_int_equal(config->task.umask, 077);
    assert_string_equal(config->task.environment[0], "A=1");
    assert_string_equal(config->task.environment[1], "B_2=x = y");
    assert_null(config->task.environment[2]);
    assert_int_equal(config->task.timeout_ms, 0);
    assert_int_equal(config->task.stdin_from, CONFIG_STDIN_NULL);
    assert_int_equal(config->task.batch_wait_ms, 2000);
    assert_int_equal(config->task.batch_format, CONFIG_FORMAT_JSON);
    assert_true(config->retry.factor == 1.5);
    assert_true(config_codes_has(&config->retry.permanent, 64));
    assert_true(config_codes_has(&config->retry.permanent, 66));
    assert_false(config_codes_has(&config->retry.permanent, 67));
    assert_true(config_codes_has(&config->retry.permanent, 100));
    assert_true(config_codes_has(&config->retry.permanent, 255));
    assert_true(config_codes_has(&config->retry.success, 0));
    assert_true(config_codes_has(&config->retry.success, 3));
    assert_int_equal(config->log.target, CONFIG_LOG_STDERR);
    assert_int_equal(config->log.level, LOG_WARNING);
    assert_int_equal(config->output.to, CONFIG_OUTPUT_DISCARD);
    assert_true(config->log.started);
    assert_int_equal(config->shutdown.drain_ms, 0);
    config_free(config);
}

/* Goal: byte order marks, CRLF and long lines are read correctly. */
static void forms_of_files_are_read(void **state)
{
    (void)state;
    static const char odd[] = "\xef\xbb\xbf[queue]\r\n  ; indented comment\r\n\t\r\n# another\r\n"
                              "name = q\r\n[task] ; tail\r\ncommand=x";
    char text[9000];
    struct config *config = parse_bytes(odd, sizeof odd - 1);

    assert_string_equal(config->queue.name, "q");
    assert_string_equal(config->task.command, "x");
    config_free(config);

    /* the longest line has 8189 bytes */
    int length = snprintf(text, sizeof text, QUEUE "[task]\ncommand = %08179d\n", 1);
    assert_true(length > 0);
    config = parse_bytes(text, (size_t)length);
    assert_int_equal(strlen(config->task.command), 8179);
    config_free(config);
    struct buffer errors = BUFFER_INIT;
    length = snprintf(text, sizeof text, QUEUE "[task]\ncommand = %08180d\n", 1);
    assert_int_equal(config_parse("f", text, (size_t)length, &config, &errors), -1);
    assert_null(config);
    buffer_free(&errors);
}

/* ---- passwords ---- */

struct files {
    char folder[32];
    char path[64];
};

static int set_up_files(void **state)
{
    struct files *files = calloc(1, sizeof *files);

    if (!files) {
        return -1;
    }
    *state = files;
    memcpy(files->folder, "/tmp/leat-config-XXXXXX", 24);
    if (!mkdtemp(files->folder)) {
        return -1;
    }
    return snprintf(files->path, sizeof files->path, "%s/secret", files->folder) > 0 ? 0 : -1;
}

static int tear_down_files(void **state)
{
    struct files *files = *state;

    unsetenv("CREDENTIALS_DIRECTORY");
    unlink(files->path);
    rmdir(files->folder);
    free(files);
    return 0;
}

static void write_file(const char *path, const char *data, size_t size, mode_t mode)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

/* The password of a file with this line, or NULL with the error in `errors`. */
static char *password_of(const char *line, struct buffer *errors)
{
    char text[256];
    struct config *config;
    char *password = NULL;
    int length = snprintf(text, sizeof text, QUEUE "[redis]\n%s\n", line);

    buffer_clear(errors);
    if (config_parse("f.ini", text, (size_t)length, &config, errors) == 0) {
        password = strdup(config->redis.password);
        config_free(config);
    }
    assert_int_equal(buffer_append(errors, "", 1), 0);
    return password;
}

static void assert_password(const char *line, const char *expected)
{
    struct buffer errors = BUFFER_INIT;
    char *password = password_of(line, &errors);

    if (!password) {
        fail_msg("%s", errors.data);
    } else {
        assert_string_equal(password, expected);
    }
    free(password);
    buffer_free(&errors);
}

static void assert_no_password(const char *line, const char *expected)
{
    struct buffer errors = BUFFER_INIT;

    assert_null(password_of(line, &errors));
    if (!strstr(errors.data, expected) || strncmp(errors.data, "f.ini:4: ", 9) != 0) {
        fail_msg("\"%s\" does not tell \"%s\"", errors.data, expected);
    }
    buffer_free(&errors);
}

/* Goal: the password is the content of its file without a final newline; an unsafe or empty file is
 * an error. */
static void passwords_come_from_files(void **state)
{
    struct files *files = *state;
    char line[128], large[5000];

    assert_true(snprintf(line, sizeof line, "password_file = %s", files->path) > 0);
    assert_no_password(line, "No such file");
    write_file(files->path, "s3 cret\n", 8, 0600);
    assert_password(line, "s3 cret");
    write_file(files->path, "s3cret\n\n", 8, 0640);
    assert_password(line, "s3cret\n");
    write_file(files->path, "s3cret", 6, 0644);
    assert_no_password(line, geteuid() == 0 ? "is accessible to all users; run: chgrp GROUP "
                                            : "is accessible to all users; run: chmod g-w,o= ");
    write_file(files->path, "s3cret", 6, 0660);
    assert_no_password(line, geteuid() == 0 ? "is writable by its group; run: chgrp GROUP "
                                            : "is writable by its group; run: chmod g-w,o= ");
    write_file(files->path, "s3cret", 6, 0602);
    assert_no_password(line, "is accessible to all users");
    write_file(files->path, "\n", 1, 0600);
    assert_no_password(line, "the file is empty");
    write_file(files->path, "a\0b", 3, 0600);
    assert_no_password(line, "NUL");
    memset(large, 'x', sizeof large);
    write_file(files->path, large, sizeof large, 0600);
    assert_no_password(line, "longer than 4096");

    /* a FIFO must not block the start */
    unlink(files->path);
    assert_int_equal(mkfifo(files->path, 0600), 0);
    assert_no_password(line, "not a regular file");
}

/* Goal: a credential is read from $CREDENTIALS_DIRECTORY, and only there. */
static void passwords_come_from_credentials(void **state)
{
    struct files *files = *state;

    unsetenv("CREDENTIALS_DIRECTORY");
    assert_no_password("password_credential = secret",
                       "CREDENTIALS_DIRECTORY is not set; run leat as a systemd service with "
                       "LoadCredential=secret:FILE");
    setenv("CREDENTIALS_DIRECTORY", files->folder, 1);
    assert_no_password("password_credential = secret", "No such file");
    write_file(files->path, "s3cret\n", 7, 0444);
    assert_password("password_credential = secret", "s3cret");
    assert_no_password("password_credential = ../secret", "is not a name");
}

/* Goal: a file is loaded from disk; if it cannot be read, the error says why. */
static void files_are_loaded(void **state)
{
    struct files *files = *state;
    struct config *config;
    struct buffer errors = BUFFER_INIT;

    assert_int_equal(config_load(files->path, &config, &errors), -1);
    assert_null(config);
    assert_int_equal(config_load("/dev/null", &config, &errors), -1);
    assert_int_equal(config_load("/", &config, &errors), -1);
    assert_int_equal(buffer_append(&errors, "", 1), 0);
    assert_non_null(strstr(errors.data, "/secret: cannot open: No such file or directory\n"));
    assert_non_null(strstr(errors.data, "/dev/null: cannot read: not a regular file\n"));
    buffer_clear(&errors);
    write_file(files->path, QUEUE, sizeof(QUEUE) - 1, 0600);
    assert_int_equal(config_load(files->path, &config, &errors), 0);
    assert_string_equal(config->path, files->path);
    config_free(config);
    write_file(files->path, "", 0, 0600);
    assert_int_equal(config_load(files->path, &config, &errors), -1);
    buffer_free(&errors);
}

/* ---- reload ---- */

#define RESTART ": takes effect only after a restart\n"
#define SHARED ": takes effect only with leat conf --apply\n"
#define REMOVED ": the queue keeps its settings; leat conf lane:NAME none removes them\n"

static struct config *merge_in(int64_t lease_ms, const char *now, const char *next,
                               const char *expected)
{
    struct config *current = parse(now);
    struct buffer kept = BUFFER_INIT;
    struct config *merged = config_merge(current, parse(next), lease_ms, &kept);

    assert_non_null(merged);
    assert_int_equal(buffer_append(&kept, "", 1), 0);
    assert_string_equal(kept.data, expected);
    buffer_free(&kept);
    config_free(current);
    return merged;
}

static struct config *merge(const char *now, const char *next, const char *expected)
{
    return merge_in(60000, now, next, expected);
}

/* Goal: a reload changes keys that the table marks, keeps the others, and says what each of those
 * needs. */
static void a_reload_takes_what_it_may(void **state)
{
    (void)state;
    struct config *merged =
        merge("[redis]\nhost = a\nuser = u\n" QUEUE "concurrency = 2\n[task]\nenvironment = A=1\n"
              "command = old\n",
              "[redis]\nsocket = /s\npassword = p\n[queue]\nname = other\nconcurrency = 4\n[task]\n"
              "environment = A=1\nenvironment = B=2\n[retry]\npermanent = 9\nfactor = 3\n"
              "[log]\nstarted = yes\n",
              "[queue] name" RESTART "[queue] stream" RESTART);

    assert_string_equal(merged->redis.socket, "/s");
    assert_null(merged->redis.user);
    assert_string_equal(merged->redis.password, "p");
    assert_string_equal(merged->queue.name, "q");
    assert_string_equal(merged->queue.stream, "q");
    assert_int_equal(merged->queue.concurrency, 4);
    assert_null(merged->task.command);
    assert_string_equal(merged->task.environment[1], "B=2");
    assert_true(merged->retry.factor == 3);
    assert_true(config_codes_has(&merged->retry.permanent, 9));
    assert_true(merged->log.started);
    config_free(merged);

    /* the address is not taken if sentinels or a Cluster named the server before, or do now */
    merged = merge("[redis]\nhost = a\n" QUEUE, "[redis]\nsentinels = s:1\nmaster = m\n" QUEUE,
                   "[redis] host" RESTART "[redis] sentinels" RESTART "[redis] master" RESTART);
    assert_string_equal(merged->redis.host, "a");
    config_free(merged);
    config_free(merge(QUEUE, QUEUE, ""));
    config_free(merge(QUEUE "[lanes]\na = 1\naa = 1\nc = 1\n[limits]\nrate = 1/s\n",
                      QUEUE "[lanes]\na = 1\nb = 1\nc = 2\n[limits]\nrate = 2/s\n",
                      "[limits] rate" SHARED "[lanes] b" SHARED "[lanes] c" SHARED
                      "[lanes] aa" REMOVED));
}

/* Goal: keys that were checked against a new lease are adapted to the old lease, which stays in
 * effect. */
static void a_reload_fits_the_lease(void **state)
{
    (void)state;
    struct config *merged = merge(
        QUEUE "[task]\nkill_grace = 20s\n", QUEUE "lease = 10m\n[task]\nkill_grace = 60s\n",
        "[queue] lease" SHARED "[task] kill_grace: too long for the queue's lease; run leat conf "
        "--apply, and then reload again\n");

    assert_int_equal(merged->queue.lease_ms, 60000);
    assert_int_equal(merged->queue.scan_ms, 0);
    assert_int_equal(merged->task.kill_grace_ms, 20000);
    config_free(merged);

    merged = merge_in(600000, QUEUE "[task]\nkill_grace = 20s\n",
                      QUEUE "lease = 10m\n[task]\nkill_grace = 60s\n", "");
    assert_int_equal(merged->queue.lease_ms, 600000);
    assert_int_equal(merged->task.kill_grace_ms, 60000);
    config_free(merged);
    merged = merge(QUEUE, QUEUE "lease = 2m\nscan = 7s\n", "[queue] lease" SHARED);
    assert_int_equal(merged->queue.scan_ms, 7000);
    config_free(merged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_enough),
        cmocka_unit_test(tasks_have_defaults),
        cmocka_unit_test(lists_are_taken_in_when_asked_for),
        cmocka_unit_test(lanes_and_rates_are_taken),
        cmocka_unit_test(values_are_taken),
        cmocka_unit_test(forms_of_files_are_read),
        cmocka_unit_test_setup_teardown(passwords_come_from_files, set_up_files, tear_down_files),
        cmocka_unit_test_setup_teardown(passwords_come_from_credentials, set_up_files,
                                        tear_down_files),
        cmocka_unit_test_setup_teardown(files_are_loaded, set_up_files, tear_down_files),
        cmocka_unit_test(a_reload_takes_what_it_may),
        cmocka_unit_test(a_reload_fits_the_lease),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
