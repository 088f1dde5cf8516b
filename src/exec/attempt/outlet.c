/*
 * Counts and limits the output of a process, and writes it to the task's file.
 */
#include "exec/attempt/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/descriptor.h"
#include "config/types/outputs.h"

enum { FILE_MODE = 0640, FOLDER_MODE = 0750 };

/* Returns the lower of the config's limit and the task's own; 0: none. */
static int64_t limit_of(const struct config *config, const struct task *task)
{
    int64_t own = task ? task->max_output : 0, most = config->output.max_output;
    return own > 0 && (most == 0 || own < most) ? own : most;
}

void outlet_begin(struct outlet *outlet, const struct config *config, const struct task *task,
                  bool followed, int64_t now_ns)
{
    *outlet = (struct outlet){
        .to = config->output.to,
        .kills = config->output.at_max == CONFIG_AT_MAX_KILL,
        .limit = limit_of(config, task),
        .rate = config->output.rate,
        .credit = config->output.rate,
        .counted_ns = now_ns,
        .file = -1,
    };

    /* output that is counted or followed cannot bypass leatd */
    if (outlet->to == CONFIG_OUTPUT_INHERIT && (followed || outlet->limit > 0)) {
        outlet->to = CONFIG_OUTPUT_JOURNAL;
    }
}

enum start_ends outlet_ends(const struct outlet *outlet, const struct config *config, bool followed)
{
    if (outlet->to == CONFIG_OUTPUT_INHERIT) {
        return START_INHERITED;
    }
    return outlet->to == CONFIG_OUTPUT_DISCARD && !followed && outlet->limit == 0 &&
                   config->dead.output_tail == 0
               ? START_NULL
               : START_PIPES;
}

size_t outlet_take(struct outlet *outlet, size_t size)
{
    size_t most = SIZE_MAX;
    if (outlet->limit > 0) {
        most = (size_t)(outlet->limit - outlet->taken);
    }
    if (size > most) {
        outlet->over = true;
        size = most;
    }
    outlet->taken += (int64_t)size;
    return size;
}

double outlet_spend(struct outlet *outlet, size_t cost)
{
    if (outlet->rate == 0) {
        return 0;
    }

    /* the credit is that of one second at most, so that a task cannot save it up for a flood */
    int64_t now_ns = clock_boot_ns();
    double earned = (double)(now_ns - outlet->counted_ns) / (double)CLOCK_NS_PER_S;
    double credit = (double)outlet->credit + earned * (double)outlet->rate;
    if (credit > (double)outlet->rate) {
        credit = (double)outlet->rate;
    }
    credit -= (double)cost;
    outlet->credit = (int64_t)credit;
    outlet->counted_ns = now_ns;
    return credit < 0 ? -credit / (double)outlet->rate : 0;
}

/* Opens the file, but no symbolic link or fifo that somebody may have put in its place. Returns -1
 * with errno. */
static int open_file(const char *path)
{
    struct stat status;
    int fd =
        open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
             FILE_MODE);
    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        errno = EINVAL;
        return -1;
    }
    return descriptor_out_of_the_way(fd);
}

/* Opens the task's file. Creates the queue's folder if it is missing, but not the folders above. */
static int open_in_folder(const struct config *config, const char *logs, const char *tid)
{
    struct buffer path = BUFFER_INIT, folder = BUFFER_INIT;
    int fd = -1;
    if (outputs_file(config, logs, tid, &path) || outputs_folder(config, logs, &folder)) {
        errno = ENAMETOOLONG;
    } else {
        fd = open_file(path.data);
        if (fd < 0 && errno == ENOENT && mkdir(folder.data, FOLDER_MODE) == 0) {
            fd = open_file(path.data);
        }
    }
    int error = errno;
    buffer_free(&path);
    buffer_free(&folder);
    errno = error;
    return fd;
}

static int write_all(int fd, const void *data, size_t size, size_t *written)
{
    while (*written < size) {
        ssize_t put = write(fd, (const char *)data + *written, size - *written);
        if (put < 0 && errno != EINTR) {
            return -1;
        }
        *written += put > 0 ? (size_t)put : 0;
    }
    return 0;
}

int outlet_write(struct outlet *outlet, const struct config *config, const char *logs,
                 const char *tid, const void *data, size_t size, size_t *written)
{
    *written = 0;
    if (outlet->file < 0) {
        outlet->file = open_in_folder(config, logs, tid);
        if (outlet->file < 0) {
            return -1;
        }
    }
    return write_all(outlet->file, data, size, written);
}

int outlet_copy(const struct config *config, const char *logs, const char *tid, const void *data,
                size_t size, size_t *written)
{
    *written = 0;
    int fd = open_in_folder(config, logs, tid);
    if (fd < 0) {
        return -1;
    }
    int failed = write_all(fd, data, size, written), error = errno;
    close(fd); /* failed writes were reported; a later loss is the disk's */
    errno = error;
    return failed;
}

void outlet_end(struct outlet *outlet)
{
    if (outlet->file >= 0) {
        /* failed writes were reported; a later loss is the disk's */
        close(outlet->file);
        outlet->file = -1;
    }
}
