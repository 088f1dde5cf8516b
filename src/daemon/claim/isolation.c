#include "daemon/claim/isolation.h"

#include <errno.h>
#include <string.h>
#include <sysexits.h>

#include "base/log/log.h"
#include "exec/tree/process_tree.h"

enum { NAMES = 256 };

/* Returns 0, or an exit code. */
static int look(const struct isolation *isolation, const struct config *config)
{
    char missing[NAMES];
    cgroups_missing(isolation->cgroups, config, missing, sizeof missing);
    if (missing[0] == '\0') {
        return EX_OK;
    }
    bool must = config->isolation.cgroup == CONFIG_CGROUP_REQUIRED;
    log_text(must ? LOG_ERR : LOG_WARNING, "%s of [isolation] cannot be held here: %s", missing,
             isolation->cgroups ? "the cgroups of tasks have no such controller (Delegate= in the "
                                  "unit gives it, and nobody else may be in the service's group), "
                                  "or, of io_weight, this kernel has no way to weigh"
                                : "tasks have no cgroups");
    return must ? EX_CONFIG : EX_OK;
}

int isolation_open(struct isolation *isolation, const struct config *config)
{
    char text[CGROUPS_TEXT];
    hierarchy_find(&isolation->hierarchy);
    switch (cgroups_new(config, &isolation->hierarchy, &isolation->cgroups, text, sizeof text)) {
    case CGROUPS_FAILED:
        log_text(LOG_ERR, "cgroup = required, but tasks cannot have cgroups: %s", text);
        return EX_CONFIG;
    case CGROUPS_UNUSED:
        if (text[0] != '\0') {
            log_text(LOG_WARNING, "tasks have no cgroups: %s", text);
        }
        if (process_tree_adopt() < 0) {
            log_text(LOG_WARNING, "what tasks leave behind does not come to the daemon: %s",
                     strerror(errno));
        }
        break;
    case CGROUPS_USED:
        cgroups_controllers(isolation->cgroups, text, sizeof text);
        log_text(LOG_INFO, "tasks have cgroups in %s; controllers: %s", isolation->hierarchy.path,
                 text);
        break;
    }
    return look(isolation, config);
}

void isolation_look(const struct isolation *isolation, const struct config *config)
{
    (void)look(isolation, config); /* what is not held is no reason to end */
}

bool isolation_is_alone(const struct isolation *isolation, const pid_t *own, size_t count)
{
    return cgroups_is_alone(isolation->cgroups, &isolation->hierarchy, own, count);
}

void isolation_close(struct isolation *isolation)
{
    cgroups_free(isolation->cgroups);
    isolation->cgroups = NULL;
}
