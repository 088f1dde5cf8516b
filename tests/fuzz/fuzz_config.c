/* Any bytes as a configuration: the result is a config that keeps its own rules, or errors, one
 * per line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/file/load.h"
#include "config/types/scalar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_config(const struct config *config)
{
    int64_t margin_ms = config->queue.lease_ms / 20;

    check(config->queue.name && config->queue.stream);
    check(config->queue.concurrency >= 1 && config->queue.scan_ms > 0);
    check(config->queue.lease_ms >= 1000);
    check(config->task.kill_grace_ms + margin_ms <= config->queue.lease_ms / 2);
    check(config_codes_has(&config->retry.success, 0));
    for (int code = 0; code < 256; code++) {
        struct config_rule rule = config->retry.exits.of[code];

        check(!config_codes_has(&config->retry.success, code) ||
              !config_codes_has(&config->retry.permanent, code));
        check(code != 0 || rule.kind == CONFIG_RULE_NONE);
        check(rule.most >= 0 && (rule.most == 0 || rule.kind == CONFIG_RULE_RETRY));
        check(rule.kind != CONFIG_RULE_NONE || !config_codes_has(&config->retry.permanent, code));
    }
}

/* A config that is merged with itself does not change, and needs no restart. */
static void check_merge(const uint8_t *data, size_t size, const struct config *config)
{
    struct config *again;
    struct buffer text = BUFFER_INIT;

    check(config_parse("f", (const char *)data, size, &again, &text) == 0);
    again = config_merge(config, again, 60000, &text);
    check(again && text.size == 0);
    check_config(again);
    config_free(again);
    buffer_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config *config;
    struct buffer errors = BUFFER_INIT;

    if (config_parse("f", (const char *)data, size, &config, &errors) == 0) {
        check(errors.size == 0);
        check_config(config);
        check_merge(data, size, config);
        config_free(config);
    } else {
        check(!config && errors.size > 0);
        check(memcmp(errors.data, "f:", 2) == 0 && errors.data[errors.size - 1] == '\n');
        for (size_t i = 0; i + 1 < errors.size; i++) {
            check(errors.data[i] != '\n' || errors.data[i + 1] == 'f');
        }
    }
    buffer_free(&errors);
    return 0;
}
