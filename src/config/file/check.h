/*
 * What no single key can tell: rules between keys, and values that come from others.
 */
#ifndef LEAT_CONFIG_FILE_CHECK_H
#define LEAT_CONFIG_FILE_CHECK_H

#include "config/config.h"
#include "config/file/ini.h"
#include "config/report.h"

/* Reports every rule that is broken. */
void check_rules(const struct config *config, const struct ini_places *places,
                 struct report *report);

/* Fills in what was left to leat: stream, concurrency, scan, the password from where it is kept.
 * What is wrong is reported. */
void check_resolve(struct config *config, const struct ini_places *places, struct report *report);

/* True where a task can be stopped well before its lease passes. */
bool check_grace_fits(int64_t kill_grace_ms, int64_t lease_ms);

/* The period that scan = auto stands for. */
int64_t check_auto_scan_ms(int64_t lease_ms);

#endif
