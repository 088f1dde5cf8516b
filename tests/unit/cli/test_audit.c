/* Audit records of operators: their content in the journal, and that nothing else gets them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/log_world.h"
#include "base/log/log_ids.h"
#include "cli/lib/audit.h"
#include "cli/lib/cli.h"

static char queue_name[] = "thumbs";

static struct cli made_cli(struct config *config)
{
    *config = (struct config){.queue.name = queue_name};
    return (struct cli){.config = config};
}

/* The next record as text; short fields are lines of it. */
static const char *next_record(struct world *world)
{
    assert_true(receive(world));
    assert_int_equal(buffer_append(&world->text, "", 1), 0);
    return world->text.data;
}

/* Goal: one record names the user, the action, the tasks and their number. */
static void tells_who_did_what(void **state)
{
    struct world *world = *state;
    struct audit act = {.event = "operator-cancel"};
    struct config config;
    struct cli cli = made_cli(&config);
    char who[AUDIT_WHO_SIZE], line[2 * AUDIT_WHO_SIZE];
    const char *record;

    audit_who(who);
    audit_add(&act, "17-0");
    audit_add(&act, "18-0");
    audit_record(&cli, &act, "cancelled %d tasks", 2);
    record = next_record(world);
    assert_non_null(strstr(record, "MESSAGE_ID=" LOG_ID_OPERATOR "\n"));
    assert_non_null(strstr(record, "PRIORITY=5\n"));
    assert_non_null(strstr(record, "LEAT_QUEUE=thumbs\n"));
    assert_non_null(strstr(record, "LEAT_EVENT=operator-cancel\n"));
    assert_non_null(strstr(record, "LEAT_COUNT=2\n"));
    assert_non_null(strstr(record, "LEAT_TASK=17-0\nLEAT_TASK=18-0\n"));
    assert_true(snprintf(line, sizeof line, "LEAT_OPERATOR=%s\n", who) > 0);
    assert_non_null(strstr(record, line));
    assert_true(snprintf(line, sizeof line, "%s cancelled 2 tasks: 17-0, 18-0", who) > 0);
    assert_non_null(strstr(record, line));
    assert_false(receive(world));
    assert_string_equal(read_stderr(world), "");
}

/* Goal: for any number of tasks, the record names the first ones and stays small. */
static void names_only_some(void **state)
{
    struct world *world = *state;
    struct audit act = {.event = "operator-dead-drop"};
    struct config config;
    struct cli cli = made_cli(&config);
    const char *record;
    char id[32];

    for (int i = 0; i < 100000; i++) {
        assert_true(snprintf(id, sizeof id, "%d-0", i) > 0);
        audit_add(&act, id);
    }
    audit_record(&cli, &act, "dropped them");
    record = next_record(world);
    assert_non_null(strstr(record, "LEAT_COUNT=100000\n"));
    assert_int_equal(count_of(record, "LEAT_TASK="), AUDIT_IDS);
    assert_non_null(strstr(record, "dropped them: 0-0, 1-0, "));
    assert_non_null(strstr(record, " and 99980 more"));
}

/* Goal: an action without tasks has neither a number nor names. */
static void acts_on_the_queue(void **state)
{
    struct world *world = *state;
    const struct audit act = {.event = "operator-pause"};
    struct config config;
    struct cli cli = made_cli(&config);
    const char *record;

    audit_record(&cli, &act, "paused the queue");
    record = next_record(world);
    assert_null(strstr(record, "LEAT_COUNT"));
    assert_null(strstr(record, "LEAT_TASK"));
    assert_non_null(strstr(record, " paused the queue\n"));
}

/* Goal: without a journal, and with one that is not read, leat prints nothing. */
static void silent_without_a_journal(void **state)
{
    struct world *world = *state;
    const struct audit act = {.event = "operator-pause"};
    struct config config;
    struct cli cli = made_cli(&config);

    close(world->journal);
    audit_record(&cli, &act, "paused the queue");
    unlink(world->socket_path);
    audit_record(&cli, &act, "paused the queue");
    assert_string_equal(read_stderr(world), "");
    assert_int_equal(open_journal(world), 0);
    assert_false(receive(world));
}

/* Goal: the name is the user's and the host's, printable and of limited length; behind sudo it
 * is the caller's, but only root's word for it is trusted. */
static void knows_who(void **state)
{
    char who[AUDIT_WHO_SIZE], own[AUDIT_WHO_SIZE], host[256];

    (void)state;
    assert_int_equal(gethostname(host, sizeof host), 0);
    assert_int_equal(unsetenv("SUDO_USER"), 0);
    audit_who(own);
    assert_int_equal(strncmp(strchr(own, '@') + 1, host, AUDIT_WHO_SIZE - 50), 0);

    assert_int_equal(setenv("SUDO_USER", "al ice\n\xff", 1), 0);
    audit_who(who);
    if (getuid() == 0) {
        assert_int_equal(strncmp(who, "al?ice??@", 9), 0);
    } else {
        assert_string_equal(who, own);
    }
    assert_int_equal(setenv("SUDO_USER", "", 1), 0);
    audit_who(who);
    assert_string_equal(who, own);
    assert_int_equal(unsetenv("SUDO_USER"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tells_who_did_what),       TEST(names_only_some), TEST(acts_on_the_queue),
        TEST(silent_without_a_journal), TEST(knows_who),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
