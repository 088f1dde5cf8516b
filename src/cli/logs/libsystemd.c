/*
 * The functions of libsystemd that read the journal. The library and the six that it needs are
 * loaded when a journal is opened.
 */
#include <errno.h>

#include <systemd/sd-journal.h>

#include "base/process/shared_object.h"

static struct shared_object libsystemd = {.file = "libsystemd.so.0"};

#define FUNCTION(name, parameters, arguments)                                                      \
    SHARED_OBJECT_FUNCTION(libsystemd, int, name, parameters, arguments, -ELIBACC)

FUNCTION(sd_journal_open, (sd_journal * *ret, int flags), (ret, flags))
FUNCTION(sd_journal_open_directory, (sd_journal * *ret, const char *path, int flags),
         (ret, path, flags))
FUNCTION(sd_journal_set_data_threshold, (sd_journal * j, size_t sz), (j, sz))
FUNCTION(sd_journal_add_match, (sd_journal * j, const void *data, size_t size), (j, data, size))
FUNCTION(sd_journal_add_disjunction, (sd_journal * j), (j))
FUNCTION(sd_journal_seek_head, (sd_journal * j), (j))
FUNCTION(sd_journal_seek_tail, (sd_journal * j), (j))
FUNCTION(sd_journal_previous, (sd_journal * j), (j))
FUNCTION(sd_journal_next, (sd_journal * j), (j))
FUNCTION(sd_journal_wait, (sd_journal * j, uint64_t timeout_usec), (j, timeout_usec))
FUNCTION(sd_journal_get_realtime_usec, (sd_journal * j, uint64_t *ret), (j, ret))
FUNCTION(sd_journal_get_data, (sd_journal * j, const char *field, const void **data, size_t *l),
         (j, field, data, l))

SHARED_OBJECT_FREE(libsystemd, sd_journal_close, (sd_journal * j), (j))
