/* Errors in a configuration: all are found at once, each with its line and what to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/file/load.h"
#include "config/suggest.h"
#include "queue/shared/limits.h"

#define QUEUE "[queue]\nname = q\n"
#define COUNT(list) (sizeof list / sizeof((list)[0]))

#define TEN "0123456789"

struct wrong {
    const char *text;   /* the text after QUEUE, which has two lines */
    const char *errors; /* all errors */
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
        int length = snprintf(text, sizeof text, QUEUE "%s", cases[i].text);

        assert_errors(text, (size_t)length, cases[i].errors);
    }
}

/* Goal: exactly one way to find the server may be configured, and it must be complete. */
static void servers_are_named_in_one_way(void **state)
{
    (void)state;
    const struct wrong cases[] = {
        {"[redis]\nsentinels = a:1, b:2\n",
         "f:4: sentinels: requires master; add master or remove sentinels\n"},
        {"[redis]\nmaster = m\n",
         "f:4: master: requires sentinels; add sentinels or remove master\n"},
        {"[redis]\nsentinel_password = x\n",
         "f:4: sentinel_password: requires sentinels; add sentinels or remove "
         "sentinel_password\n"},
        {"[redis]\nhost = h\nsentinels = a:1\nmaster = m\n",
         "f:5: sentinels: cannot be combined with host; remove one of them\n"},
        {"[redis]\ncluster = a:1\nport = 7\n",
         "f:5: cluster: cannot be combined with port; remove one of them\n"},
        {"[redis]\ncluster = a:1\nsocket = /s\n",
         "f:5: cluster: cannot be combined with socket; remove one of them\n"},
        {"[redis]\ncluster = a:1\nsentinels = a:1\nmaster = m\n",
         "f:5: sentinels: cannot be combined with cluster; remove one of them\n"},
        {"[redis]\ncluster = a:1\ndb = 3\n",
         "f:5: cluster: cannot be combined with db; remove one of them\n"},
        {"[redis]\ncluster = a:1 b\n",
         "f:4: cluster: \"b\" is not an address; write it HOST:PORT, or [IPv6]:PORT\n"},
        {"[redis]\ncluster = ::1:6379\n",
         "f:4: cluster: \"::1:6379\" is not an address; write it HOST:PORT, or [IPv6]:PORT\n"},
        {"[redis]\ncluster = [::1]:0\n",
         "f:4: cluster: \"[::1]:0\" is not an address; write it HOST:PORT, or [IPv6]:PORT\n"},
        {"[redis]\ncluster = a:1, a:1\n",
         "f:4: cluster: \"a:1\" is listed twice; remove one of them\n"},
        {"[redis]\ncluster = ,\n", "f:4: cluster: \"\" contains no address; write HOST:PORT\n"},
        {"[redis]\ncluster = [::1]:1\n[intake]\nlists = {q}:a other\n[task]\ncommand = true\n",
         "f:6: lists: other is not in the hash slot of the stream q, as a Cluster requires; use "
         "the same {tag} in both\n"},
        {"[redis]\ncluster = a:1\n[intake]\nprefix = q\n[task]\ncommand = true\n",
         "f:6: prefix: a Cluster requires the {tag} of the stream q; add it to the prefix\n"},
    };

    assert_each(cases, COUNT(cases));
}

/* Goal: the error about an unknown key or section suggests the one that was probably meant. */
static void unknown_words_get_a_suggestion(void **state)
{
    (void)state;
    const struct wrong cases[] = {
        {"concurency = 3\n",
         "f:3: concurency: unknown key in [queue]; did you mean concurrency?\n"},
        {"Lease = 3s\n", "f:3: Lease: unknown key in [queue]; did you mean lease?\n"},
        {"max-length = 3\n", "f:3: max-length: unknown key in [queue]; did you mean max_length?\n"},
        {"max_atempts = 3\n",
         "f:3: max_atempts: unknown key in [queue]; did you mean max_attempts in [retry]?\n"},
        {"timeout = 3\n", "f:3: timeout: not a key of [queue]; move it to [task]\n"},
        {"flux_capacitor = 3\n", "f:3: flux_capacitor: unknown key in [queue]; see leat.ini(5)\n"},
        {"e\033[2Jvil\xff = 3\n", "f:3: unexpected control character 0x1b; remove it\n"},
        {"\xff\xfe\xfd\xfc = 3\n",
         "f:3: \\xff\\xfe\\xfd\\xfc: unknown key in [queue]; see leat.ini(5)\n"},
        {"[retries]\nbase = x\ncap = y\n[log]\nlevel = 1\n",
         "f:3: [retries]: unknown section; did you mean [retry]?\n"
         "f:7: level: \"1\" is not one of error, warning, notice, info and debug\n"},
        {"[flux capacitor]\nx = 1\n", "f:3: [flux capacitor]: unknown section; see leat.ini(5)\n"},
    };

    assert_each(cases, COUNT(cases));
}

/* Goal: lines that inih would skip, join or cut are errors. */
static void malformed_lines_are_errors(void **state)
{
    (void)state;
    const struct wrong cases[] = {
        {"concurrency\n",
         "f:3: \"concurrency\" is neither KEY = VALUE nor [SECTION]; a comment begins with ;\n"},
        {"concurrency ; = 3\n", "f:3: \"concurrency ; = 3\" is neither KEY = VALUE nor [SECTION]; "
                                "a comment begins with ;\n"},
        {"= 3\n", "f:3: missing key; write KEY = VALUE\n"},
        {"[task\ncommand = x\n", "f:3: missing ] after the name of the section; write [task]\n"},
        {"[task] command = x\n",
         "f:3: unexpected text after the name of the section; put it on a line of its own\n"},
        {"[task]\ncommand = a\n  b\n",
         "f:5: unexpected white space before the line, since no value continues on the next line; "
         "begin in the first column\n"},
        {"lease =\n", "f:3: lease: no value; set one, or remove the line for the default 60s\n"},
        {"stream = ; none\n", "f:3: stream: no value; set one, or remove the line\n"},
        {"lease = 60s\nscan = 5s\nlease = 60s\n",
         "f:5: lease: already set on line 3; remove one of the two lines\n"},
        {"[task]\ncommand = cd /x ; make\n",
         "f:4: command: white space and ; begin a comment, which would cut the value; remove the "
         "white space, or put the comment on a line of its own\n"},
        {"[task]\ncommand = ; make\n",
         "f:4: command: white space and ; begin a comment, which would cut the value; remove the "
         "white space, or put the comment on a line of its own\n"},
        {"[redis]\npassword = a\t;b\n",
         "f:4: password: white space and ; begin a comment, which would cut the value; remove the "
         "white space, or put the comment on a line of its own\n"},
    };
    static const char nul[] = QUEUE "lease\0 = 5\n";

    assert_each(cases, COUNT(cases));
    assert_errors(nul, sizeof nul - 1, "f:3: unexpected control character 0x00; remove it\n");
}

/* Goal: the error about a value says which values are valid, and the range. */
static void wrong_values_say_what_is_right(void **state)
{
    (void)state;
    const struct wrong cases[] = {
        {"lease = soon\n",
         "f:3: lease: \"soon\" is not a duration; write it like 250ms, 30s, 5m or 1h30m\n"},
        {"lease = 999ms\n", "f:3: lease: \"999ms\" is out of range; use 1s to 1d\n"},
        {"concurrency = 0\n", "f:3: concurrency: \"0\" is out of range; use 1 to 10000, or auto\n"},
        {"concurrency = many\n",
         "f:3: concurrency: \"many\" is not a whole number; use 1 to 10000, or auto\n"},
        {"[redis]\nport = 99999999999999999999\n",
         "f:4: port: \"99999999999999999999\" is out of range; use 1 to 65535\n"},
        {"lease = 40000d\n", "f:3: lease: \"40000d\" is out of range; use 1s to 1d\n"},
        {"lease = 99999999999999999999\n",
         "f:3: lease: \"99999999999999999999\" is out of range; use 1s to 1d\n"},
        {"max_task = 8388608T\n",
         "f:3: max_task: \"8388608T\" is out of range; use 64K to 1T, or none\n"},
        {"[isolation]\ncpu_max = 99999999999999999999%\n",
         "f:4: cpu_max: \"99999999999999999999%\" is out of range; use 1% to 1000000%, or none\n"},
        {"group = \"x\"\n",
         "f:3: group: \"\"x\"\" contains quotes, which would be part of the value; remove them\n"},
        {"group = a/b\n", "f:3: group: \"a/b\" is not a name; use 1 to 100 of the characters A-Z "
                          "a-z 0-9 _ . : @ -\n"},
        {"stream = a b\n", "f:3: stream: \"a b\" contains white space; remove it\n"},
        {"load_library = nevr\n",
         "f:3: load_library: \"nevr\" is not one of auto and never; did you mean never?\n"},
        {"[redis]\nkeepalive = 1500ms\n",
         "f:4: keepalive: \"1500ms\" is not a whole number of seconds\n"},
        {"[task]\ndirectory = srv\n",
         "f:4: directory: \"srv\" is not an absolute path; begin it with /\n"},
        {"[task]\ndirectory = /srv # data\n", "f:4: directory: \"/srv # data\" contains a #; a "
                                              "comment on the same line begins with ;\n"},
        {"[task]\npath = /bin:.:/sbin\n", "f:4: path: \"/bin:.:/sbin\" is not a list of absolute "
                                          "paths; write it like /usr/bin:/bin\n"},
        {"[task]\npath = /bin:\n",
         "f:4: path: \"/bin:\" is not a list of absolute paths; write it like /usr/bin:/bin\n"},
        {"[task]\numask = 0800\n",
         "f:4: umask: \"0800\" is not an octal mode; write it like 022\n"},
        {"[task]\numask = 7777\n", "f:4: umask: \"7777\" is out of range; use 000 to 777\n"},
        {"[retry]\nfactor = 0x2\n",
         "f:4: factor: \"0x2\" is not a number; write it like 2 or 1.5\n"},
        {"[retry]\nfactor = 1.2.3\n",
         "f:4: factor: \"1.2.3\" is not a number; write it like 2 or 1.5\n"},
        {"[retry]\nfactor = 0.5\n", "f:4: factor: \"0.5\" is out of range; use 1 to 100\n"},
        {"[dead]\nkeep = 3651d\n",
         "f:4: keep: \"3651d\" is out of range; use 1s to 3650d, or none\n"},
        {"[retry]\ncap = 31d\n", "f:4: cap: \"31d\" is out of range; use 0s to 30d\n"},
        {"[dead]\noutput_tail = 2M\n", "f:4: output_tail: \"2M\" is out of range; use 0 to 1M\n"},
        {"[dead]\noutput_tail = 4 KB\n",
         "f:4: output_tail: \"4 KB\" is not a size; write it like 512, 64K or 10M\n"},
        {"[log]\nstarted = maybe\n", "f:4: started: \"maybe\" is not yes or no\n"},
    };

    assert_each(cases, COUNT(cases));
}

/* Goal: each part of lists of codes and variables is checked. */
static void lists_are_checked(void **state)
{
    (void)state;
    const char *codes[] = {"256", "-1", "5-3", "1-", "-", "x", "1,,x", ",", "1-2-3", "1 - 2"};
    const struct wrong variables[] = {
        {"[task]\nenvironment = LEAT_TASK=1\n",
         "f:4: environment: names that begin with LEAT_ or TASK_ are reserved; use another\n"},
        {"[task]\nenvironment = TASK_X=1\n",
         "f:4: environment: names that begin with LEAT_ or TASK_ are reserved; use another\n"},
        {"[task]\nenvironment = A\n", "f:4: environment: not NAME=VALUE; use A-Z a-z 0-9 _ for the "
                                      "name, and no digit at its beginning\n"},
        {"[task]\nenvironment = 1A=1\n", "f:4: environment: not NAME=VALUE; use A-Z a-z 0-9 _ for "
                                         "the name, and no digit at its beginning\n"},
        {"[task]\nenvironment = PATH=/bin\n",
         "f:4: environment: PATH is set by the key path; write path = ...\n"},
        {"[task]\nenvironment = A=1\nenvironment = AB=1\nenvironment = A=2\n",
         "f:6: environment: this variable is already set; remove one of the two lines\n"},
    };

    for (size_t i = 0; i < COUNT(codes); i++) {
        char text[128], expected[256];
        int length = snprintf(text, sizeof text, QUEUE "[retry]\npermanent = %s\n", codes[i]);

        assert_true(snprintf(expected, sizeof expected,
                             "f:4: permanent: \"%s\" is not a list of exit codes from 0 to 255; "
                             "write it like 64-78, 100\n",
                             codes[i]) > 0);
        assert_errors(text, (size_t)length, expected);
    }
    assert_each(variables, COUNT(variables));
}

/* Goal: each setting of a lane is checked, and the error names the lane. */
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
        {"[lanes]\na = -\n", "f:4: a: \"-\" is not a weight; begin with a number from 0.001 to "
                             "1000, or strict\n"},
        {"[lanes]\na = , 3\n",
         "f:4: a: \"\" is not a weight; begin with a number from 0.001 to 1000, or "
         "strict\n"},
        {"[lanes]\na = 1, 0\n",
         "f:4: a: \"0\" is not a number of running tasks; write a number from 1 on, or -\n"},
        {"[lanes]\na = 1, 2, 3\n",
         "f:4: a: \"3\" is not a rate; write it like 20/s or 100/m, or -\n"},
        {"[lanes]\na = 1, 2, 3/s, x\n",
         "f:4: a: \"x\" is not a burst; write a number from 1 on, or -\n"},
        {"[lanes]\na = 1, 2, 3/s, 4, 5\n",
         "f:4: a: \"1, 2, 3/s, 4, 5\" is not a list of settings; write \"weight, max_running, "
         "rate, burst\", or leave out the last ones\n"},
        {"[lanes]\na =\n", "f:4: a: no value; set one, or remove the line\n"},
        {"[lanes]\na = 1\nb = 2\na = 3\n",
         "f:6: a: this lane is already set; remove one of the two lines\n"},
        {"[lane]\na = 1\n", "f:3: [lane]: unknown section; did you mean [lanes]?\n"},
        {"[limits]\nrate = 20\n",
         "f:4: rate: \"20\" is not a rate; write it like 20/s, 100/m, 5000/h or 0.5/s, or none\n"},
        {"[limits]\nrate = 0.0/s\nburst = 0\n",
         "f:4: rate: \"0.0/s\" is not a rate; write it like 20/s, 100/m, 5000/h or 0.5/s, or none\n"
         "f:5: burst: \"0\" is out of range; use 1 to 1000000000\n"},
    };
    char text[512];
    char name[QUEUE_MAX_LANE + 2] = "";

    assert_each(cases, COUNT(cases));
    memset(name, 'n', sizeof name - 1);
    int length = snprintf(text, sizeof text, QUEUE "[lanes]\n%s = 1\n", name);
    assert_errors(text, (size_t)length,
                  "f:4: nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn: the name "
                  "of a lane has at most 200 bytes; shorten it\n");
}

/* Goal: the error about keys that cannot be combined names both. */
static void rules_between_keys_hold(void **state)
{
    (void)state;
    const struct wrong cases[] = {
        {"[redis]\nsocket = /" TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "1234567\n",
         "f:4: socket: a path of more than 107 bytes; use a shorter one, such as that of a "
         "symbolic "
         "link\n"},
        {"[redis]\nsocket = /s\nhost = x\nport = 1\n",
         "f:5: socket: cannot be combined with host; remove one of them\n"
         "f:6: socket: cannot be combined with port; remove one of them\n"},
        {"[redis]\npassword = x\npassword_file = /none\n",
         "f:5: password: cannot be combined with password_file; remove one of them\n"},
        {"[redis]\npassword_file = /none\npassword_credential = x\n",
         "f:5: password_file: cannot be combined with password_credential; remove one of them\n"},
        {"lease = 10s\n",
         "f:3: kill_grace: 10s does not fit into a lease of 10s: a task must be dead before its "
         "lease passes; set [task] kill_grace to 4s500ms or less, or raise [queue] lease\n"},
        {"lease = 1s\n[task]\nkill_grace = 401ms\n",
         "f:5: kill_grace: 401ms does not fit into a lease of 1s: a task must be dead before its "
         "lease passes; set [task] kill_grace to 400ms or less, or raise [queue] lease\n"},
        {"[redis]\nbackoff_base = 20s\n", "f:4: backoff_base: 20s is longer than backoff_cap "
                                          "(10s); lower backoff_base or raise backoff_cap\n"},
        {"[redis]\nwait_replicas = 1\ncommand_timeout = 500ms\n",
         "f:5: wait_timeout: 1s is longer than command_timeout (500ms); lower wait_timeout or "
         "raise command_timeout\n"},
        {"[retry]\nbase = 1m\ncap = 30s\n",
         "f:5: base: 1m is longer than cap (30s); lower base or raise cap\n"},
        {"[retry]\npermanent = 0-1\n",
         "f:4: permanent: exit code 0 always means success; remove it\n"},
        {"[retry]\npermanent = 1-4\nsuccess = 3\n",
         "f:5: permanent: exit code 3 is also in success; remove it from one of them\n"},
        {"[retry]\npermanent = 64\nexit.60-70 = retry\nsuccess = 70-71\n",
         "f:5: permanent: exit code 64 is also in a range of exit codes; remove it from one of "
         "them\n"
         "f:6: success: exit code 70 is also in a range of exit codes; remove it from one of "
         "them\n"},
        {"[task]\nbatch = 2\n",
         "f:4: batch: requires a command that reads many tasks; add command or remove batch\n"},
        {"[task]\nbatch = 2\nstdin = null\ncommand = x\n",
         "f:5: batch: the command reads tasks from standard input, but stdin is null; remove one "
         "of them\n"},
        {"[task]\nresident = yes\n",
         "f:4: resident: requires a command that stays and reads tasks; add command or remove "
         "resident\n"},
        {"[task]\nresident = yes\nstdin = null\ncommand = x\n",
         "f:5: resident: the command reads tasks from standard input, but stdin is null; remove "
         "one of them\n"},
        {"concurrency = 5001\n[task]\nresident = yes\ncommand = x\n",
         "f:5: resident: at most 5000 slots can have resident processes; set [queue] concurrency "
         "to 5000 or less\n"},
        {"[task]\nresident_idle = 1s\ncommand = x\n",
         "f:4: resident_idle: has no effect without resident processes; add resident = yes\n"},
        {"stream = a}b\n", "f:3: stream: a } without a {tag} keeps leat's other keys out of its "
                           "hash slot in a Cluster; remove it, or write {tag}\n"},
        {"stream = {}b\n", "f:3: stream: a } without a {tag} keeps leat's other keys out of its "
                           "hash slot in a Cluster; remove it, or write {tag}\n"},
    };

    assert_each(cases, COUNT(cases));

    /* values just within the limit, and limits that do not apply, are valid */
    struct config *config;
    struct buffer errors = BUFFER_INIT;
    static const char good[] =
        QUEUE "lease = 1s\n[task]\nkill_grace = 400ms\n[redis]\ncommand_timeout = 500ms\n";
    assert_int_equal(config_parse("f", good, sizeof good - 1, &config, &errors), 0);
    config_free(config);
}

/* Goal: lists that cannot be read, and items for which no command would run, are errors. */
static void intake_must_make_tasks_that_run(void **state)
{
    (void)state;
    const struct wrong cases[] = {
        {"[task]\ncommand = x\n[intake]\nlists = a b a\n",
         "f:6: lists: \"a b a\" contains an entry twice; remove one of them\n"},
        {"[task]\ncommand = x\n[intake]\nlists = a, b,c d\n",
         "f:6: lists: a, ends with a comma; separate the keys by spaces only\n"},
        {"[intake]\nlane_from = suffix\n",
         "f:4: lane_from: suffix requires prefix; add prefix or remove lane_from\n"},
        {"[task]\ncommand = x\n[intake]\nlists = work q\n",
         "f:6: lists: q is the stream of the queue; use another key for one of them\n"},
        {"[intake]\nprefix = work:\n", "f:4: field: no command runs for items that become the "
                                       "field payload; add command = ... under [task]\n"},
        {"[task]\ncommand = x\n[intake]\nlists = work\nfield = command\n",
         "f:7: field: command cannot be combined with [task] command; remove one of them\n"},
        {"[task]\ncommand = x\n[intake]\nlists = work\nfield = expires\n",
         "f:7: field: an item cannot become expires; use payload, command or the name of a "
         "variable\n"},
        {"[task]\ncommand = x\n[intake]\nlists = work\nfield = live\n",
         "f:7: field: an item cannot become live; use payload, command or the name of a "
         "variable\n"},
        {"[task]\ncommand = x\n[intake]\nlists = work\nfield = unique_next\n",
         "f:7: field: an item cannot become unique_next; use payload, command or the name of a "
         "variable\n"},
        {"[task]\ncommand = x\n[intake]\nlists = work\nfield = leat.x\n",
         "f:7: field: an item cannot become leat.x; use payload, command or the name of a "
         "variable\n"},
        {"[task]\ncheck_after = lost, timeuot\n",
         "f:4: check_after: \"timeuot\" is not one of lost, timeout and killed; did you mean "
         "timeout?\n"},
        {"[task]\ncheck_after = ,\n",
         "f:4: check_after: \",\" is not one of lost, timeout and killed\n"},
        {"[intake]\nunique = items\n",
         "f:4: unique: \"items\" is not one of none and item; did you mean item?\n"},
    };

    assert_each(cases, COUNT(cases));
}

/* Goal: the name is required, and an error in it is reported once. */
static void the_name_is_required(void **state)
{
    (void)state;
    assert_errors("", 0, "f:1: name: is required; add name = NAME under [queue]\n");
    assert_errors("[queue]\n\n", 9, "f:2: name: is required; add name = NAME under [queue]\n");
    assert_errors("[queue]\nname = a b\n", 19,
                  "f:2: name: \"a b\" is not a name; use 1 to 100 of the characters A-Z a-z 0-9 _ "
                  ". : @ -\n");
    assert_errors("name = q\n", 9,
                  "f:1: name: comes before any section; put it under [queue]\n"
                  "f:1: name: is required; add name = NAME under [queue]\n");
}

/* Goal: a key above all sections is put under a section only if that has a key of this name. */
static void a_key_needs_a_section(void **state)
{
    (void)state;
    assert_errors("timeout = 5\nfoo = 1\nkey = 2\n[queue]\nname = q\n", 45,
                  "f:1: timeout: comes before any section; put it under [task]\n"
                  "f:2: foo: comes before any section; put a line such as [queue] above it\n"
                  "f:3: key: comes before any section; put a line such as [queue] above it\n");
}

/* Goal: all errors are reported at once, in the order of the file. */
static void all_errors_come_at_once(void **state)
{
    (void)state;
    static const char text[] = "x = 1\n[redis]\nsocket = s\nport = 0\n[queue\n[task]\n umask = 1\n"
                               "shell = sh\nshell = /bin/sh\n[nope]\n[log]\nlevel = loud\n";

    assert_errors(text, sizeof text - 1,
                  "f:1: x: comes before any section; put a line such as [queue] above it\n"
                  "f:3: socket: \"s\" is not an absolute path; begin it with /\n"
                  "f:4: port: \"0\" is out of range; use 1 to 65535\n"
                  "f:4: socket: cannot be combined with port; remove one of them\n"
                  "f:5: missing ] after the name of the section; write [queue]\n"
                  "f:7: unexpected white space before the line, since no value continues on the "
                  "next line; begin in the first column\n"
                  "f:8: shell: \"sh\" is not an absolute path; begin it with /\n"
                  "f:9: shell: already set on line 8; remove one of the two lines\n"
                  "f:10: [nope]: unknown section; see leat.ini(5)\n"
                  "f:12: level: \"loud\" is not one of error, warning, notice, info and debug\n"
                  "f:12: name: is required; add name = NAME under [queue]\n");
}

/* Goal: no message contains a password. */
static void passwords_are_not_told(void **state)
{
    (void)state;
    static const char text[] = QUEUE "[redis]\npassword = hunter2\npassword = hunter2 ; x\n"
                                     "password_file = /none\n[task]\nenvironment = hunter2\n";
    struct config *config;
    struct buffer errors = BUFFER_INIT;

    assert_int_equal(config_parse("f", text, sizeof text - 1, &config, &errors), -1);
    assert_int_equal(buffer_append(&errors, "", 1), 0);
    assert_null(strstr(errors.data, "hunter2"));
    buffer_free(&errors);
}

/* Goal: the distance between words counts typing mistakes. */
static void distances_are_right(void **state)
{
    (void)state;
    assert_int_equal(suggest_distance("lease", "lease"), 0);
    assert_int_equal(suggest_distance("", "abc"), 3);
    assert_int_equal(suggest_distance("laese", "lease"), 1);
    assert_int_equal(suggest_distance("leases", "lease"), 1);
    assert_int_equal(suggest_distance("kitten", "sitting"), 3);
    assert_int_equal(suggest_distance("MAX-LENGTH", "max_length"), 0);
    assert_true(suggest_badness("foo", "top") == SIZE_MAX);
    assert_true(suggest_badness("tpo", "top") < SIZE_MAX);
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
        cmocka_unit_test(a_key_needs_a_section),
        cmocka_unit_test(all_errors_come_at_once),
        cmocka_unit_test(passwords_are_not_told),
        cmocka_unit_test(distances_are_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
