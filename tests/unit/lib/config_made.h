/* Configs that tests write by hand, with the values that the table would have filled in. */
#ifndef LEAT_TESTS_CONFIG_MADE_H
#define LEAT_TESTS_CONFIG_MADE_H

#include "config/config.h"

/* Gives tasks the limits and priorities of the test itself. */
static inline void inherit_limits(struct config *config)
{
    const int64_t inherit = CONFIG_INHERIT;
    struct config_limits *limits = &config->limits;
    limits->open_files = limits->core = limits->cpu_time_s = limits->file_size = inherit;
    limits->processes = limits->stack = limits->locked_memory = limits->address_space = inherit;
    config->task.nice = config->task.ionice = config->task.oom_score_adj = inherit;
}

#endif
