/* Names the user and the folders of a queue's service. */
#include "config/file/service.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "config/file/source.h"

enum { QUEUE_MOST = 100 };

static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";

bool service_is_queue(const char *queue)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "_.:@-";
    size_t size = strlen(queue);

    return size >= 1 && size <= QUEUE_MOST && *queue != '.' && strspn(queue, plain) == size;
}

/* FNV-1a */
static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261U;

    for (; *text; text++) {
        hash = (hash ^ (unsigned char)*text) * 16777619U;
    }
    return hash;
}

/* The tunnel of leat-tls.service has the folder /run/leat-tls. The board has the user leat-board,
 * and its token is in /var/lib/leat-board. */
static bool is_taken(const char *queue)
{
    return strcmp(queue, "tls") == 0 || strcmp(queue, "board") == 0;
}

void service_name(const char *queue, char name[SERVICE_NAME_SIZE])
{
    static const char prefix[] = "leat-", mapped[] = "leat_";
    enum { BEGINNING = 17 }; /* and 5 for the prefix, 9 for the hash */
    size_t size = strlen(queue), used = strlen(mapped);

    if (size < SERVICE_NAME_SIZE - strlen(prefix) && strspn(queue, letters) == size &&
        !is_taken(queue)) {
        (void)snprintf(name, SERVICE_NAME_SIZE, "%s%s", prefix, queue);
        return;
    }
    (void)snprintf(name, SERVICE_NAME_SIZE, "%s", mapped);
    for (size_t i = 0; i < size && i < BEGINNING; i++) {
        char c = (char)tolower((unsigned char)queue[i]);
        name[used++] = strchr(letters, c) ? c : '_';
    }
    (void)snprintf(name + used, SERVICE_NAME_SIZE - used, "_%08" PRIx32, hash_of(queue));
}

int service_folder(const char *top, const char *file, struct buffer *path)
{
    char unit[256], name[SERVICE_NAME_SIZE];
    struct stat status;

    if (config_source_unit(file, unit, sizeof unit) != 0) {
        return -1;
    }
    *strrchr(unit, '.') = '\0';
    service_name(strchr(unit, '@') + 1, name);
    buffer_clear(path);
    if (buffer_printf(path, "%s/%s", top, name) != 0 || buffer_append(path, "", 1) != 0) {
        return -1;
    }
    return stat(path->data, &status) == 0 && S_ISDIR(status.st_mode) ? 0 : -1;
}
