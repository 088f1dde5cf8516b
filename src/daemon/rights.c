/*
 * Protects the process from its tasks, and checks its rights before it starts.
 */
#include "daemon/rights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "config/types/addresses.h"
#include "config/types/secret.h"
#include "exec/start/identity.h"

int rights_hide(void)
{
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* Logs what this process lacks to run tasks as this user. Returns whether it lacks anything. */
static bool lacks_rights(const struct config *config, const struct identity *identity)
{
    char lacks[160];
    const struct config_task *task = &config->task;
    identity_lacks(identity, lacks, sizeof lacks);
    if (*lacks) {
        log_event(LOG_ERR, LOG_ID_CONFIG_REJECTED, NULL, 0,
                  "%s: [task] %s = %s: leatd cannot run tasks so without %s; use the drop-in "
                  "leatd-other-user.conf for the unit, or remove user and group",
                  config->path, task->user ? "user" : "group",
                  task->user ? task->user : task->group, lacks);
    }
    return *lacks;
}

/* The same for the bounds that this process has given itself. */
static bool is_outside(const struct config *config, const struct identity *identity,
                       const struct confinement *confinement)
{
    bool has_users = confinement_allows(confinement, identity);
    bool has_all = has_users && (config->task.no_new_privileges || !confinement->active);
    if (!has_all) {
        log_event(
            LOG_ERR, LOG_ID_CONFIG_REJECTED, NULL, 0,
            "%s: [task] %s: leatd has bounded itself to the user and groups that tasks had at "
            "its start; restart it to change this: systemctl restart leatd@%s",
            config->path, has_users ? "no_new_privileges" : "user, group", config->queue.name);
    }
    return !has_all;
}

int rights_check(const struct config *config, const struct confinement *confinement)
{
    struct identity *identity = identity_new(&config->task);
    if (!identity) {
        log_text(LOG_ERR, "cannot look up the user of tasks: %s", strerror(ENOMEM));
        return EX_OSERR;
    }
    bool is_refused = lacks_rights(config, identity) || is_outside(config, identity, confinement);
    identity_free(identity);
    return is_refused ? EX_CONFIG : EX_OK;
}

static bool wants_bounds(const struct config *config, const struct identity *identity)
{
    return identity && identity->other && !*identity->missing && geteuid() != 0 &&
           config->task.no_new_privileges;
}

int rights_list_bounded(const struct config *config, struct buffer *keys)
{
    const struct {
        const char *name, *value;
    } bounded[] = {{"user", config->task.user}, {"group", config->task.group}};
    struct identity *identity = identity_new(&config->task);
    bool is_bounded = wants_bounds(config, identity);
    int result = 0;
    for (size_t i = 0; i < sizeof bounded / sizeof *bounded && result == 0; i++) {
        if (is_bounded && bounded[i].value) {
            result =
                buffer_printf(keys, "%s[task] %s", keys->size > 0 ? ", " : "", bounded[i].name);
        }
    }
    identity_free(identity);
    return result;
}

void rights_confine(const struct config *config, struct confinement *confinement)
{
    struct identity *identity = identity_new(&config->task);
    bool is_wanted = wants_bounds(config, identity) && !confinement->active;
    if (!identity || (is_wanted && confine(confinement, identity))) {
        log_text(LOG_WARNING, "cannot bound the users that leatd can change to: %s",
                 strerror(identity ? errno : ENOMEM));
    }
    identity_free(identity);
}

static bool is_in_file(const char *password, const char *file, const char *credential)
{
    return password && !file && !credential;
}

/* Whether others may read on the way what is sent to this host without TLS. */
static bool is_elsewhere(const char *host)
{
    return host && strcmp(host, "localhost") != 0 && strncmp(host, "127.", 4) != 0 &&
           strcmp(host, "::1") != 0;
}

/* The first address in the list (NULL: none) that is not of this host, or NULL. */
static const char *first_elsewhere(char *const *addresses)
{
    char host[ADDRESSES_HOST_SIZE];
    int64_t port;

    for (char *const *address = addresses; address && *address; address++) {
        if (addresses_split(*address, host, &port) == 0 && is_elsewhere(host)) {
            return *address;
        }
    }
    return NULL;
}

/* The server gets the password; sentinels and nodes of a Cluster are taken to be where it is. */
static const char *server_elsewhere(const struct config_redis *redis)
{
    if (redis->sentinels || redis->cluster) {
        return first_elsewhere(redis->sentinels ? redis->sentinels : redis->cluster);
    }
    return !redis->socket && is_elsewhere(redis->host) ? redis->host : NULL;
}

static void warn_unencrypted(const struct config *config, const char *key, const char *host)
{
    log_text(LOG_WARNING,
             "%s: %s: sent unencrypted to %s; set [redis] tls = yes, or use a tunnel: see TLS in "
             "leatd(8)",
             config->path, key, host);
}

static void warn_of_plain_connections(const struct config *config)
{
    const struct config_redis *redis = &config->redis;
    const char *server = server_elsewhere(redis), *sentinel = first_elsewhere(redis->sentinels);

    if (redis->tls) {
        return;
    }
    if (redis->password && server) {
        warn_unencrypted(config, "password", server);
    }
    if (redis->sentinel_password && sentinel) {
        warn_unencrypted(config, "sentinel_password", sentinel);
    }
}

/* Only the service can read a credential. */
static bool is_unreadable(const char *file)
{
    static const char credentials[] = "/run/credentials/";

    return file && strncmp(file, credentials, sizeof credentials - 1) != 0 && access(file, R_OK);
}

/* They are read for each connection, so they may appear later. */
static void warn_of_tls_files(const struct config *config)
{
    const struct config_redis *redis = &config->redis;
    const struct {
        const char *key, *file;
    } files[] = {
        {"tls_ca", redis->tls_ca}, {"tls_cert", redis->tls_cert}, {"tls_key", redis->tls_key}};

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (is_unreadable(files[i].file)) {
            log_text(LOG_WARNING, "%s: %s: cannot read %s: %s", config->path, files[i].key,
                     files[i].file, strerror(errno));
        }
    }
}

void rights_warn(const struct config *config)
{
    const struct config_redis *redis = &config->redis;
    struct stat status;

    warn_of_plain_connections(config);
    warn_of_tls_files(config);
    bool has_password =
        is_in_file(redis->password, redis->password_file, redis->password_credential) ||
        is_in_file(redis->sentinel_password, redis->sentinel_password_file,
                   redis->sentinel_password_credential);
    if (has_password && stat(config->path, &status) == 0 && (status.st_mode & S_IROTH)) {
        struct buffer advice = BUFFER_INIT;
        secret_advise(&advice, config->path);
        log_text(LOG_WARNING,
                 "%s: password: readable by all users; %.*s; or set password_file or "
                 "password_credential instead",
                 config->path, (int)advice.size, advice.size > 0 ? advice.data : "");
        buffer_free(&advice);
    }
}
