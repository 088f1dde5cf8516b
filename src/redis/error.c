/* Classifies Redis errors by their words, and says what an operator can do. */
#include "redis/error.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct pattern {
    const char *text;
    enum redis_error error;
};

/* Error codes: the word before the first space. */
static const struct pattern codes[] = {
    {"LOADING", REDIS_ERROR_LATER},       {"BUSY", REDIS_ERROR_LATER},
    {"MASTERDOWN", REDIS_ERROR_LATER},    {"CLUSTERDOWN", REDIS_ERROR_LATER},
    {"TRYAGAIN", REDIS_ERROR_LATER},      {"READONLY", REDIS_ERROR_ROLE},
    {"MOVED", REDIS_ERROR_ROLE},          {"ASK", REDIS_ERROR_ROLE},
    {"OOM", REDIS_ERROR_NO_WRITE},        {"MISCONF", REDIS_ERROR_NO_WRITE},
    {"NOREPLICAS", REDIS_ERROR_NO_WRITE}, {"NOAUTH", REDIS_ERROR_DENIED},
    {"WRONGPASS", REDIS_ERROR_DENIED},    {"NOPERM", REDIS_ERROR_DENIED},
    {"DENIED", REDIS_ERROR_DENIED},       {"NOGROUP", REDIS_ERROR_NO_GROUP},
    {"UNBLOCKED", REDIS_ERROR_NO_GROUP},  {"FOREIGN", REDIS_ERROR_FOREIGN},
    {"WRONGTYPE", REDIS_ERROR_FOREIGN},   {"REFUSED", REDIS_ERROR_CALLER},
    {"FULL", REDIS_ERROR_FULL},           {"BADARG", REDIS_ERROR_CALLER},
    {"CROSSSLOT", REDIS_ERROR_CALLER},
};

/* The beginnings of generic errors (ERR). */
static const struct pattern sentences[] = {
    {"max number of clients", REDIS_ERROR_LATER},
    {"Function not found", REDIS_ERROR_NO_LIBRARY},
    {"unknown command", REDIS_ERROR_UNFIT},
    {"AUTH <password> called without any password", REDIS_ERROR_DENIED},
    {"Client sent AUTH, but no password is set", REDIS_ERROR_DENIED},
    {"invalid password", REDIS_ERROR_DENIED},
    {"operation not permitted", REDIS_ERROR_DENIED},
    /* within a function: Redis 7.0, and Redis 7.2 or later and Valkey */
    {"The user executing the script can't", REDIS_ERROR_DENIED},
    {"ACL failure in script: ", REDIS_ERROR_DENIED},
    {"Unable to execute command", REDIS_ERROR_LATER},
    {"Script attempted to access a slot not served", REDIS_ERROR_LATER},
    {"Script attempted to execute a command while the cluster is down", REDIS_ERROR_LATER},
    {"Script attempted to execute a write command while the cluster is down", REDIS_ERROR_LATER},
    {"The stream has exhausted the last possible ID", REDIS_ERROR_EXHAUSTED},
    {"DB index is out of range", REDIS_ERROR_CALLER},
    {"invalid DB index", REDIS_ERROR_CALLER},
    {"This instance has cluster support disabled", REDIS_ERROR_CALLER},
    {"SELECT is not allowed in cluster mode", REDIS_ERROR_CALLER},
};

#define COUNT(array) (sizeof array / sizeof array[0])

static bool begins_with(const char *message, size_t size, const char *text)
{
    size_t length = strlen(text);
    return size >= length && memcmp(message, text, length) == 0;
}

static bool has_code(const char *message, size_t size, const char *code)
{
    size_t length = strlen(code);
    return begins_with(message, size, code) && (size == length || message[length] == ' ');
}

enum redis_error redis_error_classify(const char *message, size_t size)
{
    /* a code or a sentence may have a generic prefix */
    while (begins_with(message, size, "ERR ")) {
        message += 4;
        size -= 4;
    }
    /* a blocked read of a deleted stream ends with the same code */
    static const char demoted[] = "instance state changed";
    if (has_code(message, size, "UNBLOCKED") &&
        memmem(message, size, demoted, sizeof demoted - 1)) {
        return REDIS_ERROR_ROLE;
    }
    for (size_t i = 0; i < COUNT(codes); i++) {
        if (has_code(message, size, codes[i].text)) {
            return codes[i].error;
        }
    }
    for (size_t i = 0; i < COUNT(sentences); i++) {
        if (begins_with(message, size, sentences[i].text)) {
            return sentences[i].error;
        }
    }
    return REDIS_ERROR_OTHER;
}

/* Returns where " script: NAME, on @user_function:LINE." begins, or size. It is the last match,
 * since the message before it may quote a task. */
static size_t find_script(const char *message, size_t size)
{
    static const char before[] = " script: ", within[] = ", on @";
    for (size_t at = size; at-- > 0;) {
        if (begins_with(message + at, size - at, before)) {
            const char *rest = message + at + strlen(before);
            return memmem(rest, size - (size_t)(rest - message), within, strlen(within)) ? at
                                                                                         : size;
        }
    }
    return size;
}

/* The queue's refusals are a sentence after their code. */
static size_t skip_code(const char *message, size_t size)
{
    static const char *const refusals[] = {"REFUSED ", "FULL "};
    for (size_t i = 0; i < COUNT(refusals); i++) {
        if (begins_with(message, size, refusals[i])) {
            return strlen(refusals[i]);
        }
    }
    return 0;
}

size_t redis_error_text(const char *message, size_t size, const char **text)
{
    size = find_script(message, size);
    while (begins_with(message, size, "ERR ")) {
        message += 4;
        size -= 4;
    }
    size_t code = skip_code(message, size);
    message += code;
    size -= code;
    /* advice may follow */
    if (size > 0 && message[size - 1] == '.') {
        size--;
    }
    *text = message;
    return size;
}

static const struct {
    const char *name, *advice;
} classes[] = {
    [REDIS_ERROR_NONE] = {"none", "nothing to do"},
    [REDIS_ERROR_LOST] = {"connection-lost",
                          "check that Redis runs and that [redis] has its address"},
    [REDIS_ERROR_LATER] = {"not-ready", "Redis is busy or not ready; if this lasts, see its log"},
    [REDIS_ERROR_ROLE] = {"wrong-server", "this server is not the master of the queue: set [redis] "
                                          "to the master, to its sentinels or to the Cluster"},
    [REDIS_ERROR_NO_WRITE] = {"refused-writes",
                              "Redis refuses writes: check its memory, its disk and its replicas"},
    [REDIS_ERROR_DENIED] = {"denied",
                            "check user and password in [redis], and the ACL of that user"},
    [REDIS_ERROR_NO_LOAD] = {"load-denied",
                             "run leat init as an administrator and set [queue] load_library = "
                             "never, or allow this user to load functions"},
    [REDIS_ERROR_NO_GROUP] =
        {"no-group", "the stream or its group was deleted, or its hash slot moves; a worker "
                     "finds or recreates it"},
    [REDIS_ERROR_NO_LIBRARY] = {"no-library",
                                "load the function library: run leat init as an administrator, or "
                                "start a worker with load_library = auto"},
    [REDIS_ERROR_OLD_LIBRARY] = {"old-library", "load the library of this version: run leat init "
                                                "as an administrator"},
    [REDIS_ERROR_UNFIT] = {"unfit-server",
                           "leat needs Redis 7.0 or later, or Valkey, with all commands and with "
                           "functions (FUNCTION, FCALL); sentinels are not named as host, but as "
                           "sentinels"},
    [REDIS_ERROR_FOREIGN] = {"foreign-key",
                             "give the queue another name, or set stream in [queue]"},
    [REDIS_ERROR_CALLER] = {"refused-call", "check db, master and cluster in [redis]"},
    [REDIS_ERROR_FULL] = {"full-queue", "try again later"},
    [REDIS_ERROR_EXHAUSTED] = {"exhausted-stream",
                               "run leat doctor --repair, which creates the stream again as soon "
                               "as it is empty"},
    [REDIS_ERROR_NO_MEMORY] = {"no-memory", "free memory on this host"},
    [REDIS_ERROR_OTHER] = {"error", "see the message and the log of Redis"},
};

/* The advice if --redis or LEAT_REDIS gives the server; NULL: that of the class. */
static const char *const url_advice[REDIS_ERROR_OTHER + 1] = {
    [REDIS_ERROR_LOST] = "check that Redis runs and that --redis or LEAT_REDIS has its address",
    [REDIS_ERROR_ROLE] = ("this server is not the master of the queue: name the master in --redis "
                          "or LEAT_REDIS; sentinels and a Cluster need a file"),
    [REDIS_ERROR_DENIED] = ("check the user and password given with --redis, --password-file or "
                            "LEAT_REDIS, and the ACL of that user"),
    [REDIS_ERROR_NO_LOAD] =
        "run leat init as an administrator, or allow this user to load functions",
    [REDIS_ERROR_FOREIGN] = "give the queue another name",
    [REDIS_ERROR_CALLER] = "check the database in --redis or LEAT_REDIS; a Cluster needs a file",
};

const char *redis_error_name(enum redis_error error)
{
    return classes[error].name;
}

enum redis_error redis_error_of_reply(const redisReply *reply, int malformed, const char *what,
                                      char *why, size_t why_size)
{
    const char *text = "unexpected reply";
    size_t size = strlen(text);
    bool is_error = reply->type == REDIS_REPLY_ERROR;
    if (!is_error && !malformed) {
        return REDIS_ERROR_NONE;
    }
    if (is_error) {
        size = redis_error_text(reply->str, reply->len, &text);
    }
    (void)snprintf(why, why_size, "%s: %.*s", what, (int)size, text);
    return is_error ? redis_error_classify(reply->str, reply->len) : REDIS_ERROR_OTHER;
}

const char *redis_error_advice(enum redis_error error, bool by_url)
{
    return by_url && url_advice[error] ? url_advice[error] : classes[error].advice;
}

void redis_error_explain(const char *message, size_t size, char *explained, size_t explained_size)
{
    enum redis_error error = redis_error_classify(message, size);
    /* the queue's own refusals say what to do */
    bool complete = error == REDIS_ERROR_CALLER || error == REDIS_ERROR_FULL;
    const char *text = NULL;
    size = redis_error_text(message, size, &text);
    (void)snprintf(explained, explained_size, "%.*s%s%s", (int)size, text, complete ? "" : "; ",
                   complete ? "" : redis_error_advice(error, false));
}
