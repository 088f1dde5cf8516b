/* Reads properties of a unit from systemctl. */
#include "base/process/systemd_unit.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/process/program.h"

#define PROPERTIES                                                                                 \
    "--property=LoadState,ActiveState,User,Group,StateDirectory,MainPID,NeedDaemonReload"

static void take_line(struct systemd_unit *unit, const char *line)
{
    const struct {
        const char *name;
        char *value;
        size_t size;
    } wanted[] = {{"User=", unit->user, sizeof unit->user},
                  {"Group=", unit->group, sizeof unit->group},
                  {"LoadState=", unit->load, sizeof unit->load},
                  {"ActiveState=", unit->active, sizeof unit->active},
                  {"MainPID=", unit->main_pid, sizeof unit->main_pid},
                  {"NeedDaemonReload=", unit->needs_reload, sizeof unit->needs_reload},
                  {"StateDirectory=", unit->state_directory, sizeof unit->state_directory}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        size_t length = strlen(wanted[i].name);
        if (strncmp(line, wanted[i].name, length) == 0) {
            (void)snprintf(wanted[i].value, wanted[i].size, "%.*s",
                           (int)strcspn(line + length, "\n"), line + length);
        }
    }
}

int systemd_unit_show(const char *name, struct systemd_unit *unit)
{
    char *const argv[] = {"systemctl", "show", PROPERTIES, "--", (char *)(uintptr_t)name, NULL};
    char text[2048];
    *unit = (struct systemd_unit){0};
    if (program_read(argv, text, sizeof text) != 0) {
        return -1;
    }
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        take_line(unit, line);
    }
    return *unit->load ? 0 : -1;
}
