/* Decides which lanes tasks may name. */
#include "config/types/lanes_rule.h"

#include <stdbool.h>

#include "config/types/strings.h"

const char *lanes_rule_only(const struct config *config)
{
    bool named = config->lanes.only == CONFIG_LANES_NAMED;
    if (config->lanes.only == CONFIG_LANES_AUTO) {
        named = config->security.commands == CONFIG_COMMANDS_LISTED &&
                config->intake.lane_from != CONFIG_LANE_FROM_SUFFIX &&
                !strings_find(config->lanes.list, "*", 1, '=');
    }
    return named ? "named" : "any";
}
