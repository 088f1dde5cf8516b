/* Parses the rules of [retry], and resolves them for each exit code. */
#include "config/types/rules.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "config/suggest.h"
#include "config/types/scalar.h"
#include "config/types/strings.h"

enum { ATTEMPTS_MOST = 100000, CODE_LONGEST = 3 };

static bool is_blank(char letter)
{
    return letter == ' ' || letter == '\t';
}

/* ---- what a rule says */

static int refuse_rule(const struct table_row *row, const char *text, struct buffer *why)
{
    struct suggestion best = SUGGESTION_NONE;

    (void)strings_refuse(why, text, "is not a rule; write ");
    for (const struct table_word *word = row->words; word->word; word++) {
        /* a failure sets why->failed, which the caller checks */
        (void)buffer_printf(why, "%s, ", word->word);
        suggest_offer(&best, text, word->word);
    }
    (void)buffer_printf(why, "or a number of attempts from 1 to %d, such as \"retry 20\"",
                        ATTEMPTS_MOST);
    suggest_append(&best, why);
    return -1;
}

/* Parses "N" or "retry N", the number of attempts in all. Returns 0 or -1. */
static int parse_most(const char *text, struct config_rule *rule)
{
    static const char retry[] = "retry";
    int64_t most;

    if (strncmp(text, retry, sizeof retry - 1) == 0 && is_blank(text[sizeof retry - 1])) {
        text += sizeof retry - 1;
    }
    while (is_blank(*text)) {
        text++;
    }
    if (units_parse_integer(text, 1, ATTEMPTS_MOST, &most) != 0) {
        return -1;
    }
    *rule = (struct config_rule){CONFIG_RULE_RETRY, (int32_t)most};
    return 0;
}

int rules_set(struct config_rule *rule, const struct table_row *row, const char *text,
              struct buffer *why)
{
    for (const struct table_word *word = row->words; word->word; word++) {
        if (strcmp(word->word, text) == 0) {
            *rule = (struct config_rule){(enum config_rule_kind)word->value, 0};
            return 0;
        }
    }
    return parse_most(text, rule) == 0 ? 0 : refuse_rule(row, text, why);
}

/* The part of the key after the dot. */
static const char *after_point(const char *name)
{
    return strchr(name, '.') + 1;
}

static int given_before(const char *what, struct buffer *why)
{
    /* a failure sets why->failed, which the caller checks */
    (void)buffer_printf(why, "this %s is already set; remove one of the two lines", what);
    return -1;
}

/* ---- exit codes */

/* Parses "LOW" or "LOW-HIGH". Returns 0 or -1. */
static int parse_codes(const char *text, int64_t *low, int64_t *high)
{
    char first[CODE_LONGEST + 1];
    const char *dash = strchr(text, '-');
    size_t length = dash ? (size_t)(dash - text) : strlen(text);

    if (length > CODE_LONGEST) {
        return -1;
    }
    memcpy(first, text, length);
    first[length] = '\0';
    if (units_parse_integer(first, 1, CONFIG_CODES - 1, low) != 0) {
        return -1;
    }
    return units_parse_integer(dash ? dash + 1 : first, *low, CONFIG_CODES - 1, high);
}

static void add_code(struct config_codes *codes, int64_t code)
{
    codes->bits[code / 64] |= UINT64_C(1) << (code % 64);
}

static int set_single(struct config_exits *exits, int64_t code, struct config_rule rule,
                      struct buffer *why)
{
    if (config_codes_has(&exits->single, (int)code)) {
        return given_before("exit code", why);
    }
    add_code(&exits->single, code);
    exits->of[code] = rule;
    return 0;
}

static int set_range(struct config_exits *exits, int64_t low, int64_t high, struct config_rule rule,
                     struct buffer *why)
{
    for (int64_t code = low; code <= high; code++) {
        if (config_codes_has(&exits->ranged, (int)code)) {
            /* a failure sets why->failed, which the caller checks */
            (void)buffer_printf(
                why, "exit code %d is also in another range; ranges must not overlap", (int)code);
            return -1;
        }
    }
    for (int64_t code = low; code <= high; code++) {
        add_code(&exits->ranged, code);
        if (!config_codes_has(&exits->single, (int)code)) {
            exits->of[code] = rule;
        }
    }
    return 0;
}

int rules_set_exits(struct config_exits *exits, const struct table_row *row, const char *name,
                    const char *text, struct buffer *why)
{
    const char *codes = after_point(name);
    struct config_rule rule;
    int64_t low, high;

    if (parse_codes(codes, &low, &high) != 0) {
        return strings_refuse(why, codes,
                              "is neither an exit code from 1 to 255 nor a range such as 64-78; 0 "
                              "always means success");
    }
    if (rules_set(&rule, row, text, why) != 0) {
        return -1;
    }
    return !strchr(codes, '-') ? set_single(exits, low, rule, why)
                               : set_range(exits, low, high, rule, why);
}

/* ---- signals */

/* The number of a signal such as "TERM" or "15", or 0 if there is none. */
static int find_signal(const char *name)
{
    int64_t number;

    for (int signal = 1; signal < CONFIG_SIGNALS; signal++) {
        const char *known = sigabbrev_np(signal);

        if (known && strcmp(known, name) == 0) {
            return signal;
        }
    }
    return units_parse_integer(name, 1, CONFIG_SIGNALS - 1, &number) == 0 ? (int)number : 0;
}

static int refuse_signal(const char *name, struct buffer *why)
{
    struct suggestion best = SUGGESTION_NONE;

    for (int signal = 1; signal < CONFIG_SIGNALS; signal++) {
        if (sigabbrev_np(signal)) {
            suggest_offer(&best, name, sigabbrev_np(signal));
        }
    }
    (void)strings_refuse(why, name,
                         "is not a signal; write a name such as TERM, or a number from 1 to 64");
    suggest_append(&best, why);
    return -1;
}

int rules_set_signal(struct config_signals *signals, const struct table_row *row, const char *name,
                     const char *text, struct buffer *why)
{
    const char *given = after_point(name);
    int signal;

    if (strncmp(given, "SIG", 3) == 0) {
        given += 3;
    }
    signal = find_signal(given);
    if (signal == 0) {
        return refuse_signal(given, why);
    }
    if (signal == SIGKILL) {
        /* a failure sets why->failed, which the caller checks */
        (void)buffer_append_text(why, "there is no rule for KILL; write killed = ..., or oom = ... "
                                      "for tasks that are OOM-killed");
        return -1;
    }
    if (signals->of[signal].kind != CONFIG_RULE_NONE) {
        return given_before("signal", why);
    }
    return rules_set(&signals->of[signal], row, text, why);
}

/* ---- lists and presets */

int rules_listed_twice(const struct config_retry *retry, const struct config_codes *list)
{
    for (int code = 1; code < CONFIG_CODES; code++) {
        if (config_codes_has(list, code) && config_codes_has(&retry->exits.ranged, code)) {
            return code;
        }
    }
    return -1;
}

/* The rules of the presets. Codes that a preset leaves out are not changed by it. leat.ini.5 lists
 * the same lines. */
static const struct {
    enum config_preset preset;
    int low, high;
    enum config_rule_kind kind;
} preset_lines[] = {
    /* qmail-command(8), EXIT CODES, and mailprogram() of qmail-local.c: these and 100 are permanent
     * failures, 99 is success, all others are temporary, preferably 111 */
    {CONFIG_PRESET_QMAIL, 64, 65, CONFIG_RULE_DEAD},
    {CONFIG_PRESET_QMAIL, 70, 70, CONFIG_RULE_DEAD},
    {CONFIG_PRESET_QMAIL, 76, 78, CONFIG_RULE_DEAD},
    {CONFIG_PRESET_QMAIL, 99, 99, CONFIG_RULE_SUCCESS},
    {CONFIG_PRESET_QMAIL, 100, 100, CONFIG_RULE_DEAD},
    {CONFIG_PRESET_QMAIL, 111, 111, CONFIG_RULE_RETRY},
    {CONFIG_PRESET_QMAIL, 112, 112, CONFIG_RULE_DEAD},
    /* sysexits.h defines 64 to 78. markfailure() in sendmail's deliver.c keeps mail in the queue
     * after EX_OSERR, EX_IOERR and EX_TEMPFAIL; all others are permanent */
    {CONFIG_PRESET_SYSEXITS, 64, 70, CONFIG_RULE_DEAD},
    {CONFIG_PRESET_SYSEXITS, 71, 71, CONFIG_RULE_RETRY},
    {CONFIG_PRESET_SYSEXITS, 72, 73, CONFIG_RULE_DEAD},
    {CONFIG_PRESET_SYSEXITS, 74, 75, CONFIG_RULE_RETRY},
    {CONFIG_PRESET_SYSEXITS, 76, 78, CONFIG_RULE_DEAD},
};

static void fill(struct config_exits *exits, int code, enum config_rule_kind kind)
{
    if (exits->of[code].kind == CONFIG_RULE_NONE) {
        exits->of[code].kind = kind;
    }
}

void rules_resolve(struct config_retry *retry)
{
    struct config_exits *exits = &retry->exits;

    for (int code = 1; code < CONFIG_CODES; code++) {
        if (config_codes_has(&retry->permanent, code)) {
            fill(exits, code, CONFIG_RULE_DEAD);
        }
        if (config_codes_has(&retry->success, code)) {
            fill(exits, code, CONFIG_RULE_SUCCESS);
        }
    }
    for (size_t i = 0; i < sizeof preset_lines / sizeof preset_lines[0]; i++) {
        for (int code = preset_lines[i].low;
             preset_lines[i].preset == retry->preset && code <= preset_lines[i].high; code++) {
            fill(exits, code, preset_lines[i].kind);
        }
    }
}

const char *rules_refusal(const char *cause)
{
    static const struct {
        const char *cause, *why;
    } others[] = {
        {"crash", "[queue] max_crashes says how many are allowed"},
        {"refused", "a refused task never runs and becomes a dead letter"},
        {"expired", "an expired task becomes a dead letter"},
        {"cancelled", "a cancelled task is never retried"},
        {"reported", "the process decides by its report"},
        {"lease-lost", "no attempt is counted, and the task runs again"},
        {"shutdown", "no attempt is counted, and the task runs again"},
        {"host", "no attempt is counted, and the task runs again"},
        {"batch", "no attempt is counted, and the task runs again"},
        {"no-verdict", "an attempt is counted, and the task is retried"},
        {"vanished", "nothing is left of the task to retry"},
        {"damaged", "nothing is left of the task to retry"},
        {"done", "the task has succeeded"},
    };

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(others[i].cause, cause) == 0) {
            return others[i].why;
        }
    }
    return NULL;
}
