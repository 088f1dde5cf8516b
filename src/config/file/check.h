/*
 * Checks rules between keys, and fills in values that depend on other keys.
 */
#ifndef LEAT_CONFIG_FILE_CHECK_H
#define LEAT_CONFIG_FILE_CHECK_H

#include <stdbool.h>

#include "config/config.h"
#include "config/file/ini.h"
#include "config/report.h"

/* Reports every violated rule. */
void check_rules(const struct config *config, const struct key_lines *lines, struct report *report);

/* Fills in stream and concurrency if they are not set, and reads the passwords from their
 * files or credentials. Reports errors. skip_credentials: leaves those passwords out. */
void check_resolve(struct config *config, bool skip_credentials, const struct key_lines *lines,
                   struct report *report);

#endif
