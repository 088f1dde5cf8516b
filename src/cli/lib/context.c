/*
 * From the command line to a connected queue: which file, its configuration, Redis, and calls
 * whose failure becomes a message and an exit status.
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/escape.h"
#include "cli/lib/cli.h"
#include "config/load.h"
#include "redis/error.h"

#define CONFIG_FOLDER "/etc/leat"
#define CONFIG_ENDING ".ini"
#define WHY_SIZE 512

void cli_error(const char *format, ...)
{
    char message[2048];
    struct buffer line = BUFFER_INIT;
    va_list args;

    /* cut where it is too long */
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    /* without memory not what was to be said, which may hold anything, but why; there is nobody
     * left to tell that stderr is gone */
    if (escape_append(&line, message, strlen(message)) == 0)
        (void)fprintf(stderr, "leat: %.*s\n", (int)line.size, line.data);
    else
        (void)fputs("leat: out of memory\n", stderr);
    buffer_free(&line);
}

int cli_no_memory(void)
{
    cli_error("out of memory");
    return EX_OSERR;
}

int cli_flush(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EX_OK;
    /* a reader such as head that has seen enough need not be told */
    if (errno != EPIPE)
        cli_error("cannot write the output: %s", strerror(errno));
    return EX_IOERR;
}

/* ---- which configuration */

static const char *config_folder(void)
{
    const char *folder = getenv("LEAT_CONFIG_DIR");

    return folder && *folder ? folder : CONFIG_FOLDER;
}

static int is_config(const struct dirent *entry)
{
    size_t size = strlen(entry->d_name), ending = strlen(CONFIG_ENDING);

    return entry->d_name[0] != '.' && size > ending &&
           strcmp(entry->d_name + size - ending, CONFIG_ENDING) == 0;
}

/* Names of the queues that have a file, sorted; count 0, *names NULL and errno where there is no
 * folder, or none for this user to read. errno is 0 else. */
static size_t list_queues(char ***names)
{
    struct dirent **entries;
    int found = scandir(config_folder(), &entries, is_config, alphasort);
    size_t count = 0;

    *names = NULL;
    if (found < 0)
        return 0;
    if (found > 0)
        *names = calloc((size_t)found, sizeof **names);
    for (int i = 0; i < found; i++) {
        char *name =
            strndup(entries[i]->d_name, strlen(entries[i]->d_name) - strlen(CONFIG_ENDING));
        if (*names && name)
            (*names)[count++] = name;
        else
            free(name);
        free(entries[i]);
    }
    free(entries);
    errno = 0;
    return count;
}

static void free_queues(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static void join_queues(char *const *names, size_t count, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        int length = snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", names[i]);
        if (length < 0 || (size_t)length >= size - used)
            return;
        used += (size_t)length;
    }
}

/* Returns a path for free(), or NULL without memory. */
static char *queue_path(const char *name)
{
    char *path;

    return asprintf(&path, "%s/%s" CONFIG_ENDING, config_folder(), name) < 0 ? NULL : path;
}

/* The path of the named queue; a wrong name is answered with those there are. */
static int find_named(const struct cli *cli, char **path)
{
    char **names, list[512], hint[128];
    size_t count;

    if (strchr(cli->queue_name, '/') || cli->queue_name[0] == '.' || !cli->queue_name[0])
        return cli_usage(cli, "-q wants a queue's name, not '%s'; a file goes with -c",
                         cli->queue_name);
    *path = queue_path(cli->queue_name);
    if (!*path)
        return cli_no_memory();
    if (access(*path, F_OK) == 0 || errno != ENOENT)
        return EX_OK;

    count = list_queues(&names);
    join_queues(names, count, list, sizeof list);
    cli_suggest(cli->queue_name, (const char *const *)names, count, hint, sizeof hint);
    cli_error("no queue %s: %s does not exist;%s %s%s", cli->queue_name, *path, hint,
              count > 0 ? "there are: " : "the folder holds no *.ini", list);
    free_queues(names, count);
    free(*path);
    *path = NULL;
    return EX_CONFIG;
}

/* The only queue there is, else what there is. */
static int find_only(char **path)
{
    char **names, list[512];
    size_t count = list_queues(&names);
    int error = errno, status = EX_CONFIG;

    join_queues(names, count, list, sizeof list);
    if (count == 1) {
        *path = queue_path(names[0]);
        status = *path ? EX_OK : cli_no_memory();
    } else if (count > 1) {
        cli_error("which queue? Name one with -q; there are: %s", list);
        status = EX_USAGE;
    } else if (error != 0) {
        cli_error("no queue is found: cannot read %s: %s; name a file with -c", config_folder(),
                  strerror(error));
    } else {
        cli_error("no queue is configured: %s holds no *.ini; name a file with -c",
                  config_folder());
    }
    free_queues(names, count);
    return status;
}

static int find_config(const struct cli *cli, char **path)
{
    const char *variable = getenv("LEAT_CONFIG"), *named = cli->config_path;

    *path = NULL;
    if (cli->config_path && cli->queue_name)
        return cli_usage(cli, "give -c or -q, not both");
    if (cli->queue_name)
        return find_named(cli, path);
    if (!named && variable && *variable)
        named = variable;
    if (!named)
        return find_only(path);
    *path = strdup(named);
    return *path ? EX_OK : cli_no_memory();
}

int cli_load(struct cli *cli)
{
    struct buffer errors = BUFFER_INIT;
    char *path;
    int status;

    if (cli->config)
        return EX_OK;
    status = find_config(cli, &path);
    if (status != EX_OK)
        return status;
    if (config_load(path, &cli->config, &errors) != 0) {
        /* lines with file, number and advice of their own; nobody is left to tell if stderr fails
         */
        (void)fprintf(stderr, "leat: cannot read the configuration:\n%.*s%s", (int)errors.size,
                      errors.size > 0 ? errors.data : "",
                      errors.size > 0 && errors.data[errors.size - 1] == '\n' ? "" : "\n");
        status = EX_CONFIG;
    } else if (queue_init(&cli->queue, cli->config->queue.stream, cli->config->queue.group) != 0) {
        status = cli_no_memory();
    }
    buffer_free(&errors);
    free(path);
    return status;
}

/* ---- Redis */

int cli_status_of(enum redis_error error, const char *why)
{
    switch (error) {
    case REDIS_ERROR_NONE:
        return EX_OK;
    case REDIS_ERROR_LOST:
    case REDIS_ERROR_ROLE:
        return EX_UNAVAILABLE;
    case REDIS_ERROR_LATER:
    case REDIS_ERROR_NO_WRITE:
        return EX_TEMPFAIL;
    case REDIS_ERROR_DENIED:
        return EX_NOPERM;
    case REDIS_ERROR_NO_LIBRARY:
    case REDIS_ERROR_UNFIT:
    case REDIS_ERROR_FOREIGN:
        return EX_CONFIG;
    case REDIS_ERROR_CALLER:
        return strncmp(why, "FULL", 4) == 0 ? EX_TEMPFAIL : EX_DATAERR;
    case REDIS_ERROR_NO_GROUP:
    case REDIS_ERROR_OTHER:
        break;
    }
    return EX_SOFTWARE;
}

int cli_call_failed(const char *what, enum redis_error error, const char *why)
{
    const char *advice = redis_error_advice(error);

    /* the queue's own answers say all there is to say */
    if (error == REDIS_ERROR_CALLER)
        cli_error("%s: %s", what, why);
    else
        cli_error("%s: %s; %s", what, why, advice);
    return cli_status_of(error, why);
}

int cli_try_connect(struct cli *cli, enum redis_error *error, char *why, size_t why_size)
{
    cli->client = library_client_open(&cli->library, &cli->config->redis,
                                      cli->config->queue.load_library, error, why, why_size);
    return cli->client ? 0 : -1;
}

int cli_connect(struct cli *cli)
{
    enum redis_error error = REDIS_ERROR_OTHER;
    char why[WHY_SIZE] = "";
    int status = cli_load(cli);

    if (status != EX_OK || cli->client)
        return status;
    if (cli_try_connect(cli, &error, why, sizeof why) == 0)
        return EX_OK;
    /* what the server refuses here came from the file */
    if (error == REDIS_ERROR_CALLER) {
        cli_error("cannot connect to Redis: %s; %s", why, redis_error_advice(error));
        return EX_CONFIG;
    }
    return cli_call_failed("cannot connect to Redis", error, why);
}

void cli_disconnect(struct cli *cli)
{
    client_close(cli->client);
    cli->client = NULL;
}

void cli_free(struct cli *cli)
{
    cli_disconnect(cli);
    queue_free(&cli->queue);
    config_free(cli->config);
    cli->config = NULL;
}

int cli_check_reply(const struct redisReply *reply, size_t elements)
{
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
        reply->element[0]->type == REDIS_REPLY_INTEGER &&
        reply->element[0]->integer != QUEUE_PROTOCOL) {
        cli_error("the queue's library speaks protocol %lld, this leat %d: install the same "
                  "version everywhere",
                  reply->element[0]->integer, QUEUE_PROTOCOL);
        return EX_PROTOCOL;
    }
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements >= elements)
        return EX_OK;
    cli_error("Redis answered in a form that this leat does not know: install the same version "
              "everywhere");
    return EX_PROTOCOL;
}

struct redisReply *cli_call(struct cli *cli, struct command *command, const char *what,
                            size_t elements, int *status)
{
    enum redis_error error = REDIS_ERROR_OTHER;
    char why[WHY_SIZE] = "";
    struct redisReply *reply = client_call(cli->client, command, &error, why, sizeof why);

    if (!reply) {
        *status = cli_call_failed(what, error, why);
        return NULL;
    }
    *status = cli_check_reply(reply, elements);
    if (*status == EX_OK)
        return reply;
    freeReplyObject(reply);
    return NULL;
}
