/* Discovers the server for a caller that waits, on an event loop of its own. */
#include <ev.h>
#include <stdio.h>

#include "redis/server/discovery.h"

struct finding {
    struct ev_loop *loop;
    struct endpoint *endpoint;
    enum redis_error *error;
    char *why;
    size_t why_size;
};

static void on_found(void *context, const struct endpoint *endpoint, enum redis_error error,
                     const char *why)
{
    struct finding *finding = context;
    *finding->error = error;
    (void)snprintf(finding->why, finding->why_size, "%s", why);
    if (endpoint) {
        *finding->endpoint = *endpoint;
    }
    ev_break(finding->loop, EVBREAK_ALL);
}

int discovery_find(const struct config_redis *config, struct endpoint *endpoint,
                   enum redis_error *error, char *why, size_t why_size)
{
    struct finding finding = {
        .endpoint = endpoint, .error = error, .why = why, .why_size = why_size};
    const struct discovery_events events = {.told = on_found, .context = &finding};
    struct discovery *discovery = NULL;
    *error = REDIS_ERROR_NO_MEMORY;
    (void)snprintf(why, why_size, "out of memory");
    finding.loop = ev_loop_new(EVFLAG_AUTO);
    if (finding.loop) {
        discovery = discovery_new(finding.loop, config, "leat:discovery", &events);
    }
    if (discovery) {
        discovery_ask(discovery);
        (void)ev_run(finding.loop, 0);
    }
    discovery_free(discovery);
    if (finding.loop) {
        ev_loop_destroy(finding.loop);
    }
    return *error == REDIS_ERROR_NONE ? 0 : -1;
}
