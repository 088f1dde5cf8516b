/* Paths of output files of tasks. */
#include "config/types/outputs.h"

#include <limits.h>
#include <string.h>

static const char suffix[] = ".log";

/* Appends the name with all characters escaped that mean something to the file system. A dot at the
 * beginning would hide the file or lead out of the folder. */
static int append_name(struct buffer *path, const char *name)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "-_.:@";

    for (const char *at = name; *at != '\0'; at++) {
        bool safe = strchr(plain, *at) && !(at == name && *at == '.');

        /* a failure sets path->failed */
        if (safe) {
            (void)buffer_append(path, at, 1);
        } else {
            (void)buffer_printf(path, "%%%02x", (unsigned char)*at);
        }
    }
    return path->failed ? -1 : 0;
}

static int append_folder(const struct config *config, const char *logs, struct buffer *path)
{
    if (config->output.directory) {
        return buffer_append_text(path, config->output.directory);
    }
    if (logs && *logs == '/') {
        (void)buffer_append(path, logs, strcspn(logs, ":")); /* a failure sets path->failed */
    } else {
        (void)buffer_append_text(path, OUTPUTS_TOP);
    }
    (void)buffer_append_text(path, "/");
    return append_name(path, config->queue.name);
}

int outputs_folder(const struct config *config, const char *logs, struct buffer *path)
{
    buffer_clear(path);
    (void)append_folder(config, logs, path); /* a failure sets path->failed */
    return buffer_append(path, "", 1);
}

int outputs_file(const struct config *config, const char *logs, const char *tid,
                 struct buffer *path)
{
    size_t start;

    buffer_clear(path);
    (void)append_folder(config, logs, path); /* a failure sets path->failed */
    (void)buffer_append_text(path, "/");
    start = path->size;
    (void)append_name(path, tid);
    (void)buffer_append_text(path, suffix);
    if (path->size - start > NAME_MAX) {
        return -1;
    }
    return buffer_append(path, "", 1);
}
