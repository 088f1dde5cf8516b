/*
 * Parses the URL of a Redis server. No message repeats a part of the URL: if the password contains
 * a character that should have been encoded, any part may belong to the password.
 */
#include "config/types/url.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "config/types/addresses.h"
#include "config/types/strings.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

enum { PORT_DEFAULT = 6379, PORT_MOST = 65535, DB_MOST = 65535 };

/* A part of the URL, without the byte at `end`. */
struct part {
    const char *start, *end;
};

static int refuse(struct buffer *why, const char *reason)
{
    (void)buffer_append_text(why, reason); /* a failure sets why->failed, which the caller checks */
    return -1;
}

/* ---- percent-encoding */

static int hex_digit(char letter)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *found = letter != '\0' ? strchr(digits, letter) : NULL;

    return found ? (int)(found - digits) % 16 : -1;
}

/* Returns the byte that the escape at `at` stands for, or -1. */
static int escaped(const char *at, const char *end)
{
    int high = end - at > 2 ? hex_digit(at[1]) : -1;
    int low = high >= 0 ? hex_digit(at[2]) : -1;

    return low >= 0 && (high | low) != 0 ? high * 16 + low : -1;
}

/* Decodes the part into *text, which must be NULL. Returns 0, or -1 with the reason in why. */
static int decode(struct part part, char **text, struct buffer *why)
{
    size_t used = 0;

    *text = calloc(1, (size_t)(part.end - part.start) + 1);
    if (!*text) {
        why->failed = true;
        return -1;
    }
    for (const char *at = part.start; at < part.end; at++) {
        int byte = *at == '%' ? escaped(at, part.end) : *at;

        if (byte < 0 && *at == '%') {
            return refuse(why, "a % is not followed by two hexadecimal digits other than 00; "
                               "write %25 for a %");
        }
        (*text)[used++] = (char)byte;
        at += *at == '%' ? 2 : 0;
    }
    return 0;
}

static int decode_number(struct part part, int64_t low, int64_t high, int64_t *number,
                         const char *reason, struct buffer *why)
{
    char *text = NULL;
    int result = decode(part, &text, why);

    if (result == 0 && units_parse_integer(text, low, high, number) != 0) {
        result = refuse(why, reason);
    }
    strings_free(&text);
    return result;
}

/* ---- the parts */

static struct part cut_until(const char **at, const char *ends)
{
    struct part part = {.start = *at, .end = *at + strcspn(*at, ends)};

    *at = part.end;
    return part;
}

static const char *find_in(struct part part, char letter)
{
    return memchr(part.start, letter, (size_t)(part.end - part.start));
}

/* Parses the user and the password, which the last @ ends. */
static const char *find_at(struct part authority)
{
    return memrchr(authority.start, '@', (size_t)(authority.end - authority.start));
}

/* An empty user means Redis's default user, an empty password means none. */
static int take_user(struct part part, struct config_redis *redis, struct buffer *why)
{
    const char *colon = find_in(part, ':');
    struct part user = {part.start, colon ? colon : part.end};
    struct part password = {colon ? colon + 1 : part.end, part.end};

    if (user.start < user.end && decode(user, &redis->user, why) != 0) {
        return -1;
    }
    if (password.start < password.end && decode(password, &redis->password, why) != 0) {
        return -1;
    }
    return redis->user && strpbrk(redis->user, " \t\r\n")
               ? refuse(why, "the user name contains white space; remove it")
               : 0;
}

static int take_port(struct part part, struct config_redis *redis, struct buffer *why)
{
    return decode_number(part, 1, PORT_MOST, &redis->port,
                         "the port is not a number from 1 to 65535; if the URL has a user or "
                         "password, put an @ between it and the host",
                         why);
}

static int take_host(struct part part, bool bracketed, struct config_redis *redis,
                     struct buffer *why)
{
    size_t size;

    if (part.start == part.end) {
        return refuse(why, "the URL has no host; write redis://HOST[:PORT][/DB]");
    }
    if (decode(part, &redis->host, why) != 0) {
        return -1;
    }
    size = strlen(redis->host);
    if (size >= ADDRESSES_HOST_SIZE) {
        return refuse(why, "the host has more than 255 characters; shorten it");
    }
    if (strspn(redis->host, bracketed ? LETTERS ":.%_-" : LETTERS "._-") != size) {
        return refuse(why, "the host is neither a name, an IPv4 address, nor an IPv6 address in "
                           "brackets; write redis://HOST[:PORT][/DB]");
    }
    return 0;
}

/* Parses HOST[:PORT] or [IPv6][:PORT]. */
static int take_server(struct part part, struct config_redis *redis, struct buffer *why)
{
    bool bracketed = part.start < part.end && *part.start == '[';
    const char *shut = bracketed ? find_in(part, ']') : NULL;
    struct part host = part, rest;
    const char *colon;

    if (bracketed && !shut) {
        return refuse(why, "missing ] after an IPv6 address; add it");
    }
    colon = bracketed ? shut + 1 : find_in(part, ':');
    if (bracketed) {
        host = (struct part){part.start + 1, shut};
    } else if (colon) {
        host.end = colon;
    }
    rest = (struct part){colon ? colon : part.end, part.end};
    if (rest.start < rest.end && *rest.start != ':') {
        return refuse(why, "unexpected text after the ] of an IPv6 address; write [IPv6]:PORT");
    }
    if (take_host(host, bracketed, redis, why) != 0) {
        return -1;
    }
    redis->port = PORT_DEFAULT;
    return rest.start < rest.end ? take_port((struct part){rest.start + 1, rest.end}, redis, why)
                                 : 0;
}

static int take_db(struct part part, struct config_redis *redis, struct buffer *why)
{
    return decode_number(part, 0, DB_MOST, &redis->db,
                         "the database is not a number from 0 to 65535; write /DB after "
                         "HOST[:PORT], or ?db=DB after the path of a socket",
                         why);
}

/* Parses "?db=N", or an empty part. */
static int take_query(const char *at, struct config_redis *redis, struct buffer *why)
{
    static const char db[] = "?db=";

    if (*at == '\0') {
        return 0;
    }
    if (strncmp(at, db, sizeof db - 1) != 0 || strchr(at, '&')) {
        return refuse(why, "the only parameter is db=DB; remove other text after the ?, and write "
                           "%3F for a ? in a name or a password");
    }
    at += sizeof db - 1;
    return take_db((struct part){at, at + strlen(at)}, redis, why);
}

static int parse_tcp(const char *at, struct config_redis *redis, struct buffer *why)
{
    struct part authority = cut_until(&at, "/?"), path;
    const char *user_end = find_at(authority);

    if (strchr(at, '@')) {
        return refuse(why, "an @ follows the host; write %2F for a / and %3F for a ? in a user or "
                           "password");
    }
    if (user_end && take_user((struct part){authority.start, user_end}, redis, why) != 0) {
        return -1;
    }
    if (user_end) {
        authority.start = user_end + 1;
    }
    if (take_server(authority, redis, why) != 0) {
        return -1;
    }
    path = cut_until(&at, "?");
    if (path.end - path.start <= 1) {
        return take_query(at, redis, why);
    }
    if (*at != '\0') {
        return refuse(why, "the database is given twice; remove ?db=DB");
    }
    return take_db((struct part){path.start + 1, path.end}, redis, why);
}

static int parse_unix(const char *at, struct config_redis *redis, struct buffer *why)
{
    struct part authority = {at, at}, path;
    const char *user_end;

    if (strncmp(at, "//", 2) == 0) {
        at += 2;
        authority = cut_until(&at, "/?");
    }
    user_end = find_at(authority);
    if (user_end && take_user((struct part){authority.start, user_end}, redis, why) != 0) {
        return -1;
    }
    path = cut_until(&at, "?");
    if ((user_end ? user_end + 1 : authority.start) != authority.end ||
        path.end - path.start <= 1) {
        return refuse(why, "the URL has no absolute path of a socket; write unix:///PATH[?db=DB]");
    }
    if (decode(path, &redis->socket, why) != 0) {
        return -1;
    }
    if (strlen(redis->socket) >= ADDRESSES_SOCKET_SIZE) {
        return refuse(why,
                      "the path of the socket has more than 107 bytes; use a shorter one, such "
                      "as that of a symbolic link");
    }
    return take_query(at, redis, why);
}

/* True if the URL has no white space and no control character. */
static bool is_clean(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text <= ' ' || *text == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool begins_with(const char *text, const char *scheme)
{
    return strncasecmp(text, scheme, strlen(scheme)) == 0;
}

int url_parse(const char *text, struct config_redis *redis, struct buffer *why)
{
    static const char plain[] = "redis://", secure[] = "rediss://", socket[] = "unix:/";

    url_clear(redis);
    redis->tls = false;
    redis->port = PORT_DEFAULT;
    redis->db = 0;
    if (!is_clean(text)) {
        return refuse(why, "the URL contains white space or a control character; percent-encode "
                           "it, for example a blank as %20");
    }
    if (strchr(text, '#')) {
        return refuse(why, "the URL contains a #; write %23 for a # in a user, password or path");
    }
    if (begins_with(text, plain)) {
        return parse_tcp(text + sizeof plain - 1, redis, why);
    }
    if (begins_with(text, socket)) {
        return parse_unix(text + sizeof socket - 2, redis, why);
    }
    if (!begins_with(text, secure)) {
        return refuse(why, "the URL does not begin with redis://, rediss:// or unix://; write "
                           "redis://HOST[:PORT][/DB] or unix:///PATH[?db=DB]");
    }
    redis->tls = true;
    return parse_tcp(text + sizeof secure - 1, redis, why);
}

void url_clear(struct config_redis *redis)
{
    strings_free(&redis->host);
    strings_free(&redis->socket);
    strings_free(&redis->user);
    strings_free(&redis->password);
}
