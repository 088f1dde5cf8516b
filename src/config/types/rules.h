/*
 * Rules of [retry]: the action when an attempt ends with a cause, exit code or signal.
 *
 * If several rules match an exit code, the narrowest applies: a line for the code; a range, or the
 * lists permanent and success; the preset; the line for all exit codes.
 */
#ifndef LEAT_CONFIG_TYPES_RULES_H
#define LEAT_CONFIG_TYPES_RULES_H

#include "base/buffer.h"
#include "config/config.h"
#include "config/table.h"

/* Parses a rule such as "dead" or "retry 20". Returns 0 or -1, like value_set. */
int rules_set(struct config_rule *rule, const struct table_row *row, const char *text,
              struct buffer *why);

/* The same for keys with a dot; name is the whole key: "exit.64-78", "signal.TERM". */
int rules_set_exits(struct config_exits *exits, const struct table_row *row, const char *name,
                    const char *text, struct buffer *why);
int rules_set_signal(struct config_signals *signals, const struct table_row *row, const char *name,
                     const char *text, struct buffer *why);

/* The first exit code that is in the list and also in a range, or -1. */
int rules_listed_twice(const struct config_retry *retry, const struct config_codes *list);

/* Fills in rules from the lists and the preset for codes that no line names. Call it once, after
 * the checks. */
void rules_resolve(struct config_retry *retry);

/* Explains why there can be no rule for that cause; NULL if it is not such a cause. */
const char *rules_refusal(const char *cause);

#endif
