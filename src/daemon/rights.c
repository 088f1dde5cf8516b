/*
 * Protects the process from its tasks, and checks its rights before it starts.
 */
#include "daemon/rights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "exec/start/identity.h"

int rights_hide(void)
{
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int rights_check(const struct config *config)
{
    char lacks[160];
    const struct config_task *task = &config->task;
    struct identity *identity = identity_new(task);
    if (!identity) {
        log_text(LOG_ERR, "cannot look up the user of tasks: %s", strerror(ENOMEM));
        return -1;
    }
    identity_lacks(identity, lacks, sizeof lacks);
    identity_free(identity);
    if (!*lacks) {
        return 0;
    }
    const char *name = task->user ? task->user : task->group;
    log_event(LOG_ERR, LOG_ID_CONFIG_REJECTED, NULL, 0,
              "%s: [task] %s = %s: leatd cannot run tasks so without %s; use the drop-in "
              "leatd-other-user.conf for the unit, or remove user and group",
              config->path, task->user ? "user" : "group", name, lacks);
    return -1;
}

static bool is_in_file(const char *password, const char *file, const char *credential)
{
    return password && !file && !credential;
}

void rights_warn(const struct config *config)
{
    const struct config_redis *redis = &config->redis;
    struct stat status;
    bool has_password =
        is_in_file(redis->password, redis->password_file, redis->password_credential) ||
        is_in_file(redis->sentinel_password, redis->sentinel_password_file,
                   redis->sentinel_password_credential);
    if (has_password && stat(config->path, &status) == 0 && (status.st_mode & S_IROTH)) {
        log_text(LOG_WARNING,
                 "%s: password: readable by all users; run: chgrp leat %s && chmod 640 %s, or set "
                 "password_file or password_credential instead",
                 config->path, config->path, config->path);
    }
}
