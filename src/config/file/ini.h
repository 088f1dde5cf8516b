/*
 * Reads an INI file with inih into struct config, by the table. inih silently joins, cuts or skips
 * lines that it cannot parse. Therefore every line is checked first, and such lines are errors.
 */
#ifndef LEAT_CONFIG_FILE_INI_H
#define LEAT_CONFIG_FILE_INI_H

#include <stddef.h>

#include "config/config.h"
#include "config/report.h"
#include "config/table.h"

/* Returns 0, or -1 if inih ran out of memory. Errors in the text are reported and do not change the
 * result. */
int ini_read(struct config *config, const char *text, size_t size, struct report *report,
             struct key_lines *lines);

#endif
