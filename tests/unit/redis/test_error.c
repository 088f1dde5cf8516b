/* Goal: every error that a queue can meet is in its class, in Redis's real wording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "redis/error.h"

static const struct {
    const char *text;
    enum redis_error error;
} messages[] = {
    {"LOADING Redis is loading the dataset in memory", REDIS_ERROR_LATER},
    {"BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.",
     REDIS_ERROR_LATER},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
     REDIS_ERROR_LATER},
    {"CLUSTERDOWN Hash slot not served", REDIS_ERROR_LATER},
    {"TRYAGAIN Multiple keys request during rehashing of slot", REDIS_ERROR_LATER},
    {"ERR max number of clients reached", REDIS_ERROR_LATER},
    {"ERR max number of clients + cluster connections reached", REDIS_ERROR_LATER},
    {"READONLY You can't write against a read only replica.", REDIS_ERROR_ROLE},
    {"READONLY You can't write against a read only replica. script: leat_claim, on "
     "@user_function:12.",
     REDIS_ERROR_ROLE},
    {"MOVED 3999 127.0.0.1:6381", REDIS_ERROR_ROLE},
    {"ASK 3999 127.0.0.1:6381", REDIS_ERROR_ROLE},
    {"OOM command not allowed when used memory > 'maxmemory'.", REDIS_ERROR_NO_WRITE},
    {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist on "
     "disk.",
     REDIS_ERROR_NO_WRITE},
    {"NOREPLICAS Not enough good replicas to write.", REDIS_ERROR_NO_WRITE},
    {"NOAUTH Authentication required.", REDIS_ERROR_DENIED},
    {"WRONGPASS invalid username-password pair or user is disabled.", REDIS_ERROR_DENIED},
    {"NOPERM this user has no permissions to run the 'client|id' command", REDIS_ERROR_DENIED},
    {"DENIED Redis is running in protected mode because protected mode is enabled",
     REDIS_ERROR_DENIED},
    {"ERR AUTH <password> called without any password configured for the default user. Are you "
     "sure your configuration is correct?",
     REDIS_ERROR_DENIED},
    {"ERR The user executing the script can't run this command or subcommand script: leat_claim, "
     "on @user_function:13.",
     REDIS_ERROR_DENIED},
    {"ERR The user executing the script can't access at least one of the keys mentioned in the "
     "command arguments script: leat_claim, on @user_function:13.",
     REDIS_ERROR_DENIED},
    {"ERR ACL failure in script: User worker has no permissions to run the 'xadd' command script: "
     "leat_claim, on @user_function:13.",
     REDIS_ERROR_DENIED},
    {"ERR ACL failure in script: No permissions to access a key script: leat_claim, on "
     "@user_function:13.",
     REDIS_ERROR_DENIED},
    {"ERR Unable to execute command 'exists' in script because undeclared keys were accessed "
     "during rehashing of the slot script: leat_add, on @user_function:2028.",
     REDIS_ERROR_LATER},
    {"ERR Script attempted to access a slot not served script: leat_add, on @user_function:9.",
     REDIS_ERROR_LATER},
    {"ERR Script attempted to execute a command while the cluster is down script: leat_add, on "
     "@user_function:9.",
     REDIS_ERROR_LATER},
    {"ERR Script attempted to execute a write command while the cluster is down and readonly "
     "script: leat_add, on @user_function:9.",
     REDIS_ERROR_LATER},
    {"NOGROUP No such key 'q' or consumer group 'leat' in XREADGROUP with GROUP option",
     REDIS_ERROR_NO_GROUP},
    {"UNBLOCKED the stream key no longer exists", REDIS_ERROR_NO_GROUP},
    {"ERR Function not found", REDIS_ERROR_NO_LIBRARY},
    {"ERR unknown command `FCALL`, with args beginning with: `leat_version`, `0`, ",
     REDIS_ERROR_UNFIT},
    {"ERR unknown command 'FCALL', with args beginning with: 'leat_version' '0' ",
     REDIS_ERROR_UNFIT},
    {"UNBLOCKED the stream key no longer exists", REDIS_ERROR_NO_GROUP},
    {"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
     REDIS_ERROR_ROLE},
    {"WRONGTYPE Operation against a key holding the wrong kind of value", REDIS_ERROR_FOREIGN},
    {"ERR WRONGTYPE wrapped once more", REDIS_ERROR_FOREIGN},
    {"FOREIGN the stream q is read by another group, x script: leat_register, on "
     "@user_function:600.",
     REDIS_ERROR_FOREIGN},
    {"REFUSED task 1: field given twice: a script: leat_enqueue, on @user_function:9.",
     REDIS_ERROR_CALLER},
    {"FULL the queue holds 3 tasks, its limit is 3", REDIS_ERROR_FULL},
    {"BADARG expected 11 keys, got 7", REDIS_ERROR_CALLER},
    {"CROSSSLOT Keys in request don't hash to the same slot", REDIS_ERROR_CALLER},
    {"ERR The stream has exhausted the last possible ID, unable to add more items",
     REDIS_ERROR_EXHAUSTED},
    {"ERR DB index is out of range", REDIS_ERROR_CALLER},
    {"ERR SELECT is not allowed in cluster mode", REDIS_ERROR_CALLER},
    {"ERR user_function:7: attempt to index local 'x' (a nil value) script: xx, on "
     "@user_function:7.",
     REDIS_ERROR_OTHER},
    {"BUSYGROUP Consumer Group name already exists", REDIS_ERROR_OTHER},
    {"OOM", REDIS_ERROR_NO_WRITE},
    {"ERR ", REDIS_ERROR_OTHER},
    {"ERR", REDIS_ERROR_OTHER},
    {"", REDIS_ERROR_OTHER},
};

static void classifies_what_redis_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        enum redis_error found = redis_error_classify(messages[i].text, strlen(messages[i].text));
        if (found != messages[i].error) {
            fail_msg("%s: %s", messages[i].text, redis_error_name(found));
        }
    }
}

/* Goal: the size counts, not a NUL behind it. */
static void looks_no_further_than_the_size(void **state)
{
    (void)state;
    assert_int_equal(redis_error_classify("OOMX", 3), REDIS_ERROR_NO_WRITE);
    assert_int_equal(redis_error_classify("READONLY", 4), REDIS_ERROR_OTHER);
    assert_int_equal(redis_error_classify("ERR Function not found", 12), REDIS_ERROR_OTHER);
}

static void assert_text(const char *message, const char *expected)
{
    const char *text = NULL;
    size_t size = redis_error_text(message, strlen(message), &text);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(text, expected, size);
}

static void cleans_messages_for_people(void **state)
{
    (void)state;
    assert_text("FULL the queue is full script: leat_enqueue, on @user_function:12.",
                "the queue is full");
    assert_text("ERR Function not found", "Function not found");
    assert_text("WRONGPASS user is disabled.", "WRONGPASS user is disabled");
    assert_text("REFUSED field given twice: x script: y script: leat_enqueue, on @user_function:1.",
                "field given twice: x script: y");
    assert_text("REFUSED my script: hello", "my script: hello");
    assert_text("REFUSED FULL of words", "FULL of words");
    assert_text("REFUSED", "REFUSED");
    assert_text("ERR ", "");
    assert_text("", "");
}

static void assert_explained(const char *message, size_t room, const char *expected)
{
    char explained[400];
    assert_true(room <= sizeof explained);
    redis_error_explain(message, strlen(message), explained, room);
    assert_string_equal(explained, expected);
}

/* Goal: a message says what to do, unless the queue has said it, and is cut if there is no room. */
static void explains_messages(void **state)
{
    (void)state;
    assert_explained(
        "NOPERM User w has no permissions. script: x, on @user_function:1.", 400,
        "NOPERM User w has no permissions; check user and password in [redis], and the "
        "ACL of that user");
    assert_explained("FULL the queue is full", 400, "the queue is full");
    assert_explained("REFUSED it has expired", 400, "it has expired");
    assert_explained("WRONGTYPE q is a string, but leat needs a stream", 400,
                     "WRONGTYPE q is a string, but leat needs a stream; give the queue another "
                     "name, or set stream in [queue]");
    assert_explained("UNBLOCKED the stream key no longer exists", 400,
                     "UNBLOCKED the stream key no longer exists; the stream or its group was "
                     "deleted, or its hash slot moves; a worker finds or recreates it");
    assert_explained("ERR odd", 400, "odd; see the message and the log of Redis");
    assert_explained("ERR odd", 8, "odd; se");
}

/* Goal: each class has a name of its own, by which logs are filtered, and advice. */
static void names_every_class(void **state)
{
    (void)state;
    for (int i = REDIS_ERROR_NONE; i <= REDIS_ERROR_OTHER; i++) {
        assert_true(strlen(redis_error_advice((enum redis_error)i, false)) > 0);
        assert_null(strstr(redis_error_advice((enum redis_error)i, true), "[redis]"));
        for (int j = REDIS_ERROR_NONE; j < i; j++) {
            assert_string_not_equal(redis_error_name((enum redis_error)i),
                                    redis_error_name((enum redis_error)j));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classifies_what_redis_says),
        cmocka_unit_test(looks_no_further_than_the_size),
        cmocka_unit_test(cleans_messages_for_people),
        cmocka_unit_test(explains_messages),
        cmocka_unit_test(names_every_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
