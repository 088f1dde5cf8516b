/*
 * The configuration and the connection of a command; calls, whose failure becomes a message and an
 * exit status.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/lib/cli.h"
#include "cli/lib/queues.h"
#include "cli/lib/text.h"
#include "config/file/load.h"
#include "redis/error.h"

#define WHY_SIZE 512

void cli_error(const char *format, ...)
{
    char message[2048];
    struct buffer line = BUFFER_INIT;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    /* The message may contain anything, so it is never printed unescaped. A failure of stderr
     * cannot be reported. */
    if (text_append(&line, message, strlen(message)) == 0) {
        (void)fprintf(stderr, "leat: %.*s\n", (int)line.size, line.data);
    } else {
        (void)fputs("leat: out of memory\n", stderr);
    }
    buffer_free(&line);
}

int cli_no_memory(void)
{
    cli_error("out of memory");
    return EX_OSERR;
}

int cli_flush(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return EX_OK;
    }
    /* a reader such as head may close the pipe early */
    if (errno != EPIPE) {
        cli_error("cannot write the output: %s", strerror(errno));
    }
    return EX_IOERR;
}

/* ---- the configuration */

static int check_source(const struct cli *cli)
{
    struct buffer why = BUFFER_INIT;
    int status = EX_OK;

    if (config_source_check(&cli->source, &why) != 0) {
        status = why.failed ? cli_no_memory() : cli_usage(cli, "%.*s", (int)why.size, why.data);
    }
    buffer_free(&why);
    return status;
}

int cli_bad_config(const struct buffer *errors)
{
    if (errors->size == 0) {
        return cli_no_memory();
    }
    /* a failure of stderr cannot be reported */
    (void)fprintf(stderr, "leat: cannot read the configuration:\n%.*s%s", (int)errors->size,
                  errors->data, errors->data[errors->size - 1] == '\n' ? "" : "\n");
    return errors->failed ? EX_OSERR : EX_CONFIG;
}

int cli_load(struct cli *cli)
{
    struct buffer errors = BUFFER_INIT;
    char *path;
    int status;

    if (cli->config) {
        return EX_OK;
    }
    status = check_source(cli);
    status = status == EX_OK ? queues_find(cli, &path) : status;
    if (status != EX_OK) {
        return status;
    }
    if (config_source_load(&cli->source, path, false, &cli->config, &errors) != 0) {
        status = cli_bad_config(&errors);
    } else if (!cli->config ||
               queue_init(&cli->queue, cli->config->queue.stream, cli->config->queue.group) != 0) {
        status = cli_no_memory();
    }
    buffer_free(&errors);
    free(path);
    return status;
}

/* ---- Redis */

int cli_status_of(enum redis_error error)
{
    static const int statuses[] = {
        [REDIS_ERROR_NONE] = EX_OK,
        [REDIS_ERROR_LOST] = EX_UNAVAILABLE,
        [REDIS_ERROR_LATER] = EX_TEMPFAIL,
        [REDIS_ERROR_ROLE] = EX_UNAVAILABLE,
        [REDIS_ERROR_NO_WRITE] = EX_TEMPFAIL,
        [REDIS_ERROR_DENIED] = EX_NOPERM,
        [REDIS_ERROR_NO_LOAD] = EX_NOPERM,
        [REDIS_ERROR_NO_GROUP] = EX_SOFTWARE,
        [REDIS_ERROR_NO_LIBRARY] = EX_CONFIG,
        [REDIS_ERROR_OLD_LIBRARY] = EX_PROTOCOL,
        [REDIS_ERROR_UNFIT] = EX_CONFIG,
        [REDIS_ERROR_FOREIGN] = EX_CONFIG,
        [REDIS_ERROR_CALLER] = EX_DATAERR,
        [REDIS_ERROR_FULL] = EX_TEMPFAIL,
        [REDIS_ERROR_EXHAUSTED] = EX_SOFTWARE,
        [REDIS_ERROR_NO_MEMORY] = EX_OSERR,
        [REDIS_ERROR_OTHER] = EX_SOFTWARE,
    };

    return statuses[error];
}

int cli_call_failed(const struct cli *cli, const char *what, enum redis_error error,
                    const char *why)
{
    const char *advice = redis_error_advice(error, cli->config->redis.by_url);

    /* the queue's own error replies contain the advice */
    if (error == REDIS_ERROR_CALLER || error == REDIS_ERROR_FULL) {
        cli_error("%s: %s", what, why);
    } else {
        cli_error("%s: %s; %s", what, why, advice);
    }
    return cli_status_of(error);
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

    if (status != EX_OK || cli->client) {
        return status;
    }
    if (cli_try_connect(cli, &error, why, sizeof why) == 0) {
        return EX_OK;
    }
    /* the server refused a value of the configuration */
    if (error == REDIS_ERROR_CALLER) {
        cli_error("cannot connect to Redis: %s; %s", why,
                  redis_error_advice(error, cli->config->redis.by_url));
        return EX_CONFIG;
    }
    return cli_call_failed(cli, "cannot connect to Redis", error, why);
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
    config_source_close(&cli->source);
}

int cli_unexpected_reply(void)
{
    cli_error("unexpected reply from Redis: the queue's function library is of another version; "
              "install the same version everywhere");
    return EX_PROTOCOL;
}

int cli_check_reply(const struct redisReply *reply, size_t elements)
{
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
        reply->element[0]->type == REDIS_REPLY_INTEGER &&
        reply->element[0]->integer != QUEUE_PROTOCOL) {
        cli_error("the queue's function library has protocol %lld, this leat %d; install the same "
                  "version everywhere",
                  reply->element[0]->integer, QUEUE_PROTOCOL);
        return EX_PROTOCOL;
    }
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements >= elements) {
        return EX_OK;
    }
    return cli_unexpected_reply();
}

struct redisReply *cli_call(struct cli *cli, struct command *command, const char *what,
                            size_t elements, int *status)
{
    enum redis_error error = REDIS_ERROR_OTHER;
    char why[WHY_SIZE] = "";
    struct redisReply *reply = client_call(cli->client, command, &error, why, sizeof why);

    command_free(command);
    if (!reply) {
        *status = cli_call_failed(cli, what, error, why);
        return NULL;
    }
    *status = cli_check_reply(reply, elements);
    if (*status == EX_OK) {
        return reply;
    }
    freeReplyObject(reply);
    return NULL;
}
