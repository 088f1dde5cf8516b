/*
 * A producer in C with hiredis. Where REDIS_SOCKET is not set, Redis is that of this host.
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

enum { KEY_COUNT = 9, MAX_ARGS = 64 };
static const char *const keys[KEY_COUNT] = {
    "thumbnails",           "{thumbnails}:bell",  "{thumbnails}:waiting",
    "{thumbnails}:delayed", "{thumbnails}:names", "{thumbnails}:conf",
    "{thumbnails}:stats",   "{thumbnails}:lanes", "{thumbnails}:laned",
};

/* A call that grows argument by argument. Points to bytes that must live until it is sent. */
struct call {
    const char *args[MAX_ARGS];
    size_t sizes[MAX_ARGS];
    int count;
};

static void add_bytes(struct call *call, const char *bytes, size_t size)
{
    if (call->count >= MAX_ARGS) {
        abort();
    }
    call->args[call->count] = bytes;
    call->sizes[call->count++] = size;
}

static void add(struct call *call, const char *text)
{
    add_bytes(call, text, strlen(text));
}

static void begin_enqueue(struct call *call)
{
    call->count = 0;
    add(call, "FCALL");
    add(call, "leat_enqueue");
    add(call, "9");
    for (int i = 0; i < KEY_COUNT; i++) {
        add(call, keys[i]);
    }
}

/* due is "0", "+MS" or unix ms; count pairs of field name and value must follow, by add. */
static void begin_task(struct call *call, const char *due, const char *count)
{
    add(call, due);
    add(call, count);
}

/* Sends, and prints "new" or "exists" and the id of each task. All or nothing. Returns EX_OK,
 * EX_DATAERR (a task is wrong: do not repeat it), EX_TEMPFAIL (full: try again later) or
 * EX_UNAVAILABLE. */
static int enqueue(redisContext *redis, struct call *call)
{
    int status = EX_OK;
    redisReply *reply = redisCommandArgv(redis, call->count, call->args, call->sizes);

    if (!reply) {
        fprintf(stderr, "%s\n", redis->errstr);
        return EX_UNAVAILABLE;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        fprintf(stderr, "%s\n", reply->str);
        status = strncmp(reply->str, "REFUSED", 7) == 0 ? EX_DATAERR
                 : strncmp(reply->str, "FULL", 4) == 0  ? EX_TEMPFAIL
                                                        : EX_UNAVAILABLE;
    } else {
        /* behind the protocol's number */
        for (size_t i = 1; i + 1 < reply->elements; i += 2) {
            printf("%s %s\n", reply->element[i]->str, reply->element[i + 1]->str);
        }
    }
    freeReplyObject(reply);
    return status;
}

static int add_plain(redisContext *redis)
{
    redisReply *reply = redisCommand(redis, "XADD thumbnails * command %s SIZE 640",
                                     "echo plain $TASK_SIZE >> done");

    if (!reply || reply->type == REDIS_REPLY_ERROR) {
        fprintf(stderr, "%s\n", reply ? reply->str : redis->errstr);
        freeReplyObject(reply);
        return EX_UNAVAILABLE;
    }
    printf("%s\n", reply->str);
    freeReplyObject(reply);
    return EX_OK;
}

/* Must not be there twice; in a lane, in half a second. */
static int add_unique(redisContext *redis)
{
    struct call call;

    begin_enqueue(&call);
    begin_task(&call, "+500", "3");
    add(&call, "command");
    add(&call, "echo index >> done");
    add(&call, "unique");
    add(&call, "index");
    add(&call, "lane");
    add(&call, "albums");
    return enqueue(redis, &call);
}

/* Three in one step; the last one gets any bytes on its stdin. */
static int add_batch(redisContext *redis)
{
    static const char bytes[] = {'\0', '\1', '\376', '\377', '\n'};
    struct call call;

    begin_enqueue(&call);
    begin_task(&call, "0", "1");
    add(&call, "command");
    add(&call, "echo two >> done");
    begin_task(&call, "0", "2");
    add(&call, "command");
    add(&call, "echo three $TASK_SIZE >> done");
    add(&call, "SIZE");
    add(&call, "64");
    begin_task(&call, "0", "2");
    add(&call, "command");
    add(&call, "cat > bytes");
    add(&call, "payload");
    add_bytes(&call, bytes, sizeof bytes);
    return enqueue(redis, &call);
}

/* One that cannot be taken as it is. */
static int add_wrong(redisContext *redis)
{
    struct call call;
    int status;

    begin_enqueue(&call);
    begin_task(&call, "0", "2");
    add(&call, "command");
    add(&call, "echo never >> done");
    add(&call, "result_ttl");
    add(&call, "soon");
    status = enqueue(redis, &call);
    if (status != EX_DATAERR) {
        return status;
    }
    printf("not taken: %d\n", status);
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

/* Appends a netstring; aborts where it does not fit. */
static void put(char form[FORM_SIZE], size_t *size, const char *text)
{
    int length = snprintf(form + *size, FORM_SIZE - *size, "%zu:%s,", strlen(text), text);

    if (length < 0 || (size_t)length >= FORM_SIZE - *size) {
        abort();
    }
    *size += (size_t)length;
}

/* Writes leat1:NAME:NONCE:MAC of these fields, not_after among them, which are then sorted. Values
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
    if (!HMAC(EVP_sha256(), key, (int)strlen(key), (const unsigned char *)form, size, mac, NULL)) {
        return -1;
    }
    for (size_t i = 0; i < sizeof mac; i++) {
        snprintf(hex + 2 * i, 3, "%02x", mac[i]);
    }
    snprintf(signature, 256, "leat1:%s:%s:%s", name, nonce, hex);
    return 0;
}

/* [security] key_files = 2026a:FILE */
static int add_signed(redisContext *redis)
{
    const char *path = getenv("LEAT_KEY");
    char key[4096], signature[256], not_after[24];
    struct field fields[] = {{"command", "echo signed $TASK_SIZE >> done"},
                             {"SIZE", "32"},
                             {"a", ""},
                             {"not_after", not_after}};
    struct call call = {.count = 0};
    FILE *file;
    redisReply *reply;

    if (!path) {
        return EX_OK;
    }
    file = fopen(path, "r");
    if (!file || !fgets(key, sizeof key, file)) {
        perror(path);
        return EX_NOINPUT;
    }
    fclose(file);
    key[strcspn(key, "\n")] = '\0';
    snprintf(not_after, sizeof not_after, "%lld", (long long)time(NULL) + 86400);
    if (sign(fields, sizeof fields / sizeof *fields, "thumbnails", "2026a", key, signature) != 0) {
        return EX_SOFTWARE;
    }
    OPENSSL_cleanse(key, sizeof key);

    add(&call, "XADD");
    add(&call, "thumbnails");
    add(&call, "*");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        add(&call, fields[i].name);
        add(&call, fields[i].value);
    }
    add(&call, "signature");
    add(&call, signature);
    reply = redisCommandArgv(redis, call.count, call.args, call.sizes);
    freeReplyObject(reply);
    return reply ? EX_OK : EX_UNAVAILABLE;
}

int main(void)
{
    static int (*const steps[])(redisContext *) = {add_plain, add_unique, add_unique,
                                                   add_batch, add_wrong,  add_signed};
    const char *path = getenv("REDIS_SOCKET");
    redisContext *redis = path ? redisConnectUnix(path) : redisConnect("127.0.0.1", 6379);
    int status = EX_OK;

    if (!redis || redis->err) {
        fprintf(stderr, "%s\n", redis ? redis->errstr : "out of memory");
        status = EX_UNAVAILABLE;
    }
    for (size_t i = 0; status == EX_OK && i < sizeof steps / sizeof *steps; i++) {
        status = steps[i](redis);
    }
    redisFree(redis);
    return status;
}
