/* Each allocation fails in turn: reading and merging configurations and logging never crash, leak,
 * or return an incomplete config. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log/log.h"
#include "config/config.h"
#include "config/file/load.h"
#include "exec/start/commands.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

static const char text[] =
    "[redis]\nuser = u\npassword = p\nnonsense = 1\n[queue]\nname = q\nlease = 2m\nscan = x\n"
    "[task]\ncommand = c\nenvironment = A=1\nenvironment = B=2\n[retry]\npermanent = 1\n"
    "exit.7 = ded\nsignal.TREM = dead\noom = 1\n[log]\nlevel = loud\n"
    "[security]\nkey_files = a:b\n[command.x]\nprogram = a\narguments = 'a {A=b}' c "
    "{D}\n[command.y]\n"
    "arguments = {\n";
static const char good[] =
    "[redis]\nuser = u\npassword = p\n[queue]\nname = q\nlease = 2m\n[task]\ncommand = c\n"
    "environment = A=1\nenvironment = B=2\n[retry]\npermanent = 1\nexit.7 = 3\n"
    "signal.HUP = dead\npreset = qmail\n[intake]\nlists = a b\n"
    "[security]\nkey_files = a:/a b:/b\nkey_credentials = c\n";
static const char other[] = "[redis]\nhost = h\n[queue]\nname = other\n";

/* AddressSanitizer has an allocator of its own, which cannot be replaced. With it, the work is done
 * once and no allocation fails. */
#ifdef SANITIZED
static void fail_each(void (*work)(bool failing))
{
    work(false);
}
#else
/* The allocator of the C library, by the names that it provides for replacements; free is not
 * replaced. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *old, size_t size);

static long countdown = -1; /* allocations until the failure; negative: never */
static bool once;           /* only that allocation fails */

static bool fails(void)
{
    if (countdown < 0) {
        return false;
    }
    if (countdown > 0) {
        countdown--;
        return false;
    }
    countdown = once ? -1 : 0;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}

/* Runs the work with allocation 0, 1, 2 … failing, until it makes no more allocations. */
static void fail_each(void (*work)(bool failing))
{
    for (int mode = 0; mode < 2; mode++) {
        for (long number = 0;; number++) {
            once = mode == 0;
            countdown = number;
            work(true);
            bool reached = once ? countdown < 0 : countdown == 0;
            countdown = -1;
            if (!reached) {
                break;
            }
            assert_true(number < 10000);
        }
    }
    work(false);
}
#endif

static void parse_work(bool failing)
{
    struct config *config = NULL;
    struct buffer errors = BUFFER_INIT;

    /* if the text has an error, it never succeeds, and reports something unless even that failed */
    if (config_parse("f", text, sizeof text - 1, &config, &errors) != -1) {
        abort();
    }
    if (config || (errors.size == 0 && !errors.failed) || (!failing && errors.failed)) {
        abort();
    }
    buffer_free(&errors);
    buffer_free(&errors);
    if (config_parse("f", good, sizeof good - 1, &config, &errors) == 0) {
        if (!config->queue.stream || !config->task.environment[1] || !config->redis.password ||
            !config->task.path) {
            abort();
        }
        config_free(config);
    } else if (!failing || !errors.failed) {
        abort();
    }
    buffer_free(&errors);
}

static void merge_work(bool failing)
{
    struct config *current = NULL, *fresh = NULL, *merged;
    struct buffer notes = BUFFER_INIT;

    if (config_parse("f", good, sizeof good - 1, &current, &notes) == 0 &&
        config_parse("f", other, sizeof other - 1, &fresh, &notes) == 0) {
        merged = config_merge(current, fresh, 60000, &notes);
        if (!merged ? !failing : strcmp(merged->queue.name, "q") != 0) {
            abort();
        }
        config_free(merged);
    } else if (!failing) {
        abort();
    }
    config_free(current);
    buffer_free(&notes);
}

static void commands_work(bool failing)
{
    static const struct task_field fields[] = {{{"command", 7}, {"x", 1}}, {{"A", 1}, {"b", 1}}};
    const struct config_command config = {
        .program = (char *[]){(char *)"x=tool", (char *)"y=other", NULL},
        .arguments = (char *[]){(char *)"x='a {A}' {B=c}d {{ {C=}", (char *)"y={A}", NULL}};
    struct task task = {.fields = fields, .field_count = 2, .command = &fields[0].value};
    struct commands *commands = commands_new(&config);
    char **words = commands ? commands_words(commands, &task) : NULL;

    if (!words ? !failing
               : strcmp(words[1], "a b") != 0 || strcmp(words[2], "cd") != 0 ||
                     strcmp(words[4], "") != 0 || words[5]) {
        abort();
    }
    free(words);
    commands_free(commands);
}

static void log_work(bool failing)
{
    const struct log_field field[] = {LOG_TEXT("LEAT_QUEUE", "q"), LOG_TEXT("LEAT_TASK", "1")};
    int saved = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (dup2(nowhere, STDERR_FILENO) < 0 || log_open(LOG_TARGET_STDERR, LOG_INFO, "leatd") != 0) {
        abort();
    }
    if (log_set_common(field, 2) != 0 && !failing) {
        abort();
    }
    log_event(LOG_INFO, NULL, field, 2, "text %d", 1);
    log_bytes(LOG_INFO, NULL, field, 2, "a\nb", 3);
    log_close();
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(nowhere);
}

/* Goal: parsing survives a failure of each allocation, alone and with all later ones. */
static void parsing_survives(void **state)
{
    (void)state;
    fail_each(parse_work);
}

/* Goal: merging survives them too. */
static void merging_survives(void **state)
{
    (void)state;
    fail_each(merge_work);
}

/* Goal: making the argv of listed commands survives them too. */
static void commands_survive(void **state)
{
    (void)state;
    fail_each(commands_work);
}

/* Goal: the log survives them too, and counts lost records. */
static void logging_survives(void **state)
{
    (void)state;
    fail_each(log_work);
#ifndef SANITIZED
    assert_true(log_dropped() > 0);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parsing_survives),
        cmocka_unit_test(merging_survives),
        cmocka_unit_test(commands_survive),
        cmocka_unit_test(logging_survives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
