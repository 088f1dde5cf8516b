/* Errors in a configuration: each is found, at its line, with what to do about it, and all at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/limits.h"
#include "config/load.h"
#include "config/suggest.h"

#define QUEUE "[queue]\nname = q\n"
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

struct wrong {
    const char *text;   /* after QUEUE, whose two lines count */
    const char *errors; /* all of them */
};

static void assert_errors(const char *text, size_t size, const char *expected)
{
    struct config *config = (void *)&config;
    struct buffer errors = BUFFER_INIT;

    assert_int_equal(config_parse("f", text, size, &config, &errors), -1);
    assert_null(config);
    assert_int_equal(buffer_append(&errors, "", 1), 0);
    assert_string_equal(errors.data, expected);
    buffer_free(&errors);
}

static void assert_each(const struct wrong *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[512];
        int length = snprintf(text, sizeof(text), QUEUE "%s", cases[i].text);

        assert_errors(text, (size_t)length, cases[i].errors);
    }
}

/* Goal: the server is named in one way, and completely. */
static void servers_are_named_in_one_way(void **state)
{
    (void)state;
    const struct wrong cases[] = {
        {"[redis]\nsentinels = a:1, b:2\n",
         "f:4: sentinels needs master; add it, or remove sentinels\n"},
        {"[redis]\nmaster = m\n", "f:4: master needs sentinels; add it, or remove master\n"},
        {"[redis]\nsentinel_password = x\n",
         "f:4: sentinel_password needs sentinels; add it, or remove sentinel_password\n"},
        {"[redis]\nhost = h\nsentinels = a:1\nmaster = m\n",
         "f:5: sentinels and host exclude each other; remove one of them\n"},
        {"[redis]\ncluster = a:1\nport = 7\n",
         "f:5: cluster and port exclude each other; remove one of them\n"},
        {"[redis]\ncluster = a:1\nsocket = /s\n",
         "f:5: cluster and socket exclude each other; remove one of them\n"},
        {"[redis]\ncluster = a:1\nsentinels = a:1\nmaster = m\n",
         "f:5: sentinels and cluster exclude each other; remove one of them\n"},
        {"[redis]\ncluster = a:1\ndb = 3\n",
         "f:5: cluster and db exclude each other; remove one of them\n"},
        {"[redis]\ncluster = a:1 b\n",
         "f:4: cluster: \"b\" is not an address; write it HOST:PORT, or [IPv6]:PORT\n"},
        {"[redis]\ncluster = ::1:6379\n",
         "f:4: cluster: \"::1:6379\" is not an address; write it HOST:PORT, or [IPv6]:PORT\n"},
        {"[redis]\ncluster = [::1]:0\n",
         "f:4: cluster: \"[::1]:0\" is not an address; write it HOST:PORT, or [IPv6]:PORT\n"},
        {"[redis]\ncluster = a:1, a:1\n", "f:4: cluster: \"a:1\" is there twice; remove one\n"},
        {"[redis]\ncluster = ,\n", "f:4: cluster: \"\" names no server; write HOST:PORT\n"},
        {"[redis]\ncluster = [::1]:1\n[intake]\nlists = {q}:a other\n[task]\ncommand = true\n",
         "f:6: lists: other is not in the slot of the stream q, which a Cluster needs; give both "
         "the "
         "same {tag}\n"},
        {"[redis]\ncluster = a:1\n[intake]\nprefix = q\n[task]\ncommand = true\n",
         "f:6: prefix: in a Cluster it must hold the {tag} of the stream q\n"},
    };

    assert_each(cases, COUNT(cases));
}

/* Goal: a key or section that does not exist is told with the one that was probably meant. */
static void unknown_words_get_a_suggestion(void **state)
{
    (void)state;
    const struct wrong cases[] = {
        {"concurency = 3\n", "f:3: unknown key concurency in [queue]; did you mean concurrency?\n"},
        {"Lease = 3s\n", "f:3: unknown key Lease in [queue]; did you mean lease?\n"},
        {"max-length = 3\n", "f:3: unknown key max-length in [queue]; did you mean max_length?\n"},
        {"max_atempts = 3\n",
         "f:3: unknown key max_atempts in [queue]; did you mean max_attempts in [retry]?\n"},
        {"timeout = 3\n", "f:3: timeout is not a key of [queue]; it belongs into [task]\n"},
        {"flux_capacitor = 3\n", "f:3: unknown key flux_capacitor in [queue]; see leat.ini(5)\n"},
        {"e\033[2Jvil\xff = 3\n", "f:3: control character 0x1b; remove it\n"},
        {"\xff\xfe\xfd\xfc = 3\n",
         "f:3: unknown key \\xff\\xfe\\xfd\\xfc in [queue]; see leat.ini(5)\n"},
        {"[retries]\nbase = x\ncap = y\n[log]\nlevel = 1\n",
         "f:3: unknown section [retries]; did you mean [retry]?\n"
         "f:7: level: \"1\" is not one of error, warning, notice, info and debug\n"},
        {"[flux capacitor]\nx = 1\n", "f:3: unknown section [flux capacitor]; see leat.ini(5)\n"},
    };

    assert_each(cases, COUNT(cases));
}

/* Goal: what inih would skip, join or cut is an error. */
static void malformed_lines_are_errors(void **state)
{
    (void)state;
    const struct wrong cases[] = {
        {"concurrency\n",
         "f:3: \"concurrency\" is neither KEY = VALUE nor [SECTION]; a comment begins with ;\n"},
        {"concurrency ; = 3\n", "f:3: \"concurrency ; = 3\" is neither KEY = VALUE nor [SECTION]; "
                                "a comment begins with ;\n"},
        {"= 3\n", "f:3: a value without a key; write KEY = VALUE\n"},
        {"[task\ncommand = x\n", "f:3: the section's name does not end; write [task]\n"},
        {"[task] command = x\n",
         "f:3: text after the section's name; put it on a line of its own\n"},
        {"[task]\ncommand = a\n  b\n",
         "f:5: the line begins with white space; values end with their line, begin this one in the "
         "first column\n"},
        {"lease =\n",
         "f:3: lease has no value; give it one, or remove the line for the default 60s\n"},
        {"stream = ; none\n", "f:3: stream has no value; give it one, or remove the line\n"},
        {"lease = 60s\nscan = 5s\nlease = 60s\n",
         "f:5: lease was given on line 3 before; remove one of the two\n"},
        {"[task]\ncommand = cd /x ; make\n",
         "f:4: command: white space and ; begin a comment, which would cut the value; write the ; "
         "without white space before it, and comments on lines of their own\n"},
        {"[task]\ncommand = ; make\n",
         "f:4: command: white space and ; begin a comment, which would cut the value; write the ; "
         "without white space before it, and comments on lines of their own\n"},
        {"[redis]\npassword = a\t;b\n",
         "f:4: password: white space and ; begin a comment, which would cut the value; write the ; "
         "without white space before it, and comments on lines of their own\n"},
    };
    static const char nul[] = QUEUE "lease\0 = 5\n";

    assert_each(cases, COUNT(cases));
    assert_errors(nul, sizeof(nul) - 1, "f:3: control character 0x00; remove it\n");
}

/* Goal: each type of value says what it takes, and the range. */
static void wrong_values_say_what_is_right(void **state)
{
    (void)state;
    const struct wrong cases[] = {
        {"lease = soon\n",
         "f:3: lease: \"soon\" is not a duration; write it like 250ms, 30s, 5m or 1h30m\n"},
        {"lease = 999ms\n", "f:3: lease: \"999ms\" is out of range; it goes from 1s to 1d\n"},
        {"concurrency = 0\n",
         "f:3: concurrency: \"0\" is out of range; it goes from 1 to 10000, or is auto\n"},
        {"concurrency = many\n", "f:3: concurrency: \"many\" is not a whole number\n"},
        {"group = \"x\"\n",
         "f:3: group: \"\"x\"\" has quotes, which would be a part of it; leave them out\n"},
        {"group = a/b\n", "f:3: group: \"a/b\" is not a name; use 1 to 100 of the characters A-Z "
                          "a-z 0-9 _ . : @ -\n"},
        {"stream = a b\n", "f:3: stream: \"a b\" has white space in it; leave it out\n"},
        {"load_library = nevr\n",
         "f:3: load_library: \"nevr\" is not one of auto and never; did you mean never?\n"},
        {"[redis]\nkeepalive = 1500ms\n", "f:4: keepalive: \"1500ms\" is not in whole seconds\n"},
        {"[task]\ndirectory = srv\n",
         "f:4: directory: \"srv\" is not an absolute path; begin it with /\n"},
        {"[task]\ndirectory = /srv # data\n",
         "f:4: directory: \"/srv # data\" has a # in it; a comment on the same line begins with "
         ";\n"},
        {"[task]\npath = /bin:.:/sbin\n", "f:4: path: \"/bin:.:/sbin\" is not a list of absolute "
                                          "paths; write it like /usr/bin:/bin\n"},
        {"[task]\npath = /bin:\n",
         "f:4: path: \"/bin:\" is not a list of absolute paths; write it like /usr/bin:/bin\n"},
        {"[task]\numask = 0800\n",
         "f:4: umask: \"0800\" is not an octal mode; write it like 022\n"},
        {"[task]\numask = 7777\n",
         "f:4: umask: \"7777\" is out of range; it goes from 00 to 0777\n"},
        {"[retry]\nfactor = 0x2\n",
         "f:4: factor: \"0x2\" is not a number; write it like 2 or 1.5\n"},
        {"[retry]\nfactor = 1.2.3\n",
         "f:4: factor: \"1.2.3\" is not a number; write it like 2 or 1.5\n"},
        {"[retry]\nfactor = 0.5\n",
         "f:4: factor: \"0.5\" is out of range; it goes from 1 to 100\n"},
        {"[dead]\noutput_tail = 2M\n",
         "f:4: output_tail: \"2M\" is out of range; it goes from 0 to 1M\n"},
        {"[dead]\noutput_tail = 4 KB\n",
         "f:4: output_tail: \"4 KB\" is not a size; write it like 512, 64K or 10M\n"},
        {"[log]\nstarted = maybe\n", "f:4: started: \"maybe\" is not yes or no\n"},
    };

    assert_each(cases, COUNT(cases));
}

/* Goal: lists of codes and variables are checked piece by piece. */
static void lists_are_checked(void **state)
{
    (void)state;
    const char *codes[] = {"256", "-1", "5-3", "1-", "-", "x", "1,,x", ",", "1-2-3", "1 - 2"};
    const struct wrong variables[] = {
        {"[task]\nenvironment = LEAT_TASK=1\n",
         "f:4: environment: names that begin with LEAT_ or TASK_ are leat's own; choose another\n"},
        {"[task]\nenvironment = TASK_X=1\n",
         "f:4: environment: names that begin with LEAT_ or TASK_ are leat's own; choose another\n"},
        {"[task]\nenvironment = A\n",
         "f:4: environment: this is not NAME=VALUE; the name is of A-Z a-z 0-9 _ and begins with "
         "no digit\n"},
        {"[task]\nenvironment = 1A=1\n",
         "f:4: environment: this is not NAME=VALUE; the name is of A-Z a-z 0-9 _ and begins with "
         "no digit\n"},
        {"[task]\nenvironment = PATH=/bin\n",
         "f:4: environment: PATH has a key of its own; write path = ...\n"},
        {"[task]\nenvironment = A=1\nenvironment = AB=1\nenvironment = A=2\n",
         "f:6: environment: this variable was given before; remove one of the two lines\n"},
    };

    for (size_t i = 0; i < COUNT(codes); i++) {
        char text[128], expected[256];
        int length = snprintf(text, sizeof(text), QUEUE "[retry]\npermanent = %s\n", codes[i]);

        assert_true(snprintf(expected, sizeof(expected),
                             "f:4: permanent: \"%s\" is not a list of exit codes from 0 to 255; "
                             "write it like 64-78, 100\n",
                             codes[i]) > 0);
        assert_errors(text, (size_t)length, expected);
    }
    assert_each(variables, COUNT(variables));
}

/* Goal: settings of lanes and rates are checked part by part, with the lane's name. */
static void lanes_are_checked(void **state)
{
    (void)state;
    const struct wrong cases[] = {
        {"[lanes]\na = x\n",
         "f:4: a: \"x\" is not a weight; begin with a number from 0.001 to 1000, or "
         "strict\n"},
        {"[lanes]\na = 0\n",
         "f:4: a: \"0\" is not a weight; begin with a number from 0.001 to 1000, or "
         "strict\n"},
        {"[lanes]\na = -1\n",
         "f:4: a: \"-1\" is not a weight; begin with a number from 0.001 to 1000, "
         "or strict\n"},
        {"[lanes]\na = 1e2\n", "f:4: a: \"1e2\" is not a weight; begin with a number from 0.001 to "
                               "1000, or strict\n"},
        {"[lanes]\na = , 3\n",
         "f:4: a: \"\" is not a weight; begin with a number from 0.001 to 1000, or "
         "strict\n"},
        {"[lanes]\na = 1, 0\n",
         "f:4: a: \"0\" is not how many tasks of the lane may run: a number from 1 "
         "on, or -\n"},
        {"[lanes]\na = 1, 2, 3\n", "f:4: a: \"3\" is not a rate such as 20/s or 100/m, nor -\n"},
        {"[lanes]\na = 1, 2, 3/s, x\n", "f:4: a: \"x\" is not a burst: a number from 1 on, or -\n"},
        {"[lanes]\na = 1, 2, 3/s, 4, 5\n", "f:4: a: \"1, 2, 3/s, 4, 5\" is not \"weight, "
                                           "max_running, rate, burst\", of which the last "
                                           "may be missing\n"},
        {"[lanes]\na =\n", "f:4: a has no value; give it one, or remove the line\n"},
        {"[lanes]\na = 1\nb = 2\na = 3\n",
         "f:6: a: this lane was given before; remove one of the two lines\n"},
        {"[lane]\na = 1\n", "f:3: unknown section [lane]; did you mean [lanes]?\n"},
        {"[limits]\nrate = 20\n",
         "f:4: rate: \"20\" is not a rate such as 20/s, 100/m, 5000/h or 0.5/s, nor none\n"},
        {"[limits]\nrate = 0.0/s\nburst = 0\n",
         "f:4: rate: \"0.0/s\" is not a rate such as 20/s, 100/m, 5000/h or 0.5/s, nor none\n"
         "f:5: burst: \"0\" is out of range; it goes from 1 to 1000000000\n"},
    };
    char text[512];
    char name[LIMITS_LANE_MOST + 2] = "";

    assert_each(cases, COUNT(cases));
    memset(name, 'n', sizeof(name) - 1);
    int length = snprintf(text, sizeof(text), QUEUE "[lanes]\n%s = 1\n", name);
    assert_errors(
        text, (size_t)length,
        "f:4: nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: a lane's name has "
        "at most 200 bytes\n");
}

/* Goal: keys that contradict each other are told by both their names. */
static void rules_between_keys_hold(void **state)
{
    (void)state;
    const struct wrong cases[] = {
        {"[redis]\nsocket = /s\nhost = x\nport = 1\n",
         "f:5: socket and host exclude each other; remove one of them\n"
         "f:6: socket and port exclude each other; remove one of them\n"},
        {"[redis]\npassword = x\npassword_file = /none\n",
         "f:5: password and password_file exclude each other; remove one of them\n"},
        {"[redis]\npassword_file = /none\npassword_credential = x\n",
         "f:5: password_file and password_credential exclude each other; remove one of them\n"},
        {"lease = 10s\n",
         "f:3: [task] kill_grace (10s) is too long for [queue] lease (10s): a task must be dead "
         "before its lease passes; set kill_grace to 4s500ms or less, or lengthen the lease\n"},
        {"lease = 1s\n[task]\nkill_grace = 401ms\n",
         "f:5: [task] kill_grace (401ms) is too long for [queue] lease (1s): a task must be dead "
         "before its lease passes; set kill_grace to 400ms or less, or lengthen the lease\n"},
        {"[redis]\nbackoff_base = 20s\n",
         "f:4: backoff_base (20s) is longer than backoff_cap (10s); exchange or change them\n"},
        {"[redis]\nwait_replicas = 1\ncommand_timeout = 500ms\n",
         "f:5: wait_timeout (1s) is longer than command_timeout (500ms); exchange or change "
         "them\n"},
        {"[retry]\nbase = 1m\ncap = 30s\n",
         "f:5: base (1m) is longer than cap (30s); exchange or change them\n"},
        {"[retry]\npermanent = 0-1\n", "f:4: permanent: 0 is always success; remove it\n"},
        {"[retry]\npermanent = 1-4\nsuccess = 3\n",
         "f:5: exit code 3 is in both permanent and success; remove it from one\n"},
        {"[retry]\npermanent = 64\nexit.60-70 = retry\nsuccess = 70-71\n",
         "f:5: exit code 64 is in permanent, and in a range of exit codes; remove it from one\n"
         "f:6: exit code 70 is in success, and in a range of exit codes; remove it from one\n"},
        {"[task]\nbatch = 2\n",
         "f:4: batch needs a command that reads many tasks; add command, or remove batch\n"},
        {"[task]\nbatch = 2\nstdin = null\ncommand = x\n",
         "f:5: a batch is read from standard input; remove stdin = null, or batch\n"},
        {"stream = a}b\n",
         "f:3: stream: a } needs a {tag} that is not empty; leat's other keys could not share its "
         "slot in a Cluster\n"},
        {"stream = {}b\n",
         "f:3: stream: a } needs a {tag} that is not empty; leat's other keys could not share its "
         "slot in a Cluster\n"},
    };

    assert_each(cases, COUNT(cases));

    /* and just within the limit, or without what it is for */
    struct config *config;
    struct buffer errors = BUFFER_INIT;
    static const char good[] =
        QUEUE "lease = 1s\n[task]\nkill_grace = 400ms\n[redis]\ncommand_timeout = 500ms\n";
    assert_int_equal(config_parse("f", good, sizeof(good) - 1, &config, &errors), 0);
    config_free(config);
}

/* Goal: lists that could not be taken in, or whose items could not run, are told before. */
static void intake_must_make_tasks_that_run(void **state)
{
    (void)state;
    const struct wrong cases[] = {
        {"[task]\ncommand = x\n[intake]\nlists = a b a\n",
         "f:6: lists: \"a b a\" names one of them twice; remove it\n"},
        {"[intake]\nlane_from = suffix\n",
         "f:4: lane_from = suffix needs a prefix; add prefix, or remove it\n"},
        {"[task]\ncommand = x\n[intake]\nlists = work q\n",
         "f:6: lists: q is the queue's stream; give one of them another key\n"},
        {"[intake]\nprefix = work:\n",
         "f:4: items become the field payload, and nothing says what runs for them; add command = "
         "... under [task]\n"},
        {"[task]\ncommand = x\n[intake]\nlists = work\nfield = command\n",
         "f:7: field = command and [task] command exclude each other; remove one of them\n"},
        {"[task]\ncommand = x\n[intake]\nlists = work\nfield = expires\n",
         "f:7: field: an item can become payload, command, or a variable's name, not expires\n"},
        {"[task]\ncommand = x\n[intake]\nlists = work\nfield = leat.x\n",
         "f:7: field: an item can become payload, command, or a variable's name, not leat.x\n"},
        {"[intake]\nunique = items\n",
         "f:4: unique: \"items\" is not one of none and item; did you mean item?\n"},
    };

    assert_each(cases, COUNT(cases));
}

/* Goal: the name is required, and an error in it is not told twice. */
static void the_name_is_required(void **state)
{
    (void)state;
    assert_errors("", 0, "f:1: [queue] has no name; add name = NAME under [queue]\n");
    assert_errors("[queue]\n\n", 9, "f:2: [queue] has no name; add name = NAME under [queue]\n");
    assert_errors("[queue]\nname = a b\n", 19,
                  "f:2: name: \"a b\" is not a name; use 1 to 100 of the characters A-Z a-z 0-9 _ "
                  ". : @ -\n");
    assert_errors("name = q\n", 9,
                  "f:1: name stands before any section; put it under [queue]\n"
                  "f:1: [queue] has no name; add name = NAME under [queue]\n");
}

/* Goal: all errors come at once, in the order of the file. */
static void all_errors_come_at_once(void **state)
{
    (void)state;
    static const char text[] = "x = 1\n[redis]\nsocket = s\nport = 0\n[queue\n[task]\n umask = 1\n"
                               "shell = sh\nshell = /bin/sh\n[nope]\n[log]\nlevel = loud\n";

    assert_errors(text, sizeof(text) - 1,
                  "f:1: x stands before any section; put it under [queue]\n"
                  "f:3: socket: \"s\" is not an absolute path; begin it with /\n"
                  "f:4: port: \"0\" is out of range; it goes from 1 to 65535\n"
                  "f:4: socket and port exclude each other; remove one of them\n"
                  "f:5: the section's name does not end; write [queue]\n"
                  "f:7: the line begins with white space; values end with their line, begin this "
                  "one in the first column\n"
                  "f:8: shell: \"sh\" is not an absolute path; begin it with /\n"
                  "f:9: shell was given on line 8 before; remove one of the two\n"
                  "f:10: unknown section [nope]; see leat.ini(5)\n"
                  "f:12: level: \"loud\" is not one of error, warning, notice, info and debug\n"
                  "f:12: [queue] has no name; add name = NAME under [queue]\n");
}

/* Goal: a password never stands in a message. */
static void passwords_are_not_told(void **state)
{
    (void)state;
    static const char text[] = QUEUE "[redis]\npassword = hunter2\npassword = hunter2 ; x\n"
                                     "password_file = /none\n[task]\nenvironment = hunter2\n";
    struct config *config;
    struct buffer errors = BUFFER_INIT;

    assert_int_equal(config_parse("f", text, sizeof(text) - 1, &config, &errors), -1);
    assert_int_equal(buffer_append(&errors, "", 1), 0);
    assert_null(strstr(errors.data, "hunter2"));
    buffer_free(&errors);
}

/* Goal: the distance between words is that of people's slips. */
static void distances_are_right(void **state)
{
    (void)state;
    assert_int_equal(suggest_distance("lease", "lease"), 0);
    assert_int_equal(suggest_distance("", "abc"), 3);
    assert_int_equal(suggest_distance("laese", "lease"), 1);
    assert_int_equal(suggest_distance("leases", "lease"), 1);
    assert_int_equal(suggest_distance("kitten", "sitting"), 3);
    assert_int_equal(suggest_distance("MAX-LENGTH", "max_length"), 0);
    assert_true(suggest_distance("a", "123456789012345678901234567890123") == SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_are_named_in_one_way),
        cmocka_unit_test(unknown_words_get_a_suggestion),
        cmocka_unit_test(malformed_lines_are_errors),
        cmocka_unit_test(wrong_values_say_what_is_right),
        cmocka_unit_test(lists_are_checked),
        cmocka_unit_test(lanes_are_checked),
        cmocka_unit_test(rules_between_keys_hold),
        cmocka_unit_test(intake_must_make_tasks_that_run),
        cmocka_unit_test(the_name_is_required),
        cmocka_unit_test(all_errors_come_at_once),
        cmocka_unit_test(passwords_are_not_told),
        cmocka_unit_test(distances_are_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
