/* Goal: any bytes as the headers Host and Authorization are accepted only if they are an address or
 * localhost, and the token. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "board/gate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);

    if (text && gate_allows_host(text)) {
        check(strncasecmp(text, "localhost", 9) == 0 ||
              strspn(text, "0123456789abcdefABCDEF.:[]") == strlen(text));
    }
    if (text && gate_allows_token(text, "token")) {
        check(strlen(text) == 12 && strcmp(text + 7, "token") == 0);
    }
    free(text);
    return 0;
}
