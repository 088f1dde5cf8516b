/*
 * Which queue a command is for: by the options, the environment, or the files of /etc/leat.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/join.h"
#include "cli/lib/cli.h"
#include "cli/lib/queues.h"

static void join(char *const *names, size_t count, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        join_word(text, size, ", ", names[i]);
    }
}

/* The path of the named queue. If it does not exist, prints the names of those that do. */
static int find_named(const struct cli *cli, char **path)
{
    const char *queue = cli->source.queue;
    char **names, list[512], hint[128];
    size_t count;
    int error;

    *path = config_source_queue_path(queue);
    if (!*path) {
        return cli_no_memory();
    }
    if (access(*path, F_OK) == 0 || errno != ENOENT) {
        return EX_OK;
    }

    count = queues_list(&names, &error);
    join(names, count, list, sizeof list);
    cli_suggest(queue, (const char *const *)names, count, hint, sizeof hint);
    cli_error("no queue %s: %s does not exist;%s %s%s", queue, *path, hint,
              count > 0 ? "known queues: " : "the folder has no *.ini", list);
    queues_free(names, count);
    free(*path);
    *path = NULL;
    return EX_CONFIG;
}

int queues_none(int error)
{
    if (error != 0) {
        cli_error("no queue found: cannot read %s: %s; name a file with -c", config_source_folder(),
                  strerror(error));
    } else {
        cli_error("no queue is configured: %s has no *.ini; name a file with -c",
                  config_source_folder());
    }
    return EX_CONFIG;
}

/* The path of the only queue. If there are several, prints their names. */
static int find_only(char **path)
{
    char **names, list[512];
    int error, status;
    size_t count = queues_list(&names, &error);

    join(names, count, list, sizeof list);
    if (count == 1) {
        *path = config_source_queue_path(names[0]);
        status = *path ? EX_OK : cli_no_memory();
    } else if (count > 1) {
        cli_error("no queue is named; name one with -q: %s", list);
        status = EX_USAGE;
    } else {
        status = queues_none(error);
    }
    queues_free(names, count);
    return status;
}

/* The file that LEAT_CONFIG names, or NULL. */
static const char *find_variable(void)
{
    const char *variable = getenv("LEAT_CONFIG");

    return variable && *variable ? variable : NULL;
}

bool queues_is_open(const struct cli *cli)
{
    const struct config_source *source = &cli->source;

    return !source->file && !source->queue && !config_source_url(source) &&
           !source->password_file && !find_variable();
}

bool queues_reads_file(const struct cli *cli)
{
    const struct config_source *source = &cli->source;

    return source->file || (!source->queue && find_variable()) || !config_source_url(source);
}

int queues_find(const struct cli *cli, char **path)
{
    const struct config_source *source = &cli->source;
    const char *named = source->file;

    *path = NULL;
    if (source->queue) {
        return config_source_url(source) ? EX_OK : find_named(cli, path);
    }
    if (!named) {
        named = find_variable();
    }
    if (!named && config_source_url(source)) {
        return cli_usage(cli, "no queue is named; name it with -q QUEUE");
    }
    if (!named) {
        return find_only(path);
    }
    *path = strdup(named);
    return *path ? EX_OK : cli_no_memory();
}
