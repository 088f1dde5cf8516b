/*
 * Compares the kernel's pressure, load and memory figures with the limits of [admission].
 */
#include "daemon/claim/admission.h"

#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "base/process/control_file.h"
#include "base/timer.h"

#define PERIOD_S 1.0  /* the kernel updates its averages every two seconds */
#define RELIEF 0.75   /* an exceeded limit counts until the figure is below this share of it */
#define MIB (1 << 20) /* bytes */

enum measure { MEMORY_PRESSURE, IO_PRESSURE, CPU_PRESSURE, LOAD, FREE_MEMORY, MEASURES };

static const struct {
    const char *path;
    const char *trouble;
} known[MEASURES] = {
    [MEMORY_PRESSURE] = {"/proc/pressure/memory", "host under pressure: memory_pressure"},
    [IO_PRESSURE] = {"/proc/pressure/io", "host under pressure: io_pressure"},
    [CPU_PRESSURE] = {"/proc/pressure/cpu", "host under pressure: cpu_pressure"},
    [LOAD] = {"/proc/loadavg", "host under pressure: load"},
    [FREE_MEMORY] = {"/proc/meminfo", "host under pressure: free_memory"},
};

struct admission {
    struct worker_context *worker;
    bool wanted;               /* there is a limit */
    bool over[MEASURES];       /* it is exceeded, or was and has not come back far enough */
    bool unreadable[MEASURES]; /* the kernel does not provide the figure, and the log says so */
    enum measure worst;        /* the limit that admission_trouble names */
    bool pressed;
    bool checked;
    ev_tstamp checked_at;
    struct timer again; /* runs while there is pressure, and asks for a check */
};

/* A figure compared with its limit. */
struct reading {
    double share;  /* above 1: exceeded */
    char text[96]; /* figure and limit, for people */
};

/* ---- reading the figures ---- */

/* Reads the beginning of a file of /proc, which never blocks. Returns 0, or −1 with errno. */
static int read_text(const char *path, char *text, size_t size)
{
    return control_file_read_at(AT_FDCWD, path, text, size) < 0 ? -1 : 0;
}

/* Reads "some avg10=1.23 …": the share of the last ten seconds in which something waited. */
static int read_pressure(const char *path, double *percent)
{
    static const char some[] = "some avg10=";
    char text[256], *rest;
    if (read_text(path, text, sizeof text)) {
        return -1;
    }
    errno = EPROTO;
    if (strncmp(text, some, sizeof some - 1) != 0) {
        return -1;
    }
    *percent = strtod(text + sizeof some - 1, &rest);
    return rest == text + sizeof some - 1 ? -1 : 0;
}

/* Reads the load average of the last minute, in percent of the processors. */
static int read_load(double *percent)
{
    char text[128], *rest;
    if (read_text(known[LOAD].path, text, sizeof text)) {
        return -1;
    }
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    *percent = strtod(text, &rest) * 100 / (double)(cpus > 0 ? cpus : 1);
    errno = EPROTO;
    return rest == text ? -1 : 0;
}

/* Returns a figure of /proc/meminfo in bytes, or −1 if there is none. */
static double find_memory(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    return line ? strtod(line + strlen(name), NULL) * 1024 : -1;
}

static int read_memory(double *available, double *total)
{
    char text[1024];
    if (read_text(known[FREE_MEMORY].path, text, sizeof text)) {
        return -1;
    }
    *available = find_memory(text, "MemAvailable:");
    *total = find_memory(text, "MemTotal:");
    errno = EPROTO;
    return *available < 0 || *total <= 0 ? -1 : 0;
}

/* ---- comparing ---- */

/* Returns 0 if there is no limit. FREE_MEMORY: bytes, or as a negative number percent of all
 * memory. */
static int64_t limit_of(const struct admission *admission, enum measure measure)
{
    const struct config_admission *config = &admission->worker->config->admission;
    const int64_t limits[MEASURES] = {[MEMORY_PRESSURE] = config->memory_pressure,
                                      [IO_PRESSURE] = config->io_pressure,
                                      [CPU_PRESSURE] = config->cpu_pressure,
                                      [LOAD] = config->load,
                                      [FREE_MEMORY] = config->free_memory};
    return limits[measure];
}

/* over: free memory has to come back to four thirds of the limit, or half of the way to all memory
 * if that is less. */
static int compare_memory(int64_t limit, bool over, struct reading *reading)
{
    double available, total;
    if (read_memory(&available, &total)) {
        return -1;
    }
    double least = limit < 0 ? total * (double)-limit / 100 : (double)limit;
    double enough = least / RELIEF < (least + total) / 2 ? least / RELIEF : (least + total) / 2;
    reading->share = available > 0 ? (over ? enough * RELIEF : least) / available : 2;
    (void)snprintf(reading->text, sizeof reading->text,
                   "%.0f MiB of memory are free, the least is %.0f MiB", available / MIB,
                   least / MIB);
    return 0;
}

/* Returns 0, or −1 with errno if the kernel does not provide the figure. */
static int compare(enum measure measure, int64_t limit, bool over, struct reading *reading)
{
    static const char *const names[MEASURES] = {[MEMORY_PRESSURE] = "memory pressure",
                                                [IO_PRESSURE] = "I/O pressure",
                                                [CPU_PRESSURE] = "CPU pressure",
                                                [LOAD] = "the load of each CPU"};
    double percent;
    if (measure == FREE_MEMORY) {
        return compare_memory(limit, over, reading);
    }
    if (measure == LOAD ? read_load(&percent) : read_pressure(known[measure].path, &percent)) {
        return -1;
    }
    reading->share = percent / (double)limit;
    (void)snprintf(reading->text, sizeof reading->text, "%s is %.1f%%, the limit is %" PRId64 "%%",
                   names[measure], percent, limit);
    return 0;
}

/* A figure that the kernel does not provide counts as no pressure; logs that once. */
static void warn_unreadable(struct admission *admission, enum measure measure)
{
    if (!admission->unreadable[measure]) {
        log_event(LOG_WARNING, LOG_ID_PRESSURE, NULL, 0,
                  "[admission] %s: has no effect: cannot read %s: %s%s",
                  strrchr(known[measure].trouble, ' ') + 1, known[measure].path, strerror(errno),
                  measure < LOAD
                      ? "; use a kernel with CONFIG_PSI, booted with psi=1 if it needs that"
                      : "");
    }
    admission->unreadable[measure] = true;
}

static bool is_over(struct admission *admission, enum measure measure, struct reading *reading)
{
    int64_t limit = limit_of(admission, measure);
    if (limit == 0) {
        return false;
    }
    if (compare(measure, limit, admission->over[measure], reading)) {
        warn_unreadable(admission, measure);
        return false;
    }
    admission->unreadable[measure] = false;
    return reading->share > (admission->over[measure] ? RELIEF : 1);
}

static void log_change(const struct admission *admission, const char *why)
{
    struct log_field fields[] = {LOG_TEXT("LEAT_EVENT", admission->pressed ? "pressed" : "eased")};
    if (admission->pressed) {
        log_event(LOG_WARNING, LOG_ID_PRESSURE, fields, 1,
                  "host under pressure: %s; claiming nothing until it eases", why);
    } else {
        log_event(LOG_NOTICE, LOG_ID_PRESSURE, fields, 1,
                  "host pressure has eased; claiming tasks again");
    }
}

/* Reads all figures. Returns whether pressure has begun or ended. */
static bool check(struct admission *admission)
{
    struct reading reading, worst = {0};
    bool pressed = false;
    admission->checked = true;
    admission->checked_at = ev_now(admission->worker->loop);
    for (enum measure measure = 0; measure < MEASURES; measure++) {
        admission->over[measure] = is_over(admission, measure, &reading);
        if (admission->over[measure] && (!pressed || reading.share > worst.share)) {
            worst = reading;
            admission->worst = admission->pressed ? admission->worst : measure;
        }
        pressed = pressed || admission->over[measure];
    }
    if (pressed && !admission->over[admission->worst]) {
        /* the limit that was named has eased, another has not */
        for (admission->worst = 0; !admission->over[admission->worst]; admission->worst++) {
        }
    }
    if (pressed == admission->pressed) {
        return false;
    }
    admission->pressed = pressed;
    log_change(admission, worst.text);
    if (pressed) {
        timer_repeat_s(&admission->again, PERIOD_S);
    } else {
        timer_stop(&admission->again);
    }
    return true;
}

static void on_again(void *context)
{
    /* the worker checks in the loop's turn, which this timer causes */
    struct admission *admission = context;
    admission->checked = false;
}

bool admission_check(struct admission *admission)
{
    ev_tstamp now = ev_now(admission->worker->loop);
    bool is_new = admission->checked && now >= admission->checked_at &&
                  now - admission->checked_at < PERIOD_S;
    return (admission->wanted || admission->pressed) && !is_new && check(admission);
}

const char *admission_trouble(const struct admission *admission)
{
    return admission->pressed ? known[admission->worst].trouble : NULL;
}

/* ---- creation and reload ---- */

void admission_reload(struct admission *admission)
{
    struct reading ignored;
    admission->wanted = admission->checked = false;
    for (enum measure measure = 0; measure < MEASURES; measure++) {
        /* a figure that the kernel lacks is logged now, not when the first task comes */
        admission->over[measure] = admission->unreadable[measure] = false;
        (void)is_over(admission, measure, &ignored);
        admission->wanted = admission->wanted || limit_of(admission, measure) != 0;
    }
}

struct admission *admission_new(struct worker_context *worker)
{
    struct admission *admission = calloc(1, sizeof *admission);
    if (admission) {
        admission->worker = worker;
        timer_init(&admission->again, worker->loop, on_again, admission);
        admission_reload(admission);
    }
    return admission;
}

void admission_free(struct admission *admission)
{
    if (admission) {
        timer_stop(&admission->again);
        free(admission);
    }
}
