/*
 * Where log records go, without ever waiting: the journal's datagram socket, or stderr. Records
 * that matter and are not taken at once are kept, up to a bound, and written before later ones.
 * Only log.c uses this.
 */
#ifndef LEAT_BASE_LOG_LOG_SINK_H
#define LEAT_BASE_LOG_LOG_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buffer.h"

enum log_sink_kind {
    LOG_SINK_JOURNAL, /* a datagram a record */
    LOG_SINK_SOCKET,  /* stderr is a stream socket */
    LOG_SINK_FILE,    /* stderr is anything else */
};

enum log_sink_result {
    LOG_SINK_TAKEN,
    LOG_SINK_KEPT,     /* will be written later */
    LOG_SINK_LOST,     /* not taken and not kept */
    LOG_SINK_TOO_LONG, /* no datagram of that size can be sent: make it shorter */
};

struct log_sink {
    enum log_sink_kind kind;
    int fd;
    bool owned;           /* fd is ours to close */
    bool may_block;       /* ask poll() before each write, and write little */
    struct buffer kept;   /* records: a size_t of length, then the bytes */
    size_t first_written; /* bytes of the first kept record that are out already */
};

/* The plain stderr, which needs no opening. */
#define LOG_SINK_INIT                                                                              \
    {                                                                                              \
        .kind = LOG_SINK_FILE, .fd = 2, .may_block = true                                          \
    }

/* Both open a sink that is closed. The first returns -1 with errno where the journal's socket
 * cannot be had. */
int log_sink_open_journal(struct log_sink *sink);
void log_sink_open_stderr(struct log_sink *sink);

/* For tests: the path of the journal's socket from the next opening on; must outlive its use. */
void log_sink_set_journal_path(const char *path);

/* Waits for up to patience_ms for the kept records to go out, then closes. Returns how many were
 * lost. The sink is then the plain stderr. */
size_t log_sink_close(struct log_sink *sink, int patience_ms);

/* Writes what is kept as far as the sink takes it. Returns true if nothing is kept any more; *lost
 * grows by records that can never be written. */
bool log_sink_flush(struct log_sink *sink, size_t *lost);

/* Writes a record after those that are kept. What is not taken at once is kept if `keep` is set and
 * there is room, else lost. */
enum log_sink_result log_sink_write(struct log_sink *sink, const struct buffer *record, bool keep);

#endif
