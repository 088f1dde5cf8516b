/* The log: the form of records on stderr and in the journal. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../lib/log_world.h"
#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/log_ids.h"

#define TIME "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"

static void assert_received(struct world *world, const char *record, size_t size)
{
    assert_true(receive(world));
    assert_int_equal(world->text.size, size);
    assert_memory_equal(world->text.data, record, size);
}

static void name_queue(void)
{
    const struct log_field common[] = {LOG_TEXT("LEAT_QUEUE", "thumbs"),
                                       LOG_TEXT("LEAT_WORKER", "host:1:x")};

    assert_int_equal(log_set_common(common, 2), 0);
}

/* Goal: a line has time, program, queue, priority, text, and the fields that people need. */
static void lines_are_readable(void **state)
{
    struct world *world = *state;
    const struct log_field fields[] = {
        LOG_TEXT("LEAT_TASK", "17-0"), LOG_TEXT("LEAT_EVENT", "retry"),
        LOG_TEXT("CODE_FILE", "x.c"),  LOG_TEXT("LEAT_REASON", "a \"b\" c"),
        LOG_TEXT("LEAT_ATTEMPT", "2"),
    };

    assert_int_equal(log_open(LOG_TARGET_AUTO, LOG_INFO, "leatd"), 0);
    log_text(LOG_ERR, "cannot %s", "work");
    assert_matches(read_stderr(world), "^" TIME " leatd error: cannot work\n$");
    name_queue();
    log_event(LOG_WARNING, LOG_ID_TASK_RETRY, fields, 5, "retry in %d s", 4);
    assert_matches(read_stderr(world), "^" TIME " leatd\\[thumbs\\] warning: retry in 4 s "
                                       "\\(task=17-0 reason=\"a \\\\\"b\\\\\" c\" attempt=2\\)\n$");
}

/* Goal: with the target json, a line is an object of texts: time, level, program, message and
 * fields. */
static void lines_are_objects(void **state)
{
    struct world *world = *state;
    static const char bytes[] = "a\n\"b\" \\ \033\0\xff \xc2\x9b \xe2\x80\xae gr\xc3\xbcn";
    const struct log_field fields[] = {
        LOG_TEXT("LEAT_TASK", "17-0"),
        LOG_TEXT("TRACE_ID", "x\"y"),
    };

    name_queue();
    assert_int_equal(log_open(LOG_TARGET_JSON, LOG_INFO, "leatd"), 0);
    log_bytes(LOG_WARNING, LOG_ID_TASK_OUTPUT, fields, 2, bytes, sizeof bytes - 1);
    assert_matches(read_stderr(world),
                   "^\\{\"time\":\"" TIME
                   "\",\"level\":\"warning\",\"program\":\"leatd\",\"message\":"
                   "\"a\\\\n\\\\\"b\\\\\" \\\\\\\\ \\\\u001b\\\\u0000\\\\ufffd \\\\u009b \\\\u202e "
                   "gr\xc3\xbcn\","
                   "\"message_id\":\"" LOG_ID_TASK_OUTPUT "\",\"queue\":\"thumbs\",\"worker\":"
                   "\"host:1:x\",\"task\":\"17-0\",\"trace_id\":\"x\\\\\"y\"\\}\n$");
    log_text(LOG_ERR, "%s", "");
    assert_matches(read_stderr(world),
                   "\"level\":\"error\",\"program\":\"leatd\",\"message\":\"\",\"queue\"");
}

/* Goal: a line has the time of its writing, in UTC, with milliseconds. */
static void lines_tell_when(void **state)
{
    struct world *world = *state;
    struct tm utc = {0};
    int64_t before_ms = clock_wall_ms();

    assert_int_equal(log_open(LOG_TARGET_STDERR, LOG_INFO, "leatd"), 0);
    log_text(LOG_ERR, "now");
    int64_t after_ms = clock_wall_ms();
    const char *rest = strptime(read_stderr(world), "%Y-%m-%dT%H:%M:%S.", &utc);
    assert_non_null(rest);
    int64_t told_ms = (int64_t)timegm(&utc) * 1000 + strtol(rest, NULL, 10);
    assert_true(before_ms <= told_ms && told_ms <= after_ms);
}

/* Goal: output of a task cannot break a line, control a terminal, or look like a field. */
static void bytes_are_escaped(void **state)
{
    struct world *world = *state;
    const struct log_field fields[] = {LOG_TEXT("LEAT_TASK", "1-0")};
    static const char bytes[] = "a\nb\033[2J\0\xff (task=9-9)";

    assert_int_equal(log_open(LOG_TARGET_STDERR, LOG_INFO, "leatd"), 0);
    log_bytes(LOG_INFO, LOG_ID_TASK_OUTPUT, fields, 1, bytes, sizeof bytes - 1);
    assert_matches(read_stderr(world), " info: a\\\\nb\\\\x1b\\[2J\\\\x00\\\\xff \\(task=9-9\\) "
                                       "\\(task=1-0\\)\n$");
    log_bytes(LOG_INFO, LOG_ID_TASK_OUTPUT, NULL, 0, NULL, 0);
    assert_matches(read_stderr(world), " info: \n$");
}

/* Goal: records above the level are not written, and errno does not change. */
static void the_level_holds(void **state)
{
    struct world *world = *state;

    assert_int_equal(log_open(LOG_TARGET_STDERR, LOG_NOTICE, "leatd"), 0);
    assert_true(log_wants(LOG_NOTICE));
    assert_false(log_wants(LOG_INFO));
    log_text(LOG_INFO, "no");
    log_bytes(LOG_DEBUG, NULL, NULL, 0, "no", 2);
    log_event(LOG_INFO, NULL, NULL, 0, "no");
    assert_string_equal(read_stderr(world), "");
    errno = EXDEV;
    log_text(LOG_NOTICE, "yes");
    log_event(LOG_ERR, NULL, NULL, 0, "yes");
    log_bytes(LOG_ERR, NULL, NULL, 0, "yes", 3);
    assert_int_equal(errno, EXDEV);
    assert_int_equal(count_of(read_stderr(world), "yes"), 3);
}

/* Goal: the journal gets native records: plain values as text, others with their length. */
static void journal_records_are_native(void **state)
{
    struct world *world = *state;
    const struct log_field fields[] = {
        LOG_TEXT("LEAT_TASK", "17-0"),
        {.name = "LEAT_BYTES", .data = "a\nb\0c", .size = 5},
        {.name = "LEAT_EMPTY", .data = NULL, .size = 0},
    };
    static const char event[] =
        "PRIORITY=4\nSYSLOG_IDENTIFIER=leatd\n"
        "MESSAGE_ID=" LOG_ID_TASK_RETRY "\n"
        "LEAT_QUEUE=thumbs\nLEAT_WORKER=host:1:x\nLEAT_TASK=17-0\n"
        "LEAT_BYTES\n\5\0\0\0\0\0\0\0a\nb\0c\nLEAT_EMPTY=\nMESSAGE=text 1\n";
    static const char bytes[] = "PRIORITY=6\nSYSLOG_IDENTIFIER=leatd\nLEAT_QUEUE=thumbs\n"
                                "LEAT_WORKER=host:1:x\n"
                                "MESSAGE\n\17\0\0\0\0\0\0\0x\nLEAT_TASK=9-9\n";

    assert_int_equal(log_open(LOG_TARGET_JOURNAL, LOG_INFO, "leatd"), 0);
    name_queue();
    log_event(LOG_WARNING, LOG_ID_TASK_RETRY, fields, 3, "text %d", 1);
    assert_received(world, event, sizeof event - 1);
    log_bytes(LOG_INFO, NULL, NULL, 0, "x\nLEAT_TASK=9-9", 15);
    assert_received(world, bytes, sizeof bytes - 1);
    assert_string_equal(read_stderr(world), "");
}

/* Goal: a message that is too long for a datagram arrives truncated, with all its fields. */
static void long_messages_are_cut(void **state)
{
    struct world *world = *state;
    enum { LENGTH = 8 << 20 };
    char *text = malloc(LENGTH);
    const struct log_field fields[] = {LOG_TEXT("LEAT_TASK", "17-0")};
    static const char start[] = "PRIORITY=6\nSYSLOG_IDENTIFIER=leatd\nLEAT_TASK=17-0\nMESSAGE=yyyy";

    assert_non_null(text);
    memset(text, 'y', LENGTH);
    assert_int_equal(log_open(LOG_TARGET_JOURNAL, LOG_INFO, "leatd"), 0);
    log_bytes(LOG_INFO, NULL, fields, 1, text, LENGTH);
    assert_true(receive(world));
    assert_true(world->text.size > 50000);
    assert_memory_equal(world->text.data, start, sizeof start - 1);
    assert_int_equal(world->text.data[world->text.size - 1], '\n');

    /* a record that cannot be truncated is dropped and counted */
    uint64_t dropped = log_dropped();
    struct log_field large = {.name = "LEAT_LARGE", .data = text, .size = LENGTH};
    log_bytes(LOG_INFO, NULL, &large, 1, "text", 4);
    assert_int_equal(log_dropped(), dropped + 1);
    free(text);
    log_text(LOG_INFO, "next");
    assert_true(receive(world));
    assert_int_equal(buffer_append(&world->text, "", 1), 0);
    assert_non_null(strstr(world->text.data, "1 log records were dropped"));
    assert_non_null(strstr(world->text.data, "MESSAGE_ID=" LOG_ID_LOG_DROPPED));
}

/* Goal: auto uses the journal exactly if $JOURNAL_STREAM names stderr. */
static void auto_finds_the_journal(void **state)
{
    struct world *world = *state;
    struct stat status;
    char stream[64];

    assert_int_equal(fstat(STDERR_FILENO, &status), 0);
    assert_true(snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)status.st_dev,
                         (uintmax_t)status.st_ino) > 0);
    setenv("JOURNAL_STREAM", stream, 1);
    assert_int_equal(log_open(LOG_TARGET_AUTO, LOG_INFO, "leatd"), 0);
    log_text(LOG_INFO, "to the journal");
    assert_true(receive(world));
    assert_string_equal(read_stderr(world), "");

    const char *others[] = {"", "1:1", "x", "8:"};
    for (size_t i = 0; i < 4; i++) {
        setenv("JOURNAL_STREAM", others[i], 1);
        assert_int_equal(log_open(LOG_TARGET_AUTO, LOG_INFO, "leatd"), 0);
        log_text(LOG_INFO, "to stderr");
        assert_false(receive(world));
        assert_matches(read_stderr(world), "to stderr");
    }
}

/* Goal: without the journal's socket, log_open returns an error and the log goes to stderr. */
static void a_missing_journal_is_told(void **state)
{
    struct world *world = *state;

    unlink(world->socket_path);
    assert_int_equal(log_open(LOG_TARGET_JOURNAL, LOG_INFO, "leatd"), -1);
    assert_int_equal(errno, ENOENT);
    log_text(LOG_INFO, "to stderr");
    assert_matches(read_stderr(world), "to stderr");
}

/* Goal: the log finds a restarted journald again. */
static void a_new_journal_is_found(void **state)
{
    struct world *world = *state;

    assert_int_equal(log_open(LOG_TARGET_JOURNAL, LOG_INFO, "leatd"), 0);
    close(world->journal);
    log_text(LOG_INFO, "while it was away");
    unlink(world->socket_path);
    assert_int_equal(open_journal(world), 0);
    log_text(LOG_INFO, "after");
    assert_true(receive(world));
    assert_int_equal(buffer_append(&world->text, "", 1), 0);
    assert_non_null(strstr(world->text.data, "MESSAGE=while it was away\n"));
    assert_true(receive(world));
}

/* Goal: lines are written to a regular file. */
static void files_get_lines(void **state)
{
    struct world *world = *state;
    char path[64], text[256] = "";

    assert_true(snprintf(path, sizeof path, "%s/file", world->folder) > 0);
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_true(dup2(fd, STDERR_FILENO) >= 0);
    unlink(path);
    assert_int_equal(log_open(LOG_TARGET_AUTO, LOG_INFO, "leatd"), 0);
    log_text(LOG_INFO, "one");
    log_text(LOG_INFO, "two");
    assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
    assert_matches(text, "^" TIME " leatd info: one\n" TIME " leatd info: two\n$");
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines_are_readable),        TEST(lines_tell_when),
        TEST(lines_are_objects),         TEST(bytes_are_escaped),
        TEST(the_level_holds),           TEST(journal_records_are_native),
        TEST(long_messages_are_cut),     TEST(auto_finds_the_journal),
        TEST(a_missing_journal_is_told), TEST(a_new_journal_is_found),
        TEST(files_get_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
