/*
 * A producer in C with hiredis. Without REDIS_SOCKET it uses the Redis of this host.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include <hiredis/hiredis.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

/* Prints what leat_add or leat_add_many has answered: "new" or "exists", and the id, of each task.
 * Frees the reply. Returns EX_OK, EX_DATAERR (a task is wrong: do not repeat the call),
 * EX_TEMPFAIL (the queue is full: try again later) or EX_UNAVAILABLE. */
static int show(redisContext *redis, redisReply *reply)
{
    int status = EX_OK;

    if (reply == NULL) {
        fprintf(stderr, "%s\n", redis->errstr);
        return EX_UNAVAILABLE;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        fprintf(stderr, "%s\n", reply->str);
        status = strncmp(reply->str, "REFUSED", 7) == 0 ? EX_DATAERR
                 : strncmp(reply->str, "FULL", 4) == 0  ? EX_TEMPFAIL
                                                        : EX_UNAVAILABLE;
    }
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        printf("%s %s\n", reply->element[i]->str, reply->element[i + 1]->str);
    }
    freeReplyObject(reply);
    return status;
}

static int add_plain(redisContext *redis)
{
    redisReply *reply = redisCommand(redis, "XADD thumbnails * command %s SIZE 640",
                                     "echo plain $TASK_SIZE >> done");

    if (reply != NULL && reply->type == REDIS_REPLY_STRING) {
        printf("%s\n", reply->str);
    }
    return show(redis, reply);
}

/* Adds at most one task with that key, in a lane, in half a second. */
static int add_unique(redisContext *redis)
{
    return show(redis, redisCommand(redis,
                                    "FCALL leat_add 1 thumbnails command %s unique index "
                                    "lane albums delay 500ms",
                                    "echo index >> done"));
}

/* Adds two tasks, both or none. */
static int add_many(redisContext *redis)
{
    return show(redis, redisCommand(redis, "FCALL leat_add_many 1 thumbnails %s",
                                    "[{\"command\": \"echo two >> done\"},"
                                    " {\"command\": \"echo three $TASK_SIZE >> done\","
                                    " \"SIZE\": 64}]"));
}

/* Adds a task that gets any bytes on its stdin. */
static int add_bytes(redisContext *redis)
{
    static const char bytes[] = {'\0', '\1', '\376', '\377', '\n'};

    return show(redis, redisCommand(redis, "FCALL leat_add 1 thumbnails command %s payload %b",
                                    "cat > bytes", bytes, sizeof bytes));
}

/* Adds a task that is refused. */
static int add_wrong(redisContext *redis)
{
    int status =
        show(redis, redisCommand(redis, "FCALL leat_add 1 thumbnails command %s result_ttl soon",
                                 "echo never >> done"));

    if (status != EX_DATAERR) {
        return status;
    }
    printf("refused: %d\n", status);
    return EX_OK;
}

/* ---- for workers that want signatures */

enum { FORM_SIZE = 4096 };

struct field {
    const char *name, *value;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct field *)a)->name, ((const struct field *)b)->name);
}

/* Appends a netstring; aborts if it does not fit. */
static void put(char form[FORM_SIZE], size_t *size, const char *text)
{
    int length = snprintf(form + *size, FORM_SIZE - *size, "%zu:%s,", strlen(text), text);

    if (length < 0 || (size_t)length >= FORM_SIZE - *size) {
        abort();
    }
    *size += (size_t)length;
}

/* Writes leat1:NAME:NONCE:MAC for these fields, which include not_after, and sorts them. Values
 * are text here. Returns 0 or -1. */
static int sign(struct field *fields, size_t count, const char *stream, const char *name,
                const char *key, char signature[256])
{
    unsigned char random[16], mac[32];
    char nonce[33], hex[65], form[FORM_SIZE];
    size_t size = 0;

    if (RAND_bytes(random, sizeof random) != 1) {
        return -1;
    }
    for (size_t i = 0; i < sizeof random; i++) {
        snprintf(nonce + 2 * i, 3, "%02x", random[i]);
    }
    qsort(fields, count, sizeof *fields, compare_names);
    put(form, &size, "leat1");
    put(form, &size, name);
    put(form, &size, nonce);
    put(form, &size, stream);
    for (size_t i = 0; i < count; i++) {
        put(form, &size, fields[i].name);
        put(form, &size, fields[i].value);
    }
    if (HMAC(EVP_sha256(), key, (int)strlen(key), (const unsigned char *)form, size, mac, NULL) ==
        NULL) {
        return -1;
    }
    for (size_t i = 0; i < sizeof mac; i++) {
        snprintf(hex + 2 * i, 3, "%02x", mac[i]);
    }
    snprintf(signature, 256, "leat1:%s:%s:%s", name, nonce, hex);
    return 0;
}

/* Reads the first line of a file. Returns 0 or -1. */
static int read_key(const char *path, char *key, int size)
{
    FILE *file = fopen(path, "r");

    if (file == NULL || fgets(key, size, file) == NULL) {
        perror(path);
        return -1;
    }
    fclose(file);
    key[strcspn(key, "\n")] = '\0';
    return 0;
}

/* Adds a signed task, for workers with [security] key_files = 2026a:FILE. */
static int add_signed(redisContext *redis)
{
    const char *path = getenv("LEAT_KEY"), *command = "echo signed $TASK_SIZE >> done";
    char key[4096], signature[256], not_after[24];
    struct field fields[] = {
        {"command", command}, {"SIZE", "32"}, {"a", ""}, {"not_after", not_after}};

    if (path == NULL) {
        return EX_OK;
    }
    if (read_key(path, key, sizeof key) != 0) {
        return EX_NOINPUT;
    }
    snprintf(not_after, sizeof not_after, "%lld", (long long)time(NULL) + 86400);
    if (sign(fields, sizeof fields / sizeof *fields, "thumbnails", "2026a", key, signature) != 0) {
        return EX_SOFTWARE;
    }
    OPENSSL_cleanse(key, sizeof key);
    return show(redis, redisCommand(redis,
                                    "FCALL leat_add 1 thumbnails command %s SIZE 32 a %s "
                                    "not_after %s signature %s",
                                    command, "", not_after, signature));
}

int main(void)
{
    static int (*const steps[])(redisContext *) = {add_plain, add_unique, add_unique, add_many,
                                                   add_bytes, add_wrong,  add_signed};
    const char *path = getenv("REDIS_SOCKET");
    redisContext *redis = path ? redisConnectUnix(path) : redisConnect("127.0.0.1", 6379);
    int status = EX_OK;

    if (redis == NULL || redis->err) {
        fprintf(stderr, "%s\n", redis ? redis->errstr : "out of memory");
        status = EX_UNAVAILABLE;
    }
    for (size_t i = 0; status == EX_OK && i < sizeof steps / sizeof *steps; i++) {
        status = steps[i](redis);
    }
    redisFree(redis);
    return status;
}
