/*
 * Rules of [retry]: what follows when an attempt ends with some cause, exit code or signal.
 *
 * Of several that fit an exit code the narrowest holds: its own line, a range or the lists
 * permanent and success, the preset, the line for all exit codes.
 */
#ifndef LEAT_CONFIG_TYPES_RULES_H
#define LEAT_CONFIG_TYPES_RULES_H

#include "base/buffer.h"
#include "config/config.h"
#include "config/table.h"

/* Each reads text, such as "dead" or "retry 20". Returns 0 or -1 as value_set does. */
int rules_set(struct config_rule *rule, const struct table_row *row, const char *text,
              struct buffer *why);

/* The same for keys with a point; name is the whole key: "exit.64-78", "signal.TERM". */
int rules_set_exits(struct config_exits *exits, const struct table_row *row, const char *name,
                    const char *text, struct buffer *why);
int rules_set_signal(struct config_signals *signals, const struct table_row *row, const char *name,
                     const char *text, struct buffer *why);

/* The first exit code that a range and one of the lists have both, or -1. */
int rules_listed_twice(const struct config_retry *retry, const struct config_codes *list);

/* Lets the lists and the preset say what no line has said. To be called once, after the check. */
void rules_resolve(struct config_retry *retry);

/* Why there can be no rule for that cause, for people; NULL where it is none. */
const char *rules_refusal(const char *cause);

#endif
