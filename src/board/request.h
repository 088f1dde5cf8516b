/*
 * Answers to requests: JSON, files of the page, and refusals, with the headers that browsers need.
 */
#ifndef LEAT_BOARD_REQUEST_H
#define LEAT_BOARD_REQUEST_H

#include <jansson.h>
#include <microhttpd.h>

#include "base/buffer.h"

/* Each queues the answer. Returns MHD_NO without memory, which closes the connection. */

/* A refusal or another short text. */
enum MHD_Result request_text(struct MHD_Connection *connection, unsigned status, const char *text);

/* Takes the content of the buffer. */
enum MHD_Result request_buffer(struct MHD_Connection *connection, const char *type,
                               struct buffer *text);

/* Takes the value; NULL means that there was no memory. */
enum MHD_Result request_json(struct MHD_Connection *connection, json_t *value);

/* The file of the page at that path, or a refusal. */
enum MHD_Result request_file(struct MHD_Connection *connection, const char *path);

/* The value of a header, or of a parameter of the query; or NULL. */
const char *request_header(struct MHD_Connection *connection, const char *name);
const char *request_parameter(struct MHD_Connection *connection, const char *name);

#endif
