/*
 * Filters of rows.
 */
#include "cli/lib/row_filter.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/rows.h"
#include "cli/lib/text.h"
#include "view/reply_fields.h"

/* Returns a control character that the pattern does not contain, or NUL if it contains all. */
static char unused_control(const char *glob)
{
    for (int c = 1; c < ' '; c++) {
        if (!strchr(glob, c)) {
            return (char)c;
        }
    }
    return '\0';
}

/* fnmatch stops at a NUL, so NULs of the value are replaced: what follows them must count. */
static bool glob_matches(const char *glob, struct bytes value)
{
    char instead = unused_control(glob), *text = malloc(value.size + 1);
    bool matches = text;

    for (size_t i = 0; i < value.size && matches; i++) {
        text[i] = value.data[i] ? value.data[i] : instead;
        matches = text[i] != '\0';
    }
    if (matches) {
        text[value.size] = '\0';
        text_use_locale();
        matches = fnmatch(glob, text, 0) == 0;
    }
    free(text);
    return matches;
}

/* A worker is HOST:PID:NONCE. */
static bool worker_matches(const char *glob, struct bytes worker)
{
    struct bytes host = worker;

    for (int parts = 0; parts < 2 && host.size > 0; parts++) {
        const char *colon = memrchr(host.data, ':', host.size);
        host.size = colon ? (size_t)(colon - host.data) : host.size;
    }
    return worker.size > 0 && (glob_matches(glob, worker) || glob_matches(glob, host));
}

bool row_filter_is_set(const struct row_filter *filter)
{
    return filter->cause || filter->lane || filter->label || filter->command || filter->worker ||
           filter->older_ms >= 0 || filter->newer_ms >= 0;
}

bool row_filter_passes(const struct row_filter *filter, const struct redisReply *row,
                       const char *time, int64_t now_ms)
{
    int64_t age_ms = now_ms - fields_number(row, time, 0);

    if (filter->cause && !bytes_equal(fields_bytes(row, "cause"), filter->cause)) {
        return false;
    }
    if (filter->lane && !bytes_equal(fields_bytes(row, "lane"), filter->lane)) {
        return false;
    }
    if (filter->older_ms >= 0 && age_ms < filter->older_ms) {
        return false;
    }
    if (filter->newer_ms >= 0 && age_ms > filter->newer_ms) {
        return false;
    }
    if (filter->label && !glob_matches(filter->label, fields_bytes(row, "id"))) {
        return false;
    }
    if (filter->worker && !worker_matches(filter->worker, fields_bytes(row, "worker"))) {
        return false;
    }
    return !filter->command || glob_matches(filter->command, rows_command(row));
}

int row_filter_check_cause(const struct cli *cli, const struct cli_option *option,
                           const char *cause)
{
    static const char *const causes[] = {"exit",     "signal",       "killed",         "oom",
                                         "timeout",  "output-limit", "cannot-execute", "refused",
                                         "reported", "check",        "crash",          "expired",
                                         "vanished", "damaged",      "no-verdict"};
    char hint[64];

    (void)option;
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        if (strcmp(cause, causes[i]) == 0) {
            return EX_OK;
        }
    }
    cli_suggest(cause, causes, sizeof causes / sizeof *causes, hint, sizeof hint);
    return cli_usage(cli, "--cause: unknown cause %s;%s", cause,
                     *hint ? hint : " CAUSES in leatd(8) lists them");
}
