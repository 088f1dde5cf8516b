/* Builds commands about the connection and the server, and reads INFO. */
#include "redis/server_command.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

void server_unblock(struct command *command, int64_t client_id)
{
    COMMAND_BEGIN(command, "CLIENT", "UNBLOCK");
    command_add_number(command, client_id);
}

void server_kill_client(struct command *command, int64_t client_id)
{
    COMMAND_BEGIN(command, "CLIENT", "KILL", "ID");
    command_add_number(command, client_id);
}

void server_auth(struct command *command, const char *user, const char *password)
{
    COMMAND_BEGIN(command, "AUTH");
    if (user) {
        command_add_text(command, user);
    }
    command_add_text(command, password);
}

void server_select(struct command *command, int64_t db)
{
    COMMAND_BEGIN(command, "SELECT");
    command_add_number(command, db);
}

/* A client name is printable ASCII without spaces. */
void server_client_name(struct command *command, const char *name)
{
    char fit[256];
    size_t size = 0;
    for (; name[size] && size < sizeof fit; size++) {
        fit[size] = name[size];
        if (fit[size] <= ' ' || fit[size] > '~') {
            fit[size] = '_';
        }
    }
    COMMAND_BEGIN(command, "CLIENT", "SETNAME");
    command_add(command, fit, size);
}

void server_client_id(struct command *command)
{
    COMMAND_BEGIN(command, "CLIENT", "ID");
}

void server_info(struct command *command)
{
    COMMAND_BEGIN(command, "INFO");
}

/* ---- INFO ---- */

/* Copies the value of the line "NAME:VALUE\r\n", cut to fit. Returns false, with the value
 * unchanged, if there is no such line. */
static bool info_value(const char *text, const char *name, char *value, size_t size)
{
    size_t name_length = strlen(name);
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\r\n");
        if (length > name_length && line[name_length] == ':' &&
            memcmp(line, name, name_length) == 0) {
            length -= name_length + 1;
            length = length < size ? length : size - 1;
            memcpy(value, line + name_length + 1, length);
            value[length] = '\0';
            return true;
        }
        line += length;
        line += strspn(line, "\r\n");
    }
    return false;
}

/* A value that is absent or no number counts as `otherwise`. */
static int64_t info_number(const char *text, const char *name, int64_t otherwise)
{
    char value[32];
    int64_t number = otherwise;
    if (!info_value(text, name, value, sizeof value) ||
        units_parse_integer(value, INT64_MIN, INT64_MAX, &number)) {
        return otherwise;
    }
    return number;
}

static bool info_says(const char *text, const char *name, const char *wanted)
{
    char value[16];
    return info_value(text, name, value, sizeof value) && strcmp(value, wanted) == 0;
}

/* INFO does not say whether snapshots are configured. They are surely not if the server has changed
 * data and been up for longer than the longest default interval without taking one; otherwise
 * assume that they are. */
static bool snapshots_enabled(const char *text)
{
    enum { LONGEST_DEFAULT_S = 3600, MARGIN_S = 60 };
    bool taken = info_number(text, "rdb_saves", 0) > 0 ||
                 info_number(text, "rdb_last_bgsave_time_sec", -1) >= 0 ||
                 info_number(text, "rdb_bgsave_in_progress", 0) > 0;
    bool overdue = info_number(text, "uptime_in_seconds", 0) > LONGEST_DEFAULT_S + MARGIN_S &&
                   info_number(text, "rdb_changes_since_last_save", 0) > 0;
    return taken || !overdue;
}

/* Makes a version one number that can be compared; an absent part counts as 0. */
static long version_number(const char *version)
{
    enum { MOST = 999 };
    long number = 0;
    for (int part = 0; part < 3; part++) {
        char *end;
        long value = strtol(version, &end, 10);
        number = number * (MOST + 1) + (value < 0 ? 0 : value > MOST ? MOST : value);
        version = *end == '.' ? end + 1 : "";
    }
    return number;
}

/* Since 7.2 Redis runs the command of an unblocked client once more, and an assertion failed if
 * the slot was elsewhere by then. Valkey calls itself Redis 7.2.4 and has versions of its own. */
static bool crashes_on_move(const char *text, const char *redis_version)
{
    char version[32];
    bool is_valkey = info_value(text, "valkey_version", version, sizeof version);
    long number = version_number(is_valkey ? version : redis_version);
    return number >= version_number("7.2") &&
           number < version_number(is_valkey ? "7.2.6" : "7.2.7");
}

int server_info_read(const redisReply *reply, struct server_info *out)
{
    *out = (struct server_info){0};
    if (!reply || reply->type != REDIS_REPLY_STRING ||
        !info_value(reply->str, "redis_version", out->version, sizeof out->version)) {
        errno = EPROTO;
        return -1;
    }
    const char *text = reply->str;
    char role[16] = "";
    long major = strtol(out->version, NULL, 10);
    out->major = major > INT_MAX ? INT_MAX : (int)major;
    (void)info_value(text, "role", role, sizeof role); /* without a role it is no master */
    (void)info_value(text, "run_id", out->run_id, sizeof out->run_id);
    (void)info_value(text, "master_replid", out->replid, sizeof out->replid);
    (void)info_value(text, "master_replid2", out->replid2, sizeof out->replid2);
    out->move_crashes = crashes_on_move(text, out->version);
    /* Redis, and Valkey 8 */
    out->is_sentinel =
        info_says(text, "redis_mode", "sentinel") || info_says(text, "server_mode", "sentinel");
    out->is_master = strcmp(role, "master") == 0;
    out->loading = info_number(text, "loading", 0) != 0;
    out->aof_enabled = info_number(text, "aof_enabled", 0) != 0;
    out->rdb_enabled = snapshots_enabled(text);
    (void)info_value(text, "maxmemory_policy", out->maxmemory_policy, sizeof out->maxmemory_policy);
    out->maxmemory = info_number(text, "maxmemory", 0);
    out->saves_fail = info_says(text, "aof_last_write_status", "err") ||
                      (out->rdb_enabled && info_says(text, "rdb_last_bgsave_status", "err"));
    /* the line is there only if both min-replicas-to-write and min-replicas-max-lag are set */
    out->needs_replicas = info_number(text, "min_slaves_good_slaves", -1) >= 0;
    out->refused = info_number(text, "unexpected_error_replies", 0);
    return 0;
}
