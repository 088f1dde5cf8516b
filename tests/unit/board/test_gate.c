/* Which headers of a request the board accepts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "board/gate.h"

/* Goal: addresses and localhost are the board's names, with or without a port, and nothing else. */
static void hosts(void **state)
{
    static const char *const good[] = {"localhost",     "LocalHost:1", "127.0.0.1",
                                       "10.0.0.1:9464", "[::1]",       "[fe80::1]:65535"};
    static const char *const bad[] = {"",
                                      ":",
                                      ":80",
                                      "example.org",
                                      "localhost:",
                                      "localhost.",
                                      "127.1",
                                      "1.2.3.4.5",
                                      "127.0.0.1:123456",
                                      "[",
                                      "[]",
                                      "[::1",
                                      "[::1]80",
                                      "[::1]:",
                                      "[::1]:x",
                                      "[127.0.0.1]",
                                      "::1",
                                      "localhost:1:2"};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(gate_allows_host(good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(gate_allows_host(bad[i]));
    }
    assert_false(gate_allows_host(NULL));
}

/* Goal: only the whole token after the scheme, in any case of letters of the scheme, is accepted.
 */
static void tokens(void **state)
{
    (void)state;
    assert_true(gate_allows_token("Bearer secret", "secret"));
    assert_true(gate_allows_token("bearer secret", "secret"));
    assert_false(gate_allows_token(NULL, "secret"));
    assert_false(gate_allows_token("", "secret"));
    assert_false(gate_allows_token("Bearer ", "secret"));
    assert_false(gate_allows_token("Bearer secre", "secret"));
    assert_false(gate_allows_token("Bearer secrets", "secret"));
    assert_false(gate_allows_token("Bearer Secret", "secret"));
    assert_false(gate_allows_token("Basic secret", "secret"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts),
        cmocka_unit_test(tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
