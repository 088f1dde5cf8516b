/*
 * Answers to requests.
 */
#include "board/request.h"

#include <string.h>

#include "board/page.h"
#include "view/output_json.h"

/* The page loads nothing from elsewhere, runs no script but its own, makes no markup of text, is in
 * no frame, and sends no form. */
static const struct {
    const char *name, *value;
} headers[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for "
     "'script'; trusted-types 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

/* Takes the response. */
static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
                              const char *caching, struct MHD_Response *response)
{
    enum MHD_Result result = MHD_YES;

    if (!response) {
        return MHD_NO;
    }
    for (size_t i = 0; i < sizeof headers / sizeof *headers && result == MHD_YES; i++) {
        result = MHD_add_response_header(response, headers[i].name, headers[i].value);
    }
    if (result == MHD_YES) {
        result = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    }
    if (result == MHD_YES) {
        result = MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, caching);
    }
    if (result == MHD_YES && status == MHD_HTTP_UNAUTHORIZED) {
        result = MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    }
    if (result == MHD_YES && status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        result = MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    if (result == MHD_YES && status == MHD_HTTP_TOO_MANY_REQUESTS) {
        result = MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    }
    if (result == MHD_YES) {
        result = MHD_queue_response(connection, status, response);
    }
    MHD_destroy_response(response);
    return result;
}

enum MHD_Result request_text(struct MHD_Connection *connection, unsigned status, const char *text)
{
    /* microhttpd takes a pointer that is not const, but only reads */
    return answer(connection, status, "text/plain; charset=utf-8", "no-store",
                  MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                                  MHD_RESPMEM_MUST_COPY));
}

enum MHD_Result request_buffer(struct MHD_Connection *connection, const char *type,
                               struct buffer *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(text->size, text->data, MHD_RESPMEM_MUST_FREE);

    if (response) {
        *text = BUFFER_INIT;
    } else {
        buffer_free(text);
    }
    return answer(connection, MHD_HTTP_OK, type, "no-store", response);
}

enum MHD_Result request_json(struct MHD_Connection *connection, json_t *value)
{
    struct buffer text = BUFFER_INIT;

    if (output_json_append(value, JSON_COMPACT, &text) != 0) {
        buffer_free(&text);
        return MHD_NO;
    }
    return request_buffer(connection, "application/json", &text);
}

enum MHD_Result request_file(struct MHD_Connection *connection, const char *path)
{
    const struct page_file *file = page_find(path);

    if (!file) {
        return request_text(connection, MHD_HTTP_NOT_FOUND, "not found\n");
    }
    return answer(connection, MHD_HTTP_OK, file->type, "no-cache",
                  MHD_create_response_from_buffer(file->size, (void *)(uintptr_t)file->data,
                                                  MHD_RESPMEM_PERSISTENT));
}

const char *request_header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

const char *request_parameter(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}
