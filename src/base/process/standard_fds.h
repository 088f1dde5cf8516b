/*
 * Descriptors 0, 1 and 2. The parent may have closed them. The first files that the program opens,
 * such as the connection to Redis, would then get these numbers, and also what is written to stdout
 * or stderr.
 */
#ifndef LEAT_BASE_PROCESS_STANDARD_FDS_H
#define LEAT_BASE_PROCESS_STANDARD_FDS_H

#include <stdbool.h>

/* Opens /dev/null for each that is closed. If usable is set, reading returns nothing and writing
 * succeeds; otherwise both fail, as with closed descriptors. Returns 0, or -1 with errno. */
int standard_fds_open(bool usable);

#endif
