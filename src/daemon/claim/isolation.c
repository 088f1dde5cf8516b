/*
 * Sets up cgroups for tasks, and warns about limits that this host cannot enforce.
 */
#include "daemon/claim/isolation.h"

#include <errno.h>
#include <string.h>
#include <sysexits.h>

#include "base/log/log.h"
#include "exec/tree/process_tree.h"

enum { NAMES = 256 };

/* Returns 0, or an exit code. */
static int check_limits(const struct isolation *isolation, const struct config *config)
{
    char missing[NAMES];
    cgroups_missing(isolation->cgroups, config, missing, sizeof missing);
    if (missing[0] == '\0') {
        return EX_OK;
    }
    bool must = config->isolation.cgroup == CONFIG_CGROUP_REQUIRED;
    log_text(must ? LOG_ERR : LOG_WARNING, "[isolation] %s: cannot be enforced here: %s", missing,
             isolation->cgroups
                 ? "the cgroups of tasks lack the controller; set Delegate= in the unit, and run "
                   "nothing else in the service's group (for io_weight the kernel needs io.weight)"
                 : "tasks have no cgroups");
    return must ? EX_CONFIG : EX_OK;
}

/* trouble: why tasks cannot have cgroups, or "" if they are not meant to. */
static void log_unused(const struct isolation *isolation, const struct config *config,
                       const char *trouble)
{
    if (trouble[0] != '\0') {
        log_text(LOG_WARNING, "tasks have no cgroups: %s", trouble);
    } else if (config->isolation.cgroup == CONFIG_CGROUP_OFF) {
        log_text(LOG_INFO, "tasks have no cgroups: [isolation] cgroup is off");
    } else {
        log_text(LOG_INFO, "tasks have no cgroups: %s is not delegated to this service",
                 isolation->hierarchy.path);
    }
}

int isolation_open(struct isolation *isolation, const struct config *config, bool beside)
{
    char text[CGROUPS_TEXT];
    hierarchy_find(&isolation->hierarchy);
    if (beside) {
        hierarchy_leave(&isolation->hierarchy, CGROUPS_DAEMON);
    }
    switch (cgroups_new(config, &isolation->hierarchy, beside, &isolation->cgroups, text,
                        sizeof text)) {
    case CGROUPS_FAILED:
        log_text(LOG_ERR, "[isolation] cgroup = required: tasks cannot have cgroups: %s", text);
        return EX_CONFIG;
    case CGROUPS_UNUSED:
        log_unused(isolation, config, text);
        if (process_tree_adopt() < 0) {
            log_text(LOG_WARNING,
                     "cannot become a subreaper: %s; orphaned task processes may escape",
                     strerror(errno));
        }
        break;
    case CGROUPS_USED:
        cgroups_controllers(isolation->cgroups, text, sizeof text);
        log_text(LOG_INFO, "tasks have cgroups in %s; controllers: %s", isolation->hierarchy.path,
                 text);
        break;
    }
    return check_limits(isolation, config);
}

void isolation_warn(const struct isolation *isolation, const struct config *config)
{
    (void)check_limits(isolation, config); /* a running worker goes on with less */
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
