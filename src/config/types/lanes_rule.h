/*
 * Which lanes tasks may name. Pure functions.
 */
#ifndef LEAT_CONFIG_TYPES_LANES_RULE_H
#define LEAT_CONFIG_TYPES_LANES_RULE_H

#include "config/config.h"

/* The value of [lanes] only as Redis stores it: "any" or "named". auto is named if commands are
 * listed, but not if the config has a default for lanes, or gives each list of producers a lane:
 * then other lanes are wanted. */
const char *lanes_rule_only(const struct config *config);

#endif
