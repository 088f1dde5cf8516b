/*
 * Reads names of workers, and the name of this host in them.
 */
#include "exec/guard/worker_name.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.';
}

int worker_name_host(char host[WORKER_NAME_HOST_SIZE])
{
    if (gethostname(host, WORKER_NAME_HOST_SIZE)) {
        return -1;
    }
    host[WORKER_NAME_HOST_SIZE - 1] = '\0';
    for (char *at = host; *at; at++) {
        *at = is_plain(*at) ? *at : '_';
    }
    return 0;
}

pid_t worker_name_pid(const char *name)
{
    char host[WORKER_NAME_HOST_SIZE], digits[16];
    int64_t pid;
    if (worker_name_host(host)) {
        return 0;
    }
    size_t length = strlen(host);
    if (strncmp(name, host, length) != 0 || name[length] != ':') {
        return 0;
    }
    const char *number = name + length + 1;
    size_t size = strcspn(number, ":");
    if (number[size] != ':' || size >= sizeof digits) {
        return 0;
    }
    memcpy(digits, number, size);
    digits[size] = '\0';
    return units_parse_integer(digits, 1, INT32_MAX, &pid) == 0 ? (pid_t)pid : 0;
}
