/*
 * Names this worker's incarnation, and writes its heartbeat record.
 */
#include "daemon/heartbeat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/escape.h"

#define RATE_MEMORY_S 60.0
#define RATE_LEAST_S 0.5

int heartbeat_init(struct heartbeat *heartbeat)
{
    uint64_t nonce;
    *heartbeat =
        (struct heartbeat){.started_wall_ms = clock_wall_ms(), .counted_ns = clock_boot_ns()};
    if (worker_name_host(heartbeat->host) ||
        getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce) {
        return -1;
    }
    srand48((long)(nonce >> 32)); /* for jitter: workers started together must not act in step */
    int size = snprintf(heartbeat->consumer, sizeof heartbeat->consumer, "%s:%ld:%08" PRIx32,
                        heartbeat->host, (long)getpid(), (uint32_t)nonce);
    errno = ENAMETOOLONG;
    return size > 0 && (size_t)size < sizeof heartbeat->consumer ? 0 : -1;
}

void heartbeat_free(struct heartbeat *heartbeat)
{
    buffer_free(&heartbeat->text);
}

static void update_rate(struct heartbeat *heartbeat)
{
    int64_t now_ns = clock_boot_ns();
    uint64_t ended = heartbeat->ended[VERDICT_SUCCESS] + heartbeat->ended[VERDICT_RETRY] +
                     heartbeat->ended[VERDICT_DEAD] + heartbeat->ended[VERDICT_CANCELLED];
    double span = (double)(now_ns - heartbeat->counted_ns) / (double)CLOCK_NS_PER_S;
    if (span > RATE_LEAST_S) {
        double share = span / (span + RATE_MEMORY_S);
        heartbeat->rate += ((double)(ended - heartbeat->counted) / span - heartbeat->rate) * share;
        heartbeat->counted = ended;
        heartbeat->counted_ns = now_ns;
    }
}

/* Appends a member whose value may have any bytes. An error is kept in text.failed. */
static void add_text(struct buffer *text, const char *name, const char *value)
{
    struct buffer escaped = BUFFER_INIT;
    (void)buffer_printf(text, "\"%s\":\"", name);
    text->failed |= escape_append(&escaped, value, strlen(value)) != 0;
    for (size_t i = 0; i < escaped.size; i++) {
        const char *special = strchr("\"\\", escaped.data[i]);
        (void)buffer_append(text, "\\", special && *special ? 1 : 0);
        (void)buffer_append(text, &escaped.data[i], 1);
    }
    (void)buffer_append_text(text, "\",");
    buffer_free(&escaped);
}

const char *heartbeat_text(struct heartbeat *heartbeat, size_t slots, size_t capacity,
                           size_t running, int64_t kill_grace_ms, const char *state,
                           const char *trouble, const struct token_list *unclaimed)
{
    update_rate(heartbeat);
    buffer_clear(&heartbeat->text);
    (void)buffer_printf(
        &heartbeat->text, /* an error is kept in text.failed */
        "{\"host\":\"%s\",\"pid\":%ld,\"version\":\"" LEAT_VERSION
        "\",\"slots\":%zu,\"capacity\":%zu,\"running\":%zu,\"state\":\"%s\",\"started_ms\":%" PRId64
        ",\"kill_grace_ms\":%" PRId64 ",\"succeeded\":%" PRIu64 ",\"retried\":%" PRIu64
        ",\"dead\":%" PRIu64 ",\"cancelled\":%" PRIu64 ",\"rate\":%.3f,\"fence\":%" PRId64
        ",\"joined\":%" PRId64 ",\"registration\":%" PRId64 ",\"lease_ms\":%" PRId64 ",",
        heartbeat->host, (long)getpid(), slots, capacity, running, state,
        heartbeat->started_wall_ms, kill_grace_ms, heartbeat->ended[VERDICT_SUCCESS],
        heartbeat->ended[VERDICT_RETRY], heartbeat->ended[VERDICT_DEAD],
        heartbeat->ended[VERDICT_CANCELLED], heartbeat->rate, heartbeat->fence, heartbeat->joined,
        heartbeat->registration, heartbeat->lease_ms);
    if (*trouble) {
        add_text(&heartbeat->text, "trouble", trouble);
    }
    figures_append(&heartbeat->figures, &heartbeat->text);
    (void)buffer_append_text(&heartbeat->text, "\"unclaimed\":[");
    for (size_t i = 0; i < unclaimed->count; i++) {
        (void)buffer_printf(&heartbeat->text, "%s\"%s\"", i > 0 ? "," : "", unclaimed->tokens[i]);
    }
    (void)buffer_append(&heartbeat->text, "]}", sizeof "]}");
    return heartbeat->text.failed || unclaimed->failed ? NULL : heartbeat->text.data;
}
