/*
 * The destination of log records, the journal's datagram socket or stderr. Writing never blocks.
 * Important records that cannot be written at once are kept, up to a limit, and written before
 * later ones. Only log.c uses this.
 */
#ifndef LEAT_BASE_LOG_LOG_SINK_H
#define LEAT_BASE_LOG_LOG_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buffer.h"

enum log_sink_kind {
    LOG_SINK_JOURNAL, /* one datagram per record */
    LOG_SINK_SOCKET,  /* stderr is a stream socket */
    LOG_SINK_FILE,    /* stderr is anything else */
};

enum log_sink_result {
    LOG_SINK_TAKEN,
    LOG_SINK_KEPT,     /* will be written later */
    LOG_SINK_LOST,     /* not taken and not kept */
    LOG_SINK_TOO_LONG, /* too long for a datagram: shorten the record */
};

struct log_sink {
    enum log_sink_kind kind;
    int fd;
    bool owned;           /* log_sink_close closes fd */
    bool may_block;       /* fd is blocking: poll before each write, and write little */
    struct buffer kept;   /* what waits: a struct kept, then the bytes, for each piece */
    size_t first_written; /* bytes of the first kept piece that are already written */
};

/* Plain stderr, which need not be opened. */
#define LOG_SINK_INIT                                                                              \
    {                                                                                              \
        .kind = LOG_SINK_FILE, .fd = 2, .may_block = true                                          \
    }

/* Each opens a closed sink. The first returns 0, or -1 with errno if the journal's socket is not
 * available. */
int log_sink_open_journal(struct log_sink *sink);
void log_sink_open_stderr(struct log_sink *sink);

/* For tests: sets the path of the journal's socket for later openings; path must outlive them. */
void log_sink_set_journal_path(const char *path);

/* Waits up to patience_ms until the kept records are written, then closes. Returns the number of
 * lost records. The sink is then plain stderr. */
size_t log_sink_close(struct log_sink *sink, int patience_ms);

/* Writes kept records as far as the sink takes them. Returns true if none is left; adds the number
 * of records that can never be written to *lost. */
bool log_sink_flush(struct log_sink *sink, size_t *lost);

/* Writes the text of that many records after the kept ones; the journal takes one at a time. What
 * is not taken at once is kept if `keep` is set and there is room; otherwise it is lost. */
enum log_sink_result log_sink_write(struct log_sink *sink, const struct buffer *text,
                                    size_t records, bool keep);

#endif
