/*
 * The shared settings of a queue, under the names that people use.
 */
#ifndef LEAT_CLI_CONTROL_CONF_H
#define LEAT_CLI_CONTROL_CONF_H

#include "cli/lib/cli.h"

struct redisReply;

/* Calls visit for each shared setting that differs from the configuration. shared and configured
 * are values as people write them. conf: the settings in a reply of leat_conf or leat_status. */
typedef void conf_visit(void *context, const char *name, const char *shared,
                        const char *configured);
void conf_compare(const struct cli *cli, const struct redisReply *conf, conf_visit *visit,
                  void *context);

/* Returns 0 if the lease is long enough for kill_grace of all live workers and of the configuration
 * file, or else an exit status after printing the numbers. Requires a connection. */
int conf_check_lease(struct cli *cli, int64_t lease_ms);

#endif
