/* Goal: from the answers of sentinels and Cluster nodes the right server is taken, and from
 * anything else none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <hiredis/hiredis.h>

#include "base/hash_slot.h"
#include "redis/server/endpoint.h"

#define COUNT(list) (sizeof list / sizeof((list)[0]))

static redisReply text_of(const char *text)
{
    return (redisReply){.type = REDIS_REPLY_STRING, .str = (char *)text, .len = strlen(text)};
}

static const char nodes[] =
    "07c37df 127.0.0.1:30004@31004,hostname4 slave e7d1eec 0 1426238317239 4 connected\n"
    "67ed2db 127.0.0.1:30002@31002,hostname2 master - 0 1426238316232 2 connected 5461-10922\n"
    "6ec2392 ::1:30003@31003 master - 0 1426238318243 3 connected 10923-16382 [5461-<-67ed2db]\n"
    "e7d1eec :30001@31001 myself,master - 0 0 17 connected 0-5459 16383 [5460->-6ec2392]\n"
    "9ec2392 127.0.0.1:30009@31009 master,fail - 0 1426238318243 9 disconnected 5460\n"
    "1ec2392 :0@0 slave,noaddr e7d1eec 0 1426238318243 0 disconnected\n";

static void reads_nodes(void **state)
{
    (void)state;
    static const struct {
        int slot;
        const char *host;
        int64_t port, epoch;
    } cases[] = {{5461, "127.0.0.1", 30002, 2}, {10922, "127.0.0.1", 30002, 2},
                 {10923, "::1", 30003, 3},      {0, "asked", 30001, 17},
                 {16383, "asked", 30001, 17},   {5460, "127.0.0.1", 30009, 9}};
    redisReply reply = text_of(nodes);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct endpoint endpoint = {0};
        assert_int_equal(endpoint_read_nodes(&reply, cases[i].slot, "asked", &endpoint), 0);
        assert_string_equal(endpoint.host, cases[i].host);
        assert_int_equal(endpoint.port, cases[i].port);
        assert_int_equal(endpoint.epoch, cases[i].epoch);
    }
}

static void reads_nodes_without_an_owner(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int result;
    } cases[] = {
        {"", 1},
        {"\n\n", 1},
        {"a 127.0.0.1:1@2 master - 0 0 1 connected\n", 1},
        {"a 127.0.0.1:1@2 master - 0 0 1 connected [7->-b]\n", 1},
        {"a 127.0.0.1:1@2 slave b 0 0 1 connected 7\n", 1},
        {"a 127.0.0.1:1@2 master - 0 0 1 connected 8-9 -7 7- 1x-9\n", 1},
        {"a 127.0.0.1:1@2 master\n", -1},
        {"a 127.0.0.1:1 master - 0 0 1 connected 7\n", -1},
        {"a 127.0.0.1@2 master - 0 0 1 connected 7\n", -1},
        {"a 127.0.0.1:0@2 master - 0 0 1 connected 7\n", -1},
        {"a 127.0.0.1:65536@2 master - 0 0 1 connected 7\n", -1},
        {"a 127.0.0.1:1@2 master - 0 0 x connected 7", -1},
        {"a 127.0.0.1:1@2 masterly,is-master - 0 0 1 connected 7", 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct endpoint endpoint = {0};
        redisReply reply = text_of(cases[i].text);
        assert_int_equal(endpoint_read_nodes(&reply, 7, "asked", &endpoint), cases[i].result);
    }
    struct endpoint endpoint = {0};
    redisReply number = {.type = REDIS_REPLY_INTEGER};
    assert_int_equal(endpoint_read_nodes(&number, 7, "asked", &endpoint), -1);
}

/* Goal: known nodes are listed, with the one that was asked, and no more than fit. */
static void lists_nodes(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        int64_t port;
    } there[] = {{"127.0.0.1", 30004}, {"127.0.0.1", 30002}, {"::1", 30003}, {"asked", 30001}};
    redisReply reply = text_of(nodes), number = {.type = REDIS_REPLY_INTEGER};
    struct endpoint list[8];
    assert_int_equal(endpoint_list_nodes(&reply, "asked", list, COUNT(list)), COUNT(there));
    for (size_t i = 0; i < COUNT(there); i++) {
        assert_string_equal(list[i].host, there[i].host);
        assert_int_equal(list[i].port, there[i].port);
    }
    assert_int_equal(endpoint_list_nodes(&reply, "asked", list, 2), 2);
    assert_int_equal(endpoint_list_nodes(&number, "asked", list, COUNT(list)), 0);
    reply =
        text_of("\n\na 127.0.0.1:1@2 master\nb 127.0.0.1:1@2 master,handshake - 0 0 1 connected\n"
                "c 127.0.0.1:7@2 master,fail? - 0 0 1 connected");
    assert_int_equal(endpoint_list_nodes(&reply, "asked", list, COUNT(list)), 1);
    assert_int_equal(list[0].port, 7);
}

static void reads_a_master(void **state)
{
    (void)state;
    struct endpoint endpoint = {0};
    redisReply host = text_of("redis-1.example.org"), port = text_of("6379"), wrong = text_of("x");
    redisReply *good[] = {&host, &port}, *bad[] = {&host, &wrong};
    redisReply nil = {.type = REDIS_REPLY_NIL};
    redisReply reply = {.type = REDIS_REPLY_ARRAY, .elements = 2, .element = good};
    assert_int_equal(endpoint_read_master(&nil, &endpoint), 1);
    assert_int_equal(endpoint_read_master(&host, &endpoint), -1);
    assert_int_equal(endpoint_read_master(&reply, &endpoint), 0);
    assert_string_equal(endpoint.host, "redis-1.example.org");
    assert_int_equal(endpoint.port, 6379);
    reply.element = bad;
    assert_int_equal(endpoint_read_master(&reply, &endpoint), -1);
    reply.elements = 1;
    assert_int_equal(endpoint_read_master(&reply, &endpoint), -1);
}

static void reads_epoch_and_role(void **state)
{
    (void)state;
    redisReply name = text_of("name"), master = text_of("master"), epoch = text_of("config-epoch"),
               value = text_of("42");
    redisReply *record[] = {&name, &epoch, &epoch, &value, &epoch};
    redisReply reply = {.type = REDIS_REPLY_ARRAY, .elements = 5, .element = record};
    assert_int_equal(endpoint_read_epoch(&reply), 42);
    reply.elements = 3;
    assert_int_equal(endpoint_read_epoch(&reply), 0);
    assert_int_equal(endpoint_read_epoch(&name), 0);

    assert_false(endpoint_read_role(&reply));
    assert_false(endpoint_read_role(&master));
    record[0] = &master;
    assert_true(endpoint_read_role(&reply));
}

/* As redis-cli CLUSTER KEYSLOT says. */
static void knows_slots(void **state)
{
    (void)state;
    assert_int_equal(hash_slot_of("123456789"), 12739);
    assert_int_equal(hash_slot_of("emails"), 3728);
    assert_int_equal(hash_slot_of("{emails}:dead"), 3728);
    assert_int_equal(hash_slot_of("a{emails}b{c}"), 3728);
    assert_int_equal(hash_slot_of(""), 0);
    assert_int_not_equal(hash_slot_of("{}emails"), 3728);
    assert_true(hash_slot_is_tagged("x{y}"));
    assert_false(hash_slot_is_tagged("x{}y{z}"));
    assert_false(hash_slot_is_tagged("x}y{z"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_nodes),          cmocka_unit_test(reads_nodes_without_an_owner),
        cmocka_unit_test(lists_nodes),          cmocka_unit_test(reads_a_master),
        cmocka_unit_test(reads_epoch_and_role), cmocka_unit_test(knows_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
