/* Goal: each part of the URL of a Redis server is parsed, each malformed part has its error, and no
 * error repeats a part of the URL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/types/url.h"

static const char *shown(const char *text)
{
    return text ? text : "-";
}

/* expected: "HOST PORT SOCKET USER PASSWORD DB TLS", with - for a missing part. */
static void try_url(const char *url, const char *expected)
{
    struct config_redis redis = {0};
    struct buffer why = BUFFER_INIT;
    char found[256];
    if (url_parse(url, &redis, &why) != 0) {
        fail_msg("%s: refused: %.*s", url, (int)why.size, why.data);
    }
    assert_int_equal(why.size, 0);
    (void)snprintf(found, sizeof found, "%s %lld %s %s %s %lld %s", shown(redis.host),
                   (long long)redis.port, shown(redis.socket), shown(redis.user),
                   shown(redis.password), (long long)redis.db, redis.tls ? "tls" : "plain");
    assert_string_equal(found, expected);
    url_clear(&redis);
    buffer_free(&why);
}

static void try_refused(const char *url, const char *reason)
{
    struct config_redis redis = {0};
    struct buffer why = BUFFER_INIT;
    if (url_parse(url, &redis, &why) == 0) {
        fail_msg("%s: taken", url);
    }
    assert_int_equal(buffer_append(&why, "", 1), 0);
    if (!strstr(why.data, reason)) {
        fail_msg("%s: %s; expected: %s", url, why.data, reason);
    }
    assert_null(strstr(why.data, "SECRET"));
    url_clear(&redis);
    buffer_free(&why);
}

static void tcp(void **state)
{
    (void)state;
    try_url("redis://h", "h 6379 - - - 0 plain");
    try_url("redis://h/", "h 6379 - - - 0 plain");
    try_url("redis://web-1.example.net:7000/3", "web-1.example.net 7000 - - - 3 plain");
    try_url("REDISS://h:1", "h 1 - - - 0 tls");
    try_url("redis://h?db=65535", "h 6379 - - - 65535 plain");
    try_url("redis://h/?db=2", "h 6379 - - - 2 plain");
    try_url("redis://[::1]", "::1 6379 - - - 0 plain");
    try_url("redis://[fe80::1%25eth0]:7000/1", "fe80::1%eth0 7000 - - - 1 plain");
}

static void users(void **state)
{
    (void)state;
    try_url("redis://me@h", "h 6379 - me - 0 plain");
    try_url("redis://me:pw@h:7000/2", "h 7000 - me pw 2 plain");
    try_url("redis://:pw@h", "h 6379 - - pw 0 plain");
    try_url("redis://me:@h", "h 6379 - me - 0 plain");
    try_url("redis://@h", "h 6379 - - - 0 plain");
    try_url("redis://m%65:a%2Fb%3ac%40d%23%25@h", "h 6379 - me a/b:c@d#% 0 plain");
    try_url("redis://me:a:b@c@h", "h 6379 - me a:b@c 0 plain");
    try_url("redis://:\xc3\xa9%C3%A9@h", "h 6379 - - \xc3\xa9\xc3\xa9 0 plain");
}

static void sockets(void **state)
{
    (void)state;
    try_url("unix:///run/redis.sock", "- 6379 /run/redis.sock - - 0 plain");
    try_url("unix:/run/redis.sock?db=4", "- 6379 /run/redis.sock - - 4 plain");
    try_url("unix://me:pw@/run/a%20b@c", "- 6379 /run/a b@c me pw 0 plain");
}

/* A longer path than the kernel takes is refused, and not cut to the path of another socket. */
static void long_sockets(void **state)
{
    (void)state;
    char url[160], expected[160], path[109];
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    path[107] = '\0';
    (void)snprintf(url, sizeof url, "unix://%s?db=1", path);
    (void)snprintf(expected, sizeof expected, "- 6379 %s - - 1 plain", path);
    try_url(url, expected);
    path[107] = 'x';
    path[108] = '\0';
    (void)snprintf(url, sizeof url, "unix://%s?db=1", path);
    try_refused(url, "more than 107 bytes");
}

static void malformed_parts(void **state)
{
    (void)state;
    try_refused("", "does not begin with");
    try_refused("SECRET", "does not begin with");
    try_refused("http://u:SECRET@h", "does not begin with");
    try_refused("unix:SECRET", "does not begin with");
    try_refused("redis://h\n", "white space");
    try_refused("redis://:SECRET x@h", "white space");
    try_refused("redis://:SECRET#x@h", "write %23");
    try_refused("redis://:SECRET%zz@h", "two hexadecimal digits");
    try_refused("redis://:SECRET%4@h", "two hexadecimal digits");
    try_refused("redis://:SECRET%00@h", "two hexadecimal digits");
    try_refused("redis://:SECRET/x@h", "an @ follows the host");
    try_refused("redis://:x?SECRET@h", "an @ follows the host");
    try_refused("redis://u%20SECRET:x@h", "the user name contains white space");
    try_refused("redis://", "has no host");
    try_refused("redis:///0", "has no host");
    try_refused("redis://:SECRET@", "has no host");
    try_refused("redis://me:SECRET", "the port is not");
    try_refused("redis://h:", "the port is not");
    try_refused("redis://h:0", "the port is not");
    try_refused("redis://h:65536", "the port is not");
    try_refused("redis://h:-1", "the port is not");
    try_refused("redis://SE$CRET", "the host is neither");
    try_refused("redis://[::1", "missing ]");
    try_refused("redis://[::1]x", "text after the ]");
    try_refused("redis://[]", "has no host");
    try_refused("redis://[SECRET!]", "the host is neither");
    try_refused("redis://h/SECRET", "the database is not");
    try_refused("redis://h/65536", "the database is not");
    try_refused("redis://h?db=", "the database is not");
    try_refused("redis://h/1?db=1", "given twice");
    try_refused("redis://h?SECRET=1", "the only parameter");
    try_refused("redis://h?db=1&db=2", "the only parameter");
    try_refused("unix:///", "absolute path");
    try_refused("unix://", "absolute path");
    try_refused("unix://SECRET/run/x", "absolute path");
    try_refused("unix://u:SECRET@h/run/x", "absolute path");
    try_refused("unix:///run/x?SECRET", "the only parameter");
}

/* Previous strings are wiped, even if the new URL is not valid. */
static void used_again(void **state)
{
    (void)state;
    struct config_redis redis = {0};
    struct buffer why = BUFFER_INIT;
    assert_int_equal(url_parse("redis://u:p@h/3", &redis, &why), 0);
    assert_int_equal(url_parse("unix:/x", &redis, &why), 0);
    assert_null(redis.host);
    assert_null(redis.user);
    assert_null(redis.password);
    assert_int_equal(redis.db, 0);
    assert_int_equal(url_parse("x", &redis, &why), -1);
    assert_null(redis.socket);
    url_clear(&redis);
    buffer_free(&why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp),
        cmocka_unit_test(users),
        cmocka_unit_test(sockets),
        cmocka_unit_test(long_sockets),
        cmocka_unit_test(malformed_parts),
        cmocka_unit_test(used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
