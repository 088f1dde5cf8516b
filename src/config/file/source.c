/*
 * Decides where a queue's configuration comes from: options, environment or files.
 */
#include "config/file/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/file/load.h"
#include "config/types/strings.h"
#include "config/types/url.h"

#define URL_OPTION "--redis"

int config_source_open(struct config_source *source)
{
    char *value = getenv(CONFIG_SOURCE_VARIABLE);
    bool given = value && *value != '\0';

    if (given) {
        source->variable = strdup(value);
        explicit_bzero(value, strlen(value));
    }
    if (unsetenv(CONFIG_SOURCE_VARIABLE) != 0) {
        return -1;
    }
    return given && !source->variable ? -1 : 0;
}

void config_source_set_variable(struct config_source *source, char *value)
{
    config_source_close(source);
    source->variable = value;
}

void config_source_close(struct config_source *source)
{
    strings_free(&source->variable);
}

const char *config_source_url(const struct config_source *source)
{
    if (source->url) {
        return source->url;
    }
    return !source->file ? source->variable : NULL;
}

static int refuse(struct buffer *why, const char *reason)
{
    (void)buffer_append_text(why, reason); /* a failure sets why->failed, which the caller checks */
    return -1;
}

/* All users of the host can read the arguments of a process. */
static int check_url(const char *url, struct buffer *why)
{
    struct config_redis redis = {0};
    int result = 0;

    (void)buffer_append_text(why, URL_OPTION ": "); /* a failure sets why->failed */
    if (url_parse(url, &redis, why) != 0) {
        result = -1;
    } else if (redis.password) {
        result = refuse(why, "a password on the command line is visible to others in ps; set "
                             "LEAT_REDIS, or use --password-file FILE");
    } else {
        buffer_clear(why);
    }
    url_clear(&redis);
    return result;
}

int config_source_check(const struct config_source *source, struct buffer *why)
{
    const char *queue = source->queue;

    if (source->file && queue) {
        return refuse(why, "give -c or -q, not both");
    }
    if (source->file && *source->file == '\0') {
        return refuse(why, "-c: the name of the file is empty; give one, or name a queue with -q");
    }
    if (queue && (*queue == '\0' || *queue == '.' || strchr(queue, '/'))) {
        /* a failure sets why->failed */
        (void)buffer_printf(why, "-q: '%s' is not the name of a queue; use -c for a file", queue);
        return -1;
    }
    if (source->url && check_url(source->url, why) != 0) {
        return -1;
    }
    if (source->password_file && !config_source_url(source)) {
        return refuse(why, "--password-file requires --redis or LEAT_REDIS; in a file, set "
                           "password_file under [redis]");
    }
    return 0;
}

const char *config_source_folder(void)
{
    const char *folder = getenv("LEAT_CONFIG_DIR");

    return folder && *folder != '\0' ? folder : CONFIG_SOURCE_FOLDER;
}

char *config_source_queue_path(const char *queue)
{
    char *path;

    return asprintf(&path, "%s/%s" CONFIG_SOURCE_ENDING, config_source_folder(), queue) < 0 ? NULL
                                                                                            : path;
}

int config_source_unit(const char *path, char *unit, size_t size)
{
    const char *folder = config_source_folder();
    size_t length = strlen(folder), ending = strlen(CONFIG_SOURCE_ENDING);
    const char *queue;
    int written;

    if (!path || strncmp(path, folder, length) != 0 || path[length] != '/') {
        return -1;
    }
    queue = path + length + 1;
    if (strchr(queue, '/') || strlen(queue) <= ending ||
        strcmp(queue + strlen(queue) - ending, CONFIG_SOURCE_ENDING) != 0) {
        return -1;
    }
    written = snprintf(unit, size, "leatd@%.*s.service", (int)(strlen(queue) - ending), queue);
    return written > 0 && (size_t)written < size ? 0 : -1;
}

int config_source_load(const struct config_source *source, const char *path, bool with_keys,
                       struct config **config, struct buffer *errors)
{
    struct config_given given = {
        .queue = !path ? source->queue : NULL,
        .url = config_source_url(source),
        .url_name = source->url ? URL_OPTION : CONFIG_SOURCE_VARIABLE,
        .password_file = source->password_file,
        .with_keys = with_keys,
        .skip_credentials = source->skip_credentials,
    };

    return config_load_given(path, &given, config, errors);
}
