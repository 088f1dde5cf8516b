/*
 * Which server has a queue: the questions to sentinels and nodes of a Cluster, and their answers.
 * If answers contradict each other, the one with the highest epoch is right, since each failover
 * and each move of a slot raises the epoch.
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
    int64_t epoch; /* the epoch of the answer */
};

/* Whether both are the same server; epochs do not count. */
bool endpoint_equal(const struct endpoint *a, const struct endpoint *b);

/* Two questions to a sentinel: it knows the address of a new master before its record of the master
 * has it, but only the record has the epoch. */
void endpoint_ask_master(struct command *command, const char *master);
void endpoint_ask_epoch(struct command *command, const char *master);
void endpoint_ask_nodes(struct command *command);
/* The question to the server itself. */
void endpoint_ask_role(struct command *command);

/* Reads all but the epoch. Returns 0; 1 if the sentinel knows no such master; -1 if the reply is
 * malformed. */
int endpoint_read_master(const struct redisReply *reply, struct endpoint *endpoint);
/* 0 if the answer has none. */
int64_t endpoint_read_epoch(const struct redisReply *reply);
/* Finds the node that has the slot. host: the address of the asked node, which may not know its
 * own. Returns 0; 1 if no node has it; -1 if the reply is malformed. */
int endpoint_read_nodes(const struct redisReply *reply, int slot, const char *host,
                        struct endpoint *endpoint);
/* Lists up to `most` nodes of such an answer that can be asked themselves. Returns how many. */
size_t endpoint_list_nodes(const struct redisReply *reply, const char *host, struct endpoint *nodes,
                           size_t most);
bool endpoint_read_role(const struct redisReply *reply);

#endif
