/*
 * Commands about the connection and the server rather than the queue: AUTH, SELECT, CLIENT, INFO.
 */
#ifndef LEAT_REDIS_SERVER_COMMAND_H
#define LEAT_REDIS_SERVER_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "redis/command.h"

struct redisReply;

void server_unblock(struct command *command, int64_t client_id);
/* CLIENT KILL ID, for a former connection of the caller whose last commands must no longer run. */
void server_kill_client(struct command *command, int64_t client_id);

/* The first commands of a connection. user NULL: the default user. After server_auth free the
 * command with command_wipe. */
void server_auth(struct command *command, const char *user, const char *password);
void server_select(struct command *command, int64_t db);
void server_client_name(struct command *command, const char *name);
void server_client_id(struct command *command);

/* One INFO call that has everything needed at start. */
void server_info(struct command *command);

/* The part of INFO that matters to a queue. rdb_enabled is false only if there are surely no
 * snapshots: INFO does not have the setting. */
struct server_info {
    char version[32];
    char run_id[48];              /* of the server process; "" if INFO has none */
    char replid[48], replid2[48]; /* of its data, and before its last promotion; or "" */
    int major;
    /* A blocked read of a stream whose hash slot moves makes this version crash: Redis #13311. */
    bool move_crashes;
    bool is_sentinel, is_master, loading, aof_enabled, rdb_enabled;
    char maxmemory_policy[32];
    int64_t maxmemory;
    bool needs_replicas; /* it refuses writes if too few replicas are connected */
    bool saves_fail;     /* the last write of the append-only file or of a snapshot failed */
    /* Commands of its append-only file, or of its master, that it refused since it was started. */
    int64_t refused;
};
int server_info_read(const struct redisReply *reply, struct server_info *out);

#endif
