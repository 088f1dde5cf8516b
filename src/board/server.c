/*
 * The web server of the board. One thread does all: microhttpd runs on the event loop, and a
 * request that waits for Redis is suspended until the answer comes.
 */
#include "board/server.h"

#include <ev.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/fd_watch.h"
#include "base/timer.h"
#include "board/ask.h"
#include "board/gate.h"
#include "board/request.h"
#include "board/visitors.h"
#include "queue/shared/limits.h"
#include "view/metrics.h"
#include "view/output_json.h"
#include "view/watch/watched.h"

#define MOST_CONNECTIONS 64
#define HEADER_BYTES 16384 /* of a connection: what it may send before it is refused, and more */
#define MOST_URI 8192 /* bytes of it, and parameters in it, for which that has room in any case */
#define MOST_PARAMETERS 64
#define IDLE_S 20 /* until a silent connection is closed */
#define SAMPLE_S 10.0
#define CHECK_S 3.0
#define MOST_TEXT 200                       /* bytes of a search */
#define PATIENCE_NS (400 * CLOCK_NS_PER_MS) /* for all queues: one that is slow shows as it was */
#define PATIENCE_ONE_NS (3 * CLOCK_NS_PER_S)
#define PATIENCE_STEP_S 0.1
#define TASK_INTERVAL_NS (100 * CLOCK_NS_PER_MS)
#define SEARCH_INTERVAL_NS CLOCK_NS_PER_S

/* A queue, and the question that it answers. */
struct place {
    struct watched *watched;
    bool asked;          /* a question is not answered yet */
    int64_t shown_ns;    /* the last question for a task; 0: none */
    int64_t searched_ns; /* the last search; 0: none */
};

struct route;

struct request {
    struct server *server;
    struct MHD_Connection *connection;
    const struct route *route; /* NULL: not begun */
    struct place *place;       /* NULL: all queues */
    int64_t until_ns;          /* until when it waits for a refresh; 0: it waits for an answer */
    bool waits;                /* it is suspended, and in the list */
    json_t *answer;            /* to the question; owned */
    LIST_ENTRY(request) entries;
};

struct route {
    const char *path;
    bool of_queue; /* needs the parameter queue */
    enum MHD_Result (*begin)(struct request *request);
    enum MHD_Result (*end)(struct request *request); /* after it has waited */
};

struct server {
    struct ev_loop *loop;
    const struct server_settings *settings;
    struct MHD_Daemon *daemon;
    struct fd_watch watch; /* of microhttpd's epoll */
    struct timer turn;     /* when microhttpd has to run at the latest */
    struct timer sample;
    struct timer check;    /* of the connections */
    struct timer patience; /* runs while requests wait */
    struct place *places;
    size_t place_count;
    LIST_HEAD(, request) waiting;
    struct visitors visitors;
};

/* ---- the loop */

/* At its limit of connections, microhttpd stops listening. It only begins again in the run after
 * the one in which connections were closed, so the last run must have closed none. */
static void run(void *context)
{
    struct server *server = context;
    MHD_UNSIGNED_LONG_LONG timeout_ms;
    uint64_t closed;
    bool fine;

    do {
        closed = server->visitors.closed;
        fine = MHD_run(server->daemon) == MHD_YES;
    } while (fine && server->visitors.closed > closed);
    if (fine && MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES) {
        timer_start_ms(&server->turn, (int64_t)timeout_ms);
    } else {
        timer_stop(&server->turn);
    }
}

static void run_soon(struct server *server)
{
    timer_start_ns(&server->turn, 0);
}

/* ---- waiting */

static enum MHD_Result wait_until(struct request *request, int64_t until_ns)
{
    struct server *server = request->server;

    request->until_ns = until_ns;
    request->waits = true;
    LIST_INSERT_HEAD(&server->waiting, request, entries);
    MHD_suspend_connection(request->connection);
    if (!timer_runs(&server->patience)) {
        timer_repeat_s(&server->patience, PATIENCE_STEP_S);
    }
    return MHD_YES;
}

static void resume(struct request *request)
{
    LIST_REMOVE(request, entries);
    request->waits = false;
    MHD_resume_connection(request->connection);
    run_soon(request->server);
}

static bool is_refreshing(const struct request *request)
{
    const struct server *server = request->server;

    if (request->place) {
        return watched_is_refreshing(request->place->watched);
    }
    for (size_t i = 0; i < server->place_count; i++) {
        if (watched_is_refreshing(server->places[i].watched)) {
            return true;
        }
    }
    return false;
}

/* Goes on with the requests that need wait no longer. */
static void settle(void *context)
{
    struct server *server = context;
    struct request *request, *next;
    int64_t now_ns = clock_boot_ns();

    for (request = LIST_FIRST(&server->waiting); request; request = next) {
        next = LIST_NEXT(request, entries);
        if (request->until_ns > 0 && (now_ns >= request->until_ns || !is_refreshing(request))) {
            resume(request);
        }
    }
    if (LIST_EMPTY(&server->waiting)) {
        timer_stop(&server->patience);
    }
}

static void sample(void *context)
{
    struct server *server = context;

    for (size_t i = 0; i < server->place_count; i++) {
        watched_sample(server->places[i].watched);
    }
}

static void check(void *context)
{
    struct server *server = context;

    visitors_end_slow(&server->visitors);
}

/* ---- routes */

static enum MHD_Result end_queues(struct request *request)
{
    const struct server *server = request->server;
    json_t *list = json_array();

    for (size_t i = 0; i < server->place_count; i++) {
        output_push(&list, watched_summary(server->places[i].watched));
    }
    return request_json(request->connection, list);
}

static enum MHD_Result begin_queues(struct request *request)
{
    const struct server *server = request->server;

    for (size_t i = 0; i < server->place_count; i++) {
        watched_refresh(server->places[i].watched, WATCHED_STATUS);
    }
    return is_refreshing(request) ? wait_until(request, clock_boot_ns() + PATIENCE_NS)
                                  : end_queues(request);
}

/* In the format that the client asks for, as Prometheus does. */
static enum MHD_Result end_metrics(struct request *request)
{
    const struct server *server = request->server;
    const char *accept = request_header(request->connection, MHD_HTTP_HEADER_ACCEPT);
    bool open = accept && strstr(accept, "application/openmetrics-text");
    struct metrics_queue *queues = calloc(server->place_count + 1, sizeof *queues);
    struct buffer text = BUFFER_INIT;
    int result = -1;

    for (size_t i = 0; queues && i < server->place_count; i++) {
        const struct watched *watched = server->places[i].watched;
        queues[i] = (struct metrics_queue){.name = watched_name(watched),
                                           .status = watched_status(watched),
                                           .lanes = watched_lanes(watched)};
    }
    if (queues) {
        result = metrics_append(queues, server->place_count,
                                open ? METRICS_OPENMETRICS : METRICS_TEXT, &text);
    }
    free(queues);
    if (result != 0) {
        buffer_free(&text);
        return MHD_NO;
    }
    return request_buffer(request->connection,
                          open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                               : "text/plain; version=0.0.4; charset=utf-8",
                          &text);
}

static enum MHD_Result begin_metrics(struct request *request)
{
    const struct server *server = request->server;

    for (size_t i = 0; i < server->place_count; i++) {
        watched_refresh(server->places[i].watched, WATCHED_LANES);
    }
    return is_refreshing(request) ? wait_until(request, clock_boot_ns() + PATIENCE_ONE_NS)
                                  : end_metrics(request);
}

static enum MHD_Result end_queue(struct request *request)
{
    return request_json(request->connection, watched_page(request->place->watched));
}

static enum MHD_Result begin_queue(struct request *request)
{
    watched_refresh(request->place->watched, WATCHED_ENDED);
    return is_refreshing(request) ? wait_until(request, clock_boot_ns() + PATIENCE_ONE_NS)
                                  : end_queue(request);
}

static enum MHD_Result begin_series(struct request *request)
{
    const char *span = request_parameter(request->connection, "span");
    bool day = span && strcmp(span, "day") == 0;

    if (span && !day && strcmp(span, "hour") != 0) {
        return request_text(request->connection, MHD_HTTP_BAD_REQUEST,
                            "the parameter span is hour or day\n");
    }
    return request_json(request->connection, watched_series(request->place->watched, day));
}

static void on_answered(void *context, json_t *answer)
{
    struct request *request = context;

    request->place->asked = false;
    request->answer = answer;
    resume(request);
}

static enum MHD_Result end_question(struct request *request)
{
    json_t *answer = request->answer;

    if (!answer) {
        return request_text(request->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                            "the queue's Redis does not answer\n");
    }
    request->answer = NULL;
    return request_json(request->connection, answer);
}

typedef int ask_question(struct watched *watched, const char *text, ask_answered *answered,
                         void *context);

/* One question at a time to a queue, and not too many in a second, so that a client cannot keep its
 * Redis busy. */
static enum MHD_Result begin_question(struct request *request, const char *text, size_t most,
                                      int64_t *last_ns, int64_t interval_ns, ask_question *ask)
{
    struct place *place = request->place;
    int64_t now_ns = clock_boot_ns();

    if (!text || !*text || strlen(text) > most) {
        return request_text(request->connection, MHD_HTTP_BAD_REQUEST,
                            "the parameter is missing or too long\n");
    }
    if (place->asked || (*last_ns > 0 && now_ns - *last_ns < interval_ns)) {
        return request_text(request->connection, MHD_HTTP_TOO_MANY_REQUESTS,
                            "too many questions to this queue; ask again\n");
    }
    *last_ns = now_ns;
    if (ask(place->watched, text, on_answered, request) != 0) {
        return end_question(request);
    }
    place->asked = true;
    return wait_until(request, 0);
}

static enum MHD_Result begin_task(struct request *request)
{
    return begin_question(request, request_parameter(request->connection, "id"), QUEUE_MAX_KEY,
                          &request->place->shown_ns, TASK_INTERVAL_NS, ask_task);
}

static enum MHD_Result begin_search(struct request *request)
{
    return begin_question(request, request_parameter(request->connection, "text"), MOST_TEXT,
                          &request->place->searched_ns, SEARCH_INTERVAL_NS, ask_search);
}

static const struct route *find_route(const char *path)
{
    static const struct route routes[] = {
        {"/api/queues", false, begin_queues, end_queues},
        {"/api/queue", true, begin_queue, end_queue},
        {"/api/series", true, begin_series, NULL},
        {"/api/task", true, begin_task, end_question},
        {"/api/search", true, begin_search, end_question},
        {"/metrics", false, begin_metrics, end_metrics},
    };

    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (strcmp(routes[i].path, path) == 0) {
            return &routes[i];
        }
    }
    return NULL;
}

/* ---- requests */

static bool has_token(const struct server *server, struct MHD_Connection *connection)
{
    return server->settings->token &&
           gate_allows_token(request_header(connection, MHD_HTTP_HEADER_AUTHORIZATION),
                             server->settings->token);
}

/* Called before the parameters are parsed. If a connection's memory has no room for them,
 * microhttpd gives no answer until its time is over. No path has to be encoded, and a web server in
 * front that restricts paths must not see another one than the board. */
static void *on_uri(void *context, const char *uri, struct MHD_Connection *connection)
{
    static const char too_long[] = "HTTP/1.1 414 URI Too Long\r\nContent-Type: text/plain\r\n"
                                   "Content-Length: 24\r\nConnection: close\r\n\r\n"
                                   "the address is too long\n",
                      encoded[] = "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n"
                                  "Content-Length: 10\r\nConnection: close\r\n\r\n"
                                  "not found\n";
    size_t parameters = 1;

    (void)context;
    for (const char *at = uri ? strchr(uri, '&') : NULL; at; at = strchr(at + 1, '&')) {
        parameters++;
    }
    if (uri && (parameters > MOST_PARAMETERS || strlen(uri) > MOST_URI)) {
        visitors_refuse(connection, too_long);
    } else if (uri && memchr(uri, '%', strcspn(uri, "?"))) {
        visitors_refuse(connection, encoded);
    }
    return NULL; /* the request has no state yet */
}

/* Sets *found if the header announces a body. Two headers of one name, or a blank behind the name,
 * must not hide a body that a web server in front has passed on: it would be the next request. */
static enum MHD_Result find_body(void *found, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    static const char length[] = MHD_HTTP_HEADER_CONTENT_LENGTH,
                      coding[] = MHD_HTTP_HEADER_TRANSFER_ENCODING;
    bool none =
        strncasecmp(name, coding, sizeof coding - 1) != 0 &&
        (strncasecmp(name, length, sizeof length - 1) != 0 || (value && strcmp(value, "0") == 0));

    (void)kind;
    *(bool *)found |= !none;
    return MHD_YES;
}

/* Returns a status and a text if the request is refused before its body is read, or 0. */
static unsigned refuse(const struct server *server, struct MHD_Connection *connection,
                       const char *method, const char **text)
{
    bool has_body = false;

    if (server->settings->checks_host &&
        !gate_allows_host(request_header(connection, MHD_HTTP_HEADER_HOST))) {
        *text = "use the address of this board, not a name\n";
        return MHD_HTTP_MISDIRECTED_REQUEST;
    }
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        *text = "the board only reads: use GET\n";
        return MHD_HTTP_METHOD_NOT_ALLOWED;
    }
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, find_body, &has_body);
    if (has_body) {
        *text = "no request has a body here\n";
        return MHD_HTTP_CONTENT_TOO_LARGE;
    }
    return 0;
}

static enum MHD_Result begin(struct request *request)
{
    const struct server *server = request->server;
    const char *queue = request_parameter(request->connection, "queue");

    if (server->settings->token && !has_token(server, request->connection)) {
        return request_text(request->connection, MHD_HTTP_UNAUTHORIZED,
                            "the token is missing or wrong; leat-board --url shows it\n");
    }
    for (size_t i = 0; queue && i < server->place_count; i++) {
        if (strcmp(watched_name(server->places[i].watched), queue) == 0) {
            request->place = &server->places[i];
        }
    }
    if (request->route->of_queue && !request->place) {
        return request_text(request->connection, MHD_HTTP_NOT_FOUND, "no such queue\n");
    }
    return request->route->begin(request);
}

/* Called for the headers, then for the whole request, and once more after it has waited. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **own)
{
    struct server *server = context;
    struct request *request = *own;
    const char *text = "";
    unsigned status;

    (void)version;
    (void)upload;
    (void)upload_size;
    if (!request) {
        request = calloc(1, sizeof *request);
        if (!request) {
            return MHD_NO;
        }
        *request = (struct request){.server = server, .connection = connection};
        *own = request;
        visitors_trust(connection, has_token(server, connection));
        status = refuse(server, connection, method, &text);
        return status > 0 ? request_text(connection, status, text) : MHD_YES;
    }
    if (request->route) {
        return request->route->end(request);
    }
    if (strcmp(url, "/healthz") == 0) {
        return request_text(connection, MHD_HTTP_OK, "ok\n");
    }
    request->route = find_route(url);
    return request->route ? begin(request) : request_file(connection, url);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **own,
                         enum MHD_RequestTerminationCode code)
{
    struct request *request = *own;

    (void)context;
    (void)code;
    visitors_served(connection);
    if (request) {
        json_decref(request->answer);
        free(request);
        *own = NULL;
    }
}

/* ---- beginning and end */

static int watch_queues(struct server *server)
{
    const struct server_settings *settings = server->settings;

    server->places = calloc(settings->queue_count, sizeof *server->places);
    if (!server->places) {
        return -1;
    }
    for (; server->place_count < settings->queue_count; server->place_count++) {
        const struct watched_settings watched_settings = {
            .name = settings->queues[server->place_count], .watcher = "board", .read_only = true};
        struct watched *watched = watched_new(server->loop, &watched_settings, settle, server);
        if (!watched) {
            return -1;
        }
        server->places[server->place_count].watched = watched;
    }
    return 0;
}

static int start(struct server *server, int socket)
{
    const union MHD_DaemonInfo *info;

    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, server,
        MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_CONNECTION_LIMIT, MOST_CONNECTIONS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        IDLE_S, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION,
        visitors_notify, &server->visitors, MHD_OPTION_URI_LOG_CALLBACK, on_uri, NULL,
        MHD_OPTION_END);
    info = server->daemon ? MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info) {
        return -1;
    }
    fd_watch_start(&server->watch, server->loop, info->epoll_fd, EV_READ);
    return 0;
}

struct server *server_new(struct ev_loop *loop, int socket, const struct server_settings *settings)
{
    struct server *server = calloc(1, sizeof *server);

    if (!server) {
        return NULL;
    }
    server->loop = loop;
    server->settings = settings;
    LIST_INIT(&server->waiting);
    LIST_INIT(&server->visitors.list);
    server->visitors.most = MOST_CONNECTIONS;
    fd_watch_init(&server->watch, run, server);
    timer_init(&server->turn, loop, run, server);
    timer_init(&server->sample, loop, sample, server);
    timer_init(&server->check, loop, check, server);
    timer_init(&server->patience, loop, settle, server);
    if (watch_queues(server) != 0 || start(server, socket) != 0) {
        server_free(server);
        return NULL;
    }
    timer_repeat_s(&server->sample, SAMPLE_S);
    timer_repeat_s(&server->check, CHECK_S);
    return server;
}

void server_free(struct server *server)
{
    struct request *request;

    if (!server) {
        return;
    }
    /* questions get their last answer now; then nothing is suspended, as microhttpd demands */
    for (size_t i = 0; i < server->place_count; i++) {
        watched_free(server->places[i].watched);
        server->places[i].watched = NULL;
    }
    while ((request = LIST_FIRST(&server->waiting))) {
        resume(request);
    }
    fd_watch_stop(&server->watch, server->loop);
    if (server->daemon) {
        MHD_stop_daemon(server->daemon);
    }
    timer_stop(&server->turn);
    timer_stop(&server->sample);
    timer_stop(&server->check);
    timer_stop(&server->patience);
    free(server->places);
    free(server);
}
