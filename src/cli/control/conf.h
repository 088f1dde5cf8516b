/*
 * What all workers of a queue agree on, as people name it.
 */
#ifndef LEAT_CLI_CONTROL_CONF_H
#define LEAT_CLI_CONTROL_CONF_H

#include "cli/lib/cli.h"

struct redisReply;

/* Calls visit for each setting that is not what the configuration file says. agreed and configured
 * are as people write them. conf: the record of leat_conf or leat_status. */
typedef void conf_visit(void *context, const char *name, const char *agreed,
                        const char *configured);
void conf_compare(const struct cli *cli, const struct redisReply *conf, conf_visit *visit,
                  void *context);

/* Returns 0 if the lease is long enough for kill_grace of all live workers and of the configuration
 * file, or else an exit status after printing the numbers. Requires a connection. */
int conf_check_lease(struct cli *cli, int64_t lease_ms);

#endif
