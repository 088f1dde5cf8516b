/*
 * Which server has a queue: what sentinels and the nodes of a Cluster are asked, and their answers
 * taken apart. Of several that contradict each other, the one with the highest epoch is right: each
 * failover and each move of a slot has a higher one than the last.
 */
#ifndef LEAT_REDIS_SERVER_ENDPOINT_H
#define LEAT_REDIS_SERVER_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "config/types/addresses.h"
#include "redis/command.h"

struct redisReply;

struct endpoint {
    char host[ADDRESSES_HOST_SIZE];
    int64_t port;
    int64_t epoch; /* of who said so */
};

/* The same server, whoever said so. */
bool endpoint_equal(const struct endpoint *a, const struct endpoint *b);

/* Two questions to a sentinel: a new master's address is known there before the record of the
 * master has it, but only the record has the epoch. */
void endpoint_ask_master(struct command *command, const char *master);
void endpoint_ask_epoch(struct command *command, const char *master);
void endpoint_ask_nodes(struct command *command);
/* To the server itself. */
void endpoint_ask_role(struct command *command);

/* All but the epoch. Returns 0; 1 where the sentinel knows no such master; -1: another form. */
int endpoint_read_master(const struct redisReply *reply, struct endpoint *endpoint);
/* 0 where the answer does not have it. */
int64_t endpoint_read_epoch(const struct redisReply *reply);
/* The node that has the slot. host: of the node that was asked, which may not know its own address.
 * Returns 0; 1 where none has it; -1: another form. */
int endpoint_read_nodes(const struct redisReply *reply, int slot, const char *host,
                        struct endpoint *endpoint);
/* The nodes of such an answer that may be asked themselves, `most` of them. Returns how many. */
size_t endpoint_list_nodes(const struct redisReply *reply, const char *host, struct endpoint *nodes,
                           size_t most);
bool endpoint_read_role(const struct redisReply *reply);

#endif
