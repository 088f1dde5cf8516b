/*
 * The output of a task from its file, which has the bytes of all attempts on this host.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/logs/logs.h"

enum { BLOCK = 65536, PAUSE_MS = 200 };

/* Finds where the last `lines` lines begin. Returns -1 with errno. */
static off_t find_last(int fd, int64_t lines)
{
    char block[BLOCK];
    struct stat status;
    off_t end;

    if (fstat(fd, &status) != 0) {
        return -1;
    }
    if (lines == LOGS_ALL) {
        return 0;
    }

    /* a newline at the very end of the file begins no further line */
    for (end = status.st_size - 1; end > 0 && lines > 0;) {
        off_t start = end > BLOCK ? end - BLOCK : 0;
        ssize_t got = pread(fd, block, (size_t)(end - start), start);
        if (got <= 0) {
            return got < 0 ? -1 : 0;
        }
        for (; got > 0; got--) {
            if (block[got - 1] == '\n' && --lines == 0) {
                return start + got;
            }
        }
        end = start;
    }
    return lines > 0 ? 0 : status.st_size;
}

/* Prints everything up to the current end of the file. *any becomes true if there was something. */
static int print_rest(struct logs_printer *printer, int fd, bool *any)
{
    char block[BLOCK];
    int status = EX_OK;
    ssize_t got;

    while (status == EX_OK && (got = read(fd, block, sizeof block)) > 0) {
        *any = true;
        status = logs_print_bytes(printer, (struct bytes){block, (size_t)got}, false, -1);
    }
    if (status == EX_OK && got < 0) {
        cli_error("cannot read the output file: %s", strerror(errno));
        return EX_IOERR;
    }
    return status == EX_OK ? cli_flush() : status;
}

int logs_show_file(struct cli *cli, struct logs_task *task, const struct logs_options *options,
                   int fd)
{
    struct logs_printer printer;
    off_t start = find_last(fd, options->lines);
    bool any = false, over = !options->follow;
    int status = EX_OK;

    if (start < 0 || lseek(fd, start, SEEK_SET) < 0) {
        cli_error("cannot read the output file: %s", strerror(errno));
        return EX_IOERR;
    }
    logs_printer_init(&printer, options);
    while (status == EX_OK) {
        status = print_rest(&printer, fd, &any);
        if (over || status != EX_OK) {
            break;
        }
        /* the task may have written more before it ended, so read once more after that */
        over = logs_has_ended(cli, task);
        if (!over) {
            (void)poll(NULL, 0, PAUSE_MS); /* a signal may cut the pause short */
        }
    }
    if (printer.output.terminal && !options->json) {
        logs_print_end(&printer);
    }
    return status == EX_OK && !any && options->lines != 0 ? LOGS_NOTHING : status;
}
