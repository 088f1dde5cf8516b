/* Reads what the log writes to stderr, for tests of modules that use the log. */
#ifndef LEAT_TESTS_LOG_TAIL_H
#define LEAT_TESTS_LOG_TAIL_H

#include <fcntl.h>
#include <sys/mman.h>
#include <syslog.h>
#include <unistd.h>

#include "base/log/log.h"

struct log_tail {
    int real_stderr;
    int file;
    char text[4096];
};

static inline void log_tail_use(struct log_tail *tail, int file)
{
    tail->real_stderr = dup(STDERR_FILENO);
    tail->file = file;
    dup2(file, STDERR_FILENO);
    log_open(LOG_TARGET_STDERR, LOG_DEBUG, "test");
}

static inline void log_tail_open(struct log_tail *tail)
{
    log_tail_use(tail, memfd_create("log", MFD_CLOEXEC));
}

/* For floods: written, and not kept. */
static inline void log_tail_open_null(struct log_tail *tail)
{
    log_tail_use(tail, open("/dev/null", O_RDWR | O_CLOEXEC));
}

/* The first part of what was written. */
static inline const char *log_tail_read(struct log_tail *tail)
{
    ssize_t size = pread(tail->file, tail->text, sizeof tail->text - 1, 0);
    tail->text[size > 0 ? size : 0] = '\0';
    return tail->text;
}

static inline void log_tail_close(struct log_tail *tail)
{
    log_close();
    dup2(tail->real_stderr, STDERR_FILENO);
    close(tail->real_stderr);
    close(tail->file);
}

#endif
