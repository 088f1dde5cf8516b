/*
 * Applies the queue's name and the Redis server from the command line or the environment.
 */
#include "config/file/override.h"

#include "config/table.h"
#include "config/types/secret.h"
#include "config/types/strings.h"
#include "config/types/url.h"
#include "config/types/value.h"

/* Removes the values of these keys, as if they were not in the file, and without defaults. */
static void forget(struct config *config, const char *const *names, size_t count,
                   struct key_lines *lines)
{
    for (size_t i = 0; i < count; i++) {
        const struct table_row *row = table_find("redis", names[i]);

        value_free(config, row);
        lines->keys[table_index(row)] = 0;
    }
}

/* Removes tls_server_name too, which is for the server of the file. */
static void forget_server(struct config *config, struct key_lines *lines)
{
    static const char *const names[] = {
        "host",
        "port",
        "socket",
        "sentinels",
        "master",
        "cluster",
        "sentinel_user",
        "sentinel_password",
        "sentinel_password_file",
        "sentinel_password_credential",
        "user",
        "password",
        "password_file",
        "password_credential",
        "db",
        "tls",
        "tls_server_name",
    };

    forget(config, names, sizeof names / sizeof names[0], lines);
}

/* Removes details of TLS if the URL does not use TLS; otherwise check_rules would report them. */
static void forget_tls(struct config *config, struct key_lines *lines)
{
    static const char *const names[] = {"tls_ca", "tls_cert", "tls_key", "tls_versions"};

    if (!config->redis.tls) {
        forget(config, names, sizeof names / sizeof names[0], lines);
    }
}

static int read_password(struct config_redis *redis, const char *file, struct buffer *why)
{
    strings_free(&redis->password);
    redis->password = secret_read_file(file, true, why);
    return redis->password ? 0 : -1;
}

static int refuse_user(struct buffer *why)
{
    /* a failure sets why->failed, which the caller checks */
    (void)buffer_append_text(why, "the URL has a user name but no password; give the password with "
                                  "--password-file FILE, or in LEAT_REDIS");
    return -1;
}

static int set_server(struct config *config, const struct config_given *given,
                      struct key_lines *lines, struct report *report)
{
    struct config_redis *redis = &config->redis;
    struct buffer why = BUFFER_INIT;
    const char *name = given->url_name;
    int result;

    forget_server(config, lines);
    result = url_parse(given->url, redis, &why);
    forget_tls(config, lines);
    redis->by_url = true;
    if (result == 0 && given->password_file) {
        name = "--password-file";
        result = read_password(redis, given->password_file, &why);
    }
    if (result == 0 && redis->user && !redis->password) {
        result = refuse_user(&why);
    }
    /* a URL of a socket names no host; the default is used, as in a file without one */
    if (result == 0 && !redis->host) {
        result = value_set(config, table_find("redis", "host"), "host",
                           table_find("redis", "host")->key.default_value, &why);
    }
    if (result != 0) {
        report_given(report, name, &why);
    }
    buffer_free(&why);
    return result;
}

static int set_queue(struct config *config, const char *queue, struct report *report)
{
    struct buffer why = BUFFER_INIT;
    int result = value_set(config, table_find("queue", "name"), "name", queue, &why);

    if (result != 0) {
        report_given(report, "-q", &why);
    }
    buffer_free(&why);
    return result;
}

int override_apply(struct config *config, const struct config_given *given, struct key_lines *lines,
                   struct report *report)
{
    int result = given->queue ? set_queue(config, given->queue, report) : 0;

    if (given->url && set_server(config, given, lines, report) != 0) {
        result = -1;
    }
    return result;
}
