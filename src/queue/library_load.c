/* Loads the function library for the command's client: on connecting, and when Redis has lost it.
 */
#include "queue/library_load.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "queue/calls.h"
#include "queue/library.h"
#include "queue/replies.h"

/* Where an error is reported. */
struct trouble {
    enum redis_error *error;
    char *why;
    size_t size;
};

static int load_library(struct library_load *load, struct client *client, bool replace,
                        const struct trouble *trouble)
{
    struct command command = {0};
    queue_load_library(&command, replace);
    int result = client_perform(client, &command, "loading the function library", trouble->error,
                                trouble->why, trouble->size);
    command_free(&command);
    load->done = load->done || result == 0;
    if (result == 0) {
        load->old_version = 0;
    } else if (*trouble->error == REDIS_ERROR_DENIED) {
        *trouble->error = REDIS_ERROR_NO_LOAD;
    }

    /* Another client was faster. */
    if (result && !replace && strstr(trouble->why, "already exists")) {
        result = 0;
    }
    return result;
}

/* An older library that may not be replaced still works if it speaks the protocol. */
static int replace_library(struct library_load *load, struct client *client, bool usable,
                           const struct trouble *trouble)
{
    if (load_library(load, client, true, trouble) == 0) {
        return 0;
    }
    return usable && *trouble->error != REDIS_ERROR_LOST ? 0 : -1;
}

static int refuse(const struct trouble *trouble, enum redis_error error, const char *detail)
{
    *trouble->error = error;
    (void)snprintf(trouble->why, trouble->size, "%s", detail); /* a long text may be cut */
    return -1;
}

static int check_version(struct library_load *load, struct client *client, const redisReply *reply,
                         const struct trouble *trouble)
{
    int64_t protocol = 0, version = 0;
    if (queue_version_read(reply, &protocol, &version)) {
        return refuse(trouble, REDIS_ERROR_FOREIGN,
                      "the function leat_version belongs to another library; remove that library");
    }
    bool usable = protocol == QUEUE_PROTOCOL, is_old = version < library_version();
    load->old_version = is_old ? version : 0;
    if (is_old && load->allowed) {
        return replace_library(load, client, usable, trouble);
    }
    if (!usable) {
        char detail[120];
        (void)snprintf(detail, sizeof detail,
                       "the function library in Redis speaks protocol %lld, this program %d",
                       (long long)protocol, QUEUE_PROTOCOL); /* numbers and a few words fit */
        return refuse(trouble, REDIS_ERROR_OTHER, detail);
    }
    return 0;
}

static int check_library(void *context, struct client *client, enum redis_error *error, char *why,
                         size_t why_size)
{
    struct library_load *load = context;
    const struct trouble trouble = {.error = error, .why = why, .size = why_size};
    struct command command = {0};
    queue_version(&command);
    redisReply *reply = client_call_once(client, &command, error, why, why_size);
    command_free(&command);
    if (reply) {
        int result = check_version(load, client, reply, &trouble);
        freeReplyObject(reply);
        return result;
    }
    /* If the library may not be loaded, the first call that needs it reports that it is missing. */
    if (*error == REDIS_ERROR_NO_LIBRARY) {
        return load->allowed ? load_library(load, client, false, &trouble) : 0;
    }
    return -1;
}

/* An older library has fewer functions, and refuses keys and arguments that it does not know. */
static bool is_too_old(const struct library_load *load, enum redis_error error, const char *why)
{
    return load->old_version && (error == REDIS_ERROR_NO_LIBRARY ||
                                 (error == REDIS_ERROR_CALLER && strncmp(why, "BADARG ", 7) == 0));
}

static void say_too_old(const struct library_load *load, const struct trouble *trouble)
{
    char cause[200];
    (void)snprintf(cause, sizeof cause, "%s", trouble->why); /* a long text may be cut */
    *trouble->error = REDIS_ERROR_OLD_LIBRARY;
    (void)snprintf(trouble->why, trouble->size,
                   "the function library in Redis has version %lld, this leat needs %ld (%s)",
                   (long long)load->old_version, (long)library_version(), cause);
}

/* Called when a call has failed. Redis may have been restarted or flushed. */
static bool load_again(void *context, struct client *client, enum redis_error *error, char *why,
                       size_t why_size)
{
    struct library_load *load = context;
    const struct trouble trouble = {.error = error, .why = why, .size = why_size};
    if (is_too_old(load, *error, why)) {
        say_too_old(load, &trouble);
        return false;
    }
    return *error == REDIS_ERROR_NO_LIBRARY && load->allowed &&
           load_library(load, client, false, &trouble) == 0;
}

struct client *library_client_open(struct library_load *load, const struct config_redis *config,
                                   enum config_library library, enum redis_error *error, char *why,
                                   size_t why_size)
{
    *load = (struct library_load){
        .setup = {.opened = check_library, .mend = load_again, .context = load},
        .allowed = library == CONFIG_LIBRARY_AUTO,
    };
    return client_open(config, &load->setup, error, why, why_size);
}
