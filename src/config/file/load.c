/* Loads a configuration from a file, and merges a changed one at a reload. */
#include "config/file/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/process/descriptor.h"
#include "config/file/check.h"
#include "config/file/ini.h"
#include "config/file/override.h"
#include "config/lease_rule.h"
#include "config/report.h"
#include "config/table.h"
#include "config/types/keys.h"
#include "config/types/limits.h"
#include "config/types/strings.h"
#include "config/types/value.h"

enum { FILE_MAX = 1024 * 1024 };

/* Creates a config with the defaults. Returns NULL if memory ran out. */
static struct config *config_new(const char *path)
{
    struct buffer why = BUFFER_INIT;
    struct config *config = calloc(1, sizeof *config);

    if (!config) {
        return NULL;
    }
    config->path = strdup(path);
    if (!config->path) {
        goto fail;
    }

    /* defaults are parsed like values of a file; a test proves that all of them are valid */
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        if (*table[i].key.default_value != '\0' &&
            value_set(config, &table[i], table[i].key.name, table[i].key.default_value, &why) !=
                0) {
            goto fail;
        }
    }
    buffer_free(&why);
    return config;

fail:
    buffer_free(&why);
    config_free(config);
    return NULL;
}

void config_free(struct config *config)
{
    if (!config) {
        return;
    }
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        value_free(config, &table[i]);
    }
    strings_free_list(&config->security.secrets);
    free(config->path);
    free(config);
}

static int parse(const char *path, const char *text, size_t size, const struct config_given *given,
                 struct config **config, struct buffer *errors)
{
    struct report report = {.path = path};
    struct key_lines lines = {0};
    struct config *made = config_new(path);

    *config = NULL;
    if (!made || ini_read(made, text, size, &report, &lines) != 0) {
        report_no_memory(&report);
        goto fail;
    }
    if (override_apply(made, given, &lines, &report) == 0) {
        check_rules(made, &lines, &report);
        check_resolve(made, given->skip_credentials, &lines, &report);
        if (given->with_keys) {
            keys_load(&made->security, given->skip_credentials, &lines, &report);
        }
    }
    if (report.count > 0) {
        goto fail;
    }
    report_finish(&report, errors);
    *config = made;
    return 0;

fail:
    report_finish(&report, errors);
    config_free(made);
    return -1;
}

int config_parse(const char *path, const char *text, size_t size, struct config **config,
                 struct buffer *errors)
{
    const struct config_given nothing = {0};

    return parse(path, text, size, &nothing, config, errors);
}

/* Appends the content of the file. Returns what is wrong, or NULL. */
static const char *read_text(int fd, struct buffer *text)
{
    struct stat status;
    ssize_t got;

    if (fstat(fd, &status) != 0) {
        return strerror(errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return "not a regular file";
    }

    /* reserve the memory at once, so that growing leaves no copies of a password behind */
    if (buffer_reserve(text, FILE_MAX + 1) != 0) {
        return "out of memory";
    }
    got = descriptor_read(fd, text->data, FILE_MAX + 1);
    text->size = got < 0 ? FILE_MAX + 1 : (size_t)got; /* the caller wipes so much */
    if (got < 0) {
        return strerror(errno);
    }
    return got > FILE_MAX ? "longer than 1 MiB" : NULL;
}

/* Appends "PATH: cannot WHAT: why". Returns -1. */
static int refuse_file(const char *path, const char *what, const char *why, struct buffer *errors)
{
    /* a failure sets errors->failed */
    (void)escape_append(errors, path, strlen(path));
    (void)buffer_printf(errors, ": cannot %s: %s\n", what, why);
    return -1;
}

static int load(const char *path, const struct config_given *given, struct config **config,
                struct buffer *errors)
{
    struct buffer text = BUFFER_INIT;
    const char *fault;
    int result = -1;

    /* O_NONBLOCK: opening a FIFO must not block the start */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *config = NULL;
    if (fd < 0) {
        return refuse_file(path, "open", strerror(errno), errors);
    }
    fault = read_text(fd, &text);
    (void)close(fd); /* the file was only read, so an error loses nothing */
    if (fault) {
        result = refuse_file(path, "read", fault, errors);
        errors->failed = errors->failed || text.failed;
    } else {
        result = parse(path, text.size > 0 ? text.data : "", text.size, given, config, errors);
    }
    if (text.data) {
        explicit_bzero(text.data, text.size);
    }
    buffer_free(&text);
    return result;
}

int config_load_given(const char *path, const struct config_given *given, struct config **config,
                      struct buffer *errors)
{
    return path ? load(path, given, config, errors)
                : parse(given->url_name, "", 0, given, config, errors);
}

int config_load(const char *path, struct config **config, struct buffer *errors)
{
    const struct config_given nothing = {0};

    return load(path, &nothing, config, errors);
}

static int note_kept(struct buffer *kept, const struct table_row *row)
{
    return buffer_printf(kept, "[%s] %s: %s\n", row->key.section, row->key.name,
                         table_is_shared(row) ? "takes effect only with leat conf --apply"
                                              : "takes effect only after a restart");
}

/* Returns the entry of the list for the lane of this one, or NULL. */
static const char *find_lane(char *const *list, const char *entry)
{
    const char *settings;

    return strings_find(list, entry, limits_split_lane(entry, &settings), '=');
}

/* Notes each lane that differs. leat conf --apply does not change those that the file lacks. */
static int note_kept_lanes(struct buffer *kept, char *const *current, char *const *fresh)
{
    const char *settings;
    int result = 0;

    for (char *const *lane = fresh; lane && *lane && result == 0; lane++) {
        const char *former = find_lane(current, *lane);

        if (!former || strcmp(former, *lane) != 0) {
            result = buffer_printf(kept, "[lanes] %.*s: takes effect only with leat conf --apply\n",
                                   (int)limits_split_lane(*lane, &settings), *lane);
        }
    }
    for (char *const *lane = current; lane && *lane && result == 0; lane++) {
        if (!find_lane(fresh, *lane)) {
            result = buffer_printf(kept,
                                   "[lanes] %.*s: the queue keeps its settings; leat conf "
                                   "lane:NAME none removes them\n",
                                   (int)limits_split_lane(*lane, &settings), *lane);
        }
    }
    return result;
}

int config_list_kept(const struct config *config, bool shared, struct buffer *keys)
{
    struct buffer text = BUFFER_INIT, errors = BUFFER_INIT;
    struct config *plain = NULL;
    int result = -1;

    if (buffer_printf(&text, "[queue]\nname = %s\n", config->queue.name) == 0) {
        result = config_parse(config->path, text.data, text.size, &plain, &errors);
    }
    for (size_t i = 0; i < TABLE_ROWS && result == 0; i++) {
        if (!table[i].key.reloadable && table_is_shared(&table[i]) == shared &&
            !value_equal(config, plain, &table[i])) {
            result = buffer_printf(keys, "%s[%s] %s", keys->size > 0 ? ", " : "",
                                   table[i].key.section, table[i].key.name);
        }
    }
    config_free(plain);
    buffer_free(&errors);
    buffer_free(&text);
    return result;
}

/* kill_grace was checked against the lease of the new file, but the queue keeps its lease. */
static int refit_to_lease(struct config *merged, const struct config *current, struct buffer *kept)
{
    if (lease_rule_fits(merged->task.kill_grace_ms, merged->queue.lease_ms)) {
        return 0;
    }
    merged->task.kill_grace_ms = current->task.kill_grace_ms;
    return buffer_printf(kept, "[task] kill_grace: too long for the queue's lease; run leat conf "
                               "--apply, and then reload again\n");
}

/* True if sentinels or a Cluster name the server. */
static bool is_discovered(const struct config *config)
{
    return config->redis.sentinels || config->redis.cluster;
}

static bool is_address(const struct table_row *row)
{
    return row == table_find("redis", "host") || row == table_find("redis", "port") ||
           row == table_find("redis", "socket");
}

/* Notes a key that keeps its value of `current`. */
static int keep(struct config *fresh, const struct config *current, const struct table_row *row,
                struct buffer *kept)
{
    bool lanes = row == table_find("lanes", "NAME");
    int noted = lanes ? note_kept_lanes(kept, current->lanes.list, fresh->lanes.list)
                      : note_kept(kept, row);

    return noted == 0 ? value_copy(fresh, current, row) : -1;
}

struct config *config_merge(const struct config *current, struct config *fresh, int64_t lease_ms,
                            struct buffer *kept)
{
    const struct table_row *lease = table_find("queue", "lease");
    bool direct = !is_discovered(current) && !is_discovered(fresh);

    for (size_t i = 0; i < TABLE_ROWS; i++) {
        bool reloadable = table[i].key.reloadable && (direct || !is_address(&table[i]));
        bool applied = &table[i] == lease && fresh->queue.lease_ms == lease_ms;
        if (!reloadable && !applied && !value_equal(current, fresh, &table[i]) &&
            keep(fresh, current, &table[i], kept) != 0) {
            goto fail;
        }
    }
    fresh->redis.slot = current->redis.slot; /* depends on the stream, which stays the same */
    if (refit_to_lease(fresh, current, kept) != 0) {
        goto fail;
    }
    return fresh;

fail:
    config_free(fresh);
    return NULL;
}
