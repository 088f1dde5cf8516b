/* Finds the user of a queue's unit, so that leatd -t run as root checks files as that user. */
#include "daemon/unit_user.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log/log.h"
#include "base/process/systemd_unit.h"
#include "config/file/service.h"
#include "config/file/source.h"
#include "exec/start/identity.h"

int unit_user_become(const char *path, char *name, size_t size)
{
    struct systemd_unit unit;
    char unit_name[256];
    *name = '\0';
    if (geteuid() != 0 || config_source_unit(path, unit_name, sizeof unit_name)) {
        return EX_OK;
    }
    bool is_known = systemd_unit_show(unit_name, &unit) == 0 && strcmp(unit.load, "loaded") == 0;
    if (is_known && !*unit.user) {
        return EX_OK;
    }
    const struct config_task task = {.user = is_known ? unit.user : SERVICE_SHARED,
                                     .group = is_known && *unit.group ? unit.group : NULL};
    struct identity *identity = identity_new(&task);
    int code = EX_CONFIG;
    if (!identity) {
        log_text(LOG_ERR, "%s: out of memory", path);
        code = EX_OSERR;
    } else if (*identity->missing && is_known) {
        log_text(LOG_ERR, "%s: cannot check as the user of %s: %s", path, unit_name,
                 identity->missing);
    } else if (*identity->missing) {
        code = EX_OK;
    } else if (identity_become(identity)) {
        log_text(LOG_ERR, "%s: cannot check as user %s: %s", path, task.user, strerror(errno));
    } else {
        (void)snprintf(name, size, "%s", task.user);
        code = EX_OK;
    }
    identity_free(identity);
    return code;
}
