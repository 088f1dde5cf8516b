/*
 * The queues that have a file in /etc/leat.
 */
#include "config/file/queues.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/file/source.h"

static int is_config(const struct dirent *entry)
{
    size_t size = strlen(entry->d_name), ending = strlen(CONFIG_SOURCE_ENDING);

    return entry->d_name[0] != '.' && size > ending &&
           strcmp(entry->d_name + size - ending, CONFIG_SOURCE_ENDING) == 0;
}

size_t queues_list(char ***names, int *error)
{
    struct dirent **entries;
    int found = scandir(config_source_folder(), &entries, is_config, alphasort);
    size_t count = 0;

    *names = NULL;
    *error = found < 0 ? errno : 0;
    if (found < 0) {
        return 0;
    }
    if (found > 0) {
        *names = calloc((size_t)found, sizeof **names);
    }
    for (int i = 0; i < found; i++) {
        char *name =
            strndup(entries[i]->d_name, strlen(entries[i]->d_name) - strlen(CONFIG_SOURCE_ENDING));
        if (*names && name) {
            (*names)[count++] = name;
        } else {
            free(name);
        }
        free(entries[i]);
    }
    free(entries);
    return count;
}

void queues_free(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
}
