/*
 * The state of a unit, as systemd says it.
 */
#ifndef LEAT_BASE_PROCESS_SYSTEMD_UNIT_H
#define LEAT_BASE_PROCESS_SYSTEMD_UNIT_H

struct systemd_unit {
    char load[64], active[64]; /* LoadState, ActiveState */
    char user[128], group[128];
    char state_directory[256];
    char main_pid[16];    /* "0" if it does not run */
    char needs_reload[8]; /* "yes": its files have changed since systemd has read them */
};

/* Asks systemd, with systemctl. Values are "" if they are not set, and cut to size. Returns 0; or
 * -1 if there is no systemd that answers. */
int systemd_unit_show(const char *name, struct systemd_unit *unit);

#endif
