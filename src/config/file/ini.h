/*
 * The text of an INI file, through inih, into struct config by the table. inih joins, cuts or skips
 * what it does not like; here every line is looked at first, so that nothing is misread in silence.
 */
#ifndef LEAT_CONFIG_FILE_INI_H
#define LEAT_CONFIG_FILE_INI_H

#include <stddef.h>

#include "config/config.h"
#include "config/report.h"
#include "config/table.h"

/* Returns 0, or -1 where inih has no memory; errors in the text are only reported. */
int ini_read(struct config *config, const char *text, size_t size, struct report *report,
             struct ini_places *places);

#endif
