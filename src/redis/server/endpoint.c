/* Reads the answers of sentinels and of nodes of a Cluster. */
#include "redis/server/endpoint.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

bool endpoint_equal(const struct endpoint *a, const struct endpoint *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* ---- questions ---- */

void endpoint_ask_master(struct command *command, const char *master)
{
    COMMAND_BEGIN(command, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", master);
}

void endpoint_ask_epoch(struct command *command, const char *master)
{
    COMMAND_BEGIN(command, "SENTINEL", "MASTER", master);
}

void endpoint_ask_nodes(struct command *command)
{
    COMMAND_BEGIN(command, "CLUSTER", "NODES");
}

void endpoint_ask_role(struct command *command)
{
    COMMAND_BEGIN(command, "ROLE");
}

/* ---- a sentinel's answers ---- */

/* Reads a decimal number of exactly that size; -1: it is none. */
static int64_t number_of(const char *text, size_t size)
{
    int64_t number = 0;
    if (size == 0 || size > 18) {
        return -1;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return -1;
        }
        number = number * 10 + (text[i] - '0');
    }
    return number;
}

/* Returns 0, or -1 if it is no address. */
static int set_address(struct endpoint *endpoint, const char *host, size_t host_size,
                       const char *port, size_t port_size)
{
    int64_t number = number_of(port, port_size);
    if (host_size == 0 || host_size >= sizeof endpoint->host || memchr(host, '\0', host_size) ||
        number < 1 || number > 65535) {
        return -1;
    }
    memcpy(endpoint->host, host, host_size);
    endpoint->host[host_size] = '\0';
    endpoint->port = number;
    return 0;
}

int endpoint_read_master(const redisReply *reply, struct endpoint *endpoint)
{
    if (reply->type == REDIS_REPLY_NIL) {
        return 1;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[1]->type != REDIS_REPLY_STRING) {
        return -1;
    }
    return set_address(endpoint, reply->element[0]->str, reply->element[0]->len,
                       reply->element[1]->str, reply->element[1]->len);
}

/* The reply alternates names and values. */
int64_t endpoint_read_epoch(const redisReply *reply)
{
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2) {
        const redisReply *name = reply->element[i], *value = reply->element[i + 1];
        if (name->type == REDIS_REPLY_STRING && value->type == REDIS_REPLY_STRING &&
            strcmp(name->str, "config-epoch") == 0) {
            int64_t epoch = number_of(value->str, value->len);
            return epoch > 0 ? epoch : 0;
        }
    }
    return 0;
}

/* ---- a node's answer: a line for each node, with fields between single spaces ---- */

enum { FIELD_ADDRESS = 1, FIELD_FLAGS = 2, FIELD_EPOCH = 6, FIELD_SLOTS = 8 };

struct piece {
    const char *text;
    size_t size;
};

/* Takes the next field off the line; returns false if there is none. */
static bool next_field(struct piece *line, struct piece *field)
{
    if (line->size == 0) {
        return false;
    }
    const char *space = memchr(line->text, ' ', line->size);
    field->text = line->text;
    field->size = space ? (size_t)(space - line->text) : line->size;
    size_t taken = field->size + (space ? 1 : 0);
    line->text += taken;
    line->size -= taken;
    return true;
}

/* The field is one slot, or a first and a last. A slot in brackets is moving and still here. */
static bool has_slot(const struct piece *field, int slot)
{
    const char *dash = memchr(field->text, '-', field->size);
    size_t first_size = dash ? (size_t)(dash - field->text) : field->size;
    int64_t first = number_of(field->text, first_size);
    int64_t last = dash ? number_of(dash + 1, field->size - first_size - 1) : first;
    return first >= 0 && first <= slot && slot <= last;
}

static bool has_flag(const struct piece *flags, const char *word)
{
    for (size_t at = 0; at < flags->size;) {
        const char *comma = memchr(flags->text + at, ',', flags->size - at);
        size_t size = comma ? (size_t)(comma - flags->text) - at : flags->size - at;
        if (size == strlen(word) && memcmp(flags->text + at, word, size) == 0) {
            return true;
        }
        at += size + 1;
    }
    return false;
}

/* IP:PORT@BUSPORT[,HOSTNAME…]; an IPv6 address has no brackets. */
static int read_address(const struct piece *field, const char *host, struct endpoint *endpoint)
{
    const char *at = memchr(field->text, '@', field->size);
    const char *colon = at ? memrchr(field->text, ':', (size_t)(at - field->text)) : NULL;
    if (!colon) {
        return -1;
    }
    size_t host_size = (size_t)(colon - field->text);
    const char *port = colon + 1;
    return host_size > 0 ? set_address(endpoint, field->text, host_size, port, (size_t)(at - port))
                         : set_address(endpoint, host, strlen(host), port, (size_t)(at - port));
}

/* Takes the fields before the slots off the line. Returns 0, or -1 if it has fewer. */
static int take_fields(struct piece *line, struct piece *fields)
{
    for (size_t i = 0; i < FIELD_SLOTS; i++) {
        if (!next_field(line, &fields[i])) {
            return -1;
        }
    }
    return 0;
}

/* Returns 1 if the node of that line does not have the slot. */
static int read_node(struct piece line, int slot, const char *host, struct endpoint *endpoint)
{
    struct piece fields[FIELD_SLOTS], field;
    bool found = false;
    if (take_fields(&line, fields)) {
        return -1;
    }
    while (!found && next_field(&line, &field)) {
        found = has_slot(&field, slot);
    }
    if (!found || !has_flag(&fields[FIELD_FLAGS], "master")) {
        return 1;
    }
    endpoint->epoch = number_of(fields[FIELD_EPOCH].text, fields[FIELD_EPOCH].size);
    return endpoint->epoch < 0 ? -1 : read_address(&fields[FIELD_ADDRESS], host, endpoint);
}

/* Takes the next non-empty line off the text; returns false if there is none. */
static bool next_line(struct piece *text, struct piece *line)
{
    do {
        const char *end = memchr(text->text, '\n', text->size);
        *line = (struct piece){text->text, end ? (size_t)(end - text->text) : text->size};
        size_t taken = line->size + (end ? 1 : 0);
        text->text += taken;
        text->size -= taken;
    } while (line->size == 0 && text->size > 0);
    return line->size > 0;
}

int endpoint_read_nodes(const redisReply *reply, int slot, const char *host,
                        struct endpoint *endpoint)
{
    if (reply->type != REDIS_REPLY_STRING) {
        return -1;
    }
    struct piece text = {reply->str, reply->len}, line;
    int result = 1;
    while (result == 1 && next_line(&text, &line)) {
        result = read_node(line, slot, host, endpoint);
    }
    return result;
}

size_t endpoint_list_nodes(const redisReply *reply, const char *host, struct endpoint *nodes,
                           size_t most)
{
    if (reply->type != REDIS_REPLY_STRING) {
        return 0;
    }
    struct piece text = {reply->str, reply->len}, line, fields[FIELD_SLOTS];
    size_t count = 0;
    while (count < most && next_line(&text, &line)) {
        if (take_fields(&line, fields) == 0 && !has_flag(&fields[FIELD_FLAGS], "fail") &&
            !has_flag(&fields[FIELD_FLAGS], "noaddr") &&
            !has_flag(&fields[FIELD_FLAGS], "handshake") &&
            read_address(&fields[FIELD_ADDRESS], host, &nodes[count]) == 0) {
            nodes[count++].epoch = 0;
        }
    }
    return count;
}

bool endpoint_read_role(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
           reply->element[0]->type == REDIS_REPLY_STRING &&
           strcmp(reply->element[0]->str, "master") == 0;
}
