/* Reads and writes small files of the kernel. */
#include "base/process/control_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process/descriptor.h"

int control_file_write(int directory, const char *name, const char *text)
{
    int fd = openat(directory, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    ssize_t written = write(fd, text, strlen(text));
    descriptor_close(&fd);
    return written < 0 ? -1 : 0;
}

ssize_t control_file_read(int fd, char *text, size_t size)
{
    ssize_t got = pread(fd, text, size - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return got;
}

ssize_t control_file_read_at(int directory, const char *name, char *text, size_t size)
{
    text[0] = '\0';
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    ssize_t got = control_file_read(fd, text, size);
    descriptor_close(&fd);
    return got;
}

int64_t control_file_value(const char *text, const char *key)
{
    size_t size = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, size) == 0 && line[size] == ' ') {
            return strtoll(line + size + 1, NULL, 10);
        }
    }
    return -1;
}

int64_t control_file_sum(const char *text, const char *key)
{
    size_t size = strlen(key);
    int64_t sum = 0;
    for (const char *at = strchr(text, ' '); at; at = strpbrk(at, " \n")) {
        at++;
        if (strncmp(at, key, size) == 0 && at[size] == '=') {
            sum += strtoll(at + size + 1, NULL, 10);
        }
    }
    return sum;
}
