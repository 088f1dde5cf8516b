/*
 * leat logs: prints lines of output, as text or JSON.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/lib/text.h"
#include "cli/logs/logs.h"

enum { STDOUT = 1, STDERR = 2, TIME_SIZE = 64 };

void logs_printer_init(struct logs_printer *printer, const struct logs_options *options)
{
    *printer = (struct logs_printer){
        .options = options,
        .output = output_look(),
        .error_terminal = isatty(STDERR_FILENO) == 1,
    };
}

/* Writes local time: "2026-01-31 12:00:00.123". */
static void format_time(int64_t at_us, char *text, size_t size)
{
    char seconds[TIME_SIZE];
    time_t time = (time_t)(at_us / 1000000);
    struct tm local;

    if (at_us < 0 || !localtime_r(&time, &local) ||
        strftime(seconds, sizeof seconds, "%F %T", &local) == 0) {
        (void)snprintf(text, size, "-");
        return;
    }

    (void)snprintf(text, size, "%s.%03d", seconds, (int)(at_us / 1000 % 1000));
}

/* Appends time, attempt and stream: "2026-01-31 12:00:00.123 2 err | ". Output of a batch has no
 * attempt. */
static void add_prefix(struct buffer *out, const struct logs_line *line)
{
    char time[TIME_SIZE * 2], attempt[24] = "-";

    format_time(line->at_us, time, sizeof time);
    if (line->attempt > 0) {
        (void)snprintf(attempt, sizeof attempt, "%" PRId64, line->attempt);
    }
    /* a failed append marks the buffer */
    (void)buffer_printf(out, "%s %s %s | ", time, attempt, line->is_error ? "err" : "out");
}

/* Appends a heading before each attempt, on a terminal. */
static void add_heading(struct logs_printer *printer, struct buffer *out,
                        const struct logs_line *line)
{
    bool other = line->attempt != (printer->printed == 0 ? 1 : printer->attempt);

    if (!printer->output.terminal || printer->options->times || line->attempt <= 0 || !other) {
        return;
    }
    /* a failed append marks the buffer */
    (void)text_style(out, TEXT_DIM, printer->output.color);
    (void)buffer_printf(out, "-- attempt %" PRId64, line->attempt);
    if (line->host.size > 0) {
        (void)buffer_append_text(out, " on ");
        (void)text_append(out, line->host.data, line->host.size);
    }
    (void)buffer_append_text(out, " --");
    (void)text_style(out, TEXT_PLAIN, printer->output.color);
    (void)buffer_append_text(out, "\n");
}

static void write_to(FILE *file, const struct buffer *out)
{
    /* cli_flush reports failures of stdout; those of stderr cannot be reported */
    if (out->size > 0) {
        (void)fwrite(out->data, 1, out->size, file);
    }
}

static void add_text(struct logs_printer *printer, struct buffer *out, const struct logs_line *line,
                     bool terminal)
{
    bool color = printer->output.color && line->is_error && terminal;

    /* a failed append marks the buffer */
    if (printer->options->times && (printer->open == 0)) {
        add_prefix(out, line);
    }
    if (!terminal) {
        (void)buffer_append(out, line->text.data, line->text.size);
    } else {
        (void)text_style(out, TEXT_YELLOW, color);
        (void)text_append(out, line->text.data, line->text.size);
        (void)text_style(out, TEXT_PLAIN, color);
    }
    if (!line->cut) {
        (void)buffer_append_text(out, "\n");
    }
}

static int print_text(struct logs_printer *printer, const struct logs_line *line)
{
    /* on a terminal and with times, stderr goes to stdout, to keep the order */
    bool apart = !printer->output.terminal && !printer->options->times && line->is_error;
    int stream = line->is_error ? STDERR : STDOUT, status = EX_OK;
    struct buffer out = BUFFER_INIT;

    if (printer->open != 0 && printer->open != stream && !apart) {
        logs_print_end(printer);
    }
    add_heading(printer, &out, line);
    add_text(printer, &out, line, apart ? printer->error_terminal : printer->output.terminal);
    if (out.failed) {
        status = cli_no_memory();
    } else if (apart) {
        status = cli_flush();
        write_to(stderr, &out);
    } else {
        write_to(stdout, &out);
        printer->open = line->cut ? stream : 0;
    }
    buffer_free(&out);
    return status;
}

static int print_json(const struct logs_line *line)
{
    json_t *object = json_object();
    const char *stream = line->is_error ? "stderr" : "stdout";

    if (line->at_us >= 0) {
        output_put(&object, "time_us", json_integer(line->at_us));
    }
    if (line->attempt > 0) {
        output_put(&object, "attempt", json_integer(line->attempt));
    }
    /* a file has neither times nor streams */
    if (line->at_us >= 0) {
        output_put(&object, "stream", json_string(stream));
    }
    if (line->host.size > 0) {
        output_put_bytes(&object, "host", line->host);
    }
    if (line->cut) {
        output_put(&object, "cut", json_true());
    }
    output_put_bytes(&object, "line", line->text);
    return output_json(object, false);
}

int logs_print(struct logs_printer *printer, const struct logs_line *line)
{
    int status = printer->options->json ? print_json(line) : print_text(printer, line);

    printer->attempt = line->attempt;
    printer->printed++;
    return status;
}

int logs_print_bytes(struct logs_printer *printer, struct bytes data, bool is_error,
                     int64_t attempt)
{
    const char *end = data.data + data.size;
    int status = EX_OK;

    for (const char *at = data.data; at < end && status == EX_OK;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline : end;
        const struct logs_line line = {.text = {at, (size_t)(stop - at)},
                                       .cut = !newline,
                                       .is_error = is_error,
                                       .attempt = attempt,
                                       .at_us = -1,
                                       .host = {"", 0}};
        status = logs_print(printer, &line);
        at = newline ? newline + 1 : end;
    }
    return status;
}

void logs_print_end(struct logs_printer *printer)
{
    if (printer->open != 0) {
        (void)putchar('\n'); /* cli_flush reports failures */
    }
    printer->open = 0;
}
