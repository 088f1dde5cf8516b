/*
 * Words that values may be, and the numbers that they stand for. Only table.c includes this.
 */
#ifndef LEAT_CONFIG_TABLE_WORDS_H
#define LEAT_CONFIG_TABLE_WORDS_H

#include <syslog.h>

#include "config/config.h"
#include "config/table_type.h"

#define WORDS(name, ...) static const struct table_word name[] = {__VA_ARGS__, {NULL, 0}}

WORDS(automatic, {"auto", 0});
WORDS(none, {"none", 0});
WORDS(maxima, {"auto", 0}, {"none", CONFIG_UNLIMITED});
WORDS(tls_versions, {"1.2 1.3", CONFIG_TLS_12_13}, {"1.2", CONFIG_TLS_12}, {"1.3", CONFIG_TLS_13});
WORDS(inherited, {"inherit", CONFIG_INHERIT});
WORDS(unlimited, {"none", CONFIG_UNLIMITED}, {"inherit", CONFIG_INHERIT});
#define IO_CLASS(number, level) (((number) << 13) | (level))
WORDS(io_classes, {"inherit", CONFIG_INHERIT}, {"idle", IO_CLASS(3, 0)},
      {"best-effort", IO_CLASS(2, 4)}, {"best-effort 0", IO_CLASS(2, 0)},
      {"best-effort 1", IO_CLASS(2, 1)}, {"best-effort 2", IO_CLASS(2, 2)},
      {"best-effort 3", IO_CLASS(2, 3)}, {"best-effort 4", IO_CLASS(2, 4)},
      {"best-effort 5", IO_CLASS(2, 5)}, {"best-effort 6", IO_CLASS(2, 6)},
      {"best-effort 7", IO_CLASS(2, 7)}, {"realtime", IO_CLASS(1, 4)},
      {"realtime 0", IO_CLASS(1, 0)}, {"realtime 1", IO_CLASS(1, 1)},
      {"realtime 2", IO_CLASS(1, 2)}, {"realtime 3", IO_CLASS(1, 3)},
      {"realtime 4", IO_CLASS(1, 4)}, {"realtime 5", IO_CLASS(1, 5)},
      {"realtime 6", IO_CLASS(1, 6)}, {"realtime 7", IO_CLASS(1, 7)});
WORDS(libraries, {"auto", CONFIG_LIBRARY_AUTO}, {"never", CONFIG_LIBRARY_NEVER});
WORDS(inputs, {"payload", CONFIG_STDIN_PAYLOAD}, {"null", CONFIG_STDIN_NULL});
WORDS(formats, {"lines", CONFIG_FORMAT_LINES}, {"nul", CONFIG_FORMAT_NUL},
      {"json", CONFIG_FORMAT_JSON});
WORDS(check_ends, {"lost", CONFIG_CHECK_AFTER_LOST}, {"timeout", CONFIG_CHECK_AFTER_TIMEOUT},
      {"killed", CONFIG_CHECK_AFTER_KILLED});
WORDS(jitters, {"full", CONFIG_JITTER_FULL}, {"none", CONFIG_JITTER_NONE});
WORDS(rules, {"dead", CONFIG_RULE_DEAD}, {"retry", CONFIG_RULE_RETRY});
WORDS(exit_rules, {"dead", CONFIG_RULE_DEAD}, {"retry", CONFIG_RULE_RETRY},
      {"success", CONFIG_RULE_SUCCESS});
WORDS(presets, {"none", CONFIG_PRESET_NONE}, {"qmail", CONFIG_PRESET_QMAIL},
      {"sysexits", CONFIG_PRESET_SYSEXITS});
WORDS(lane_origins, {"none", CONFIG_LANE_FROM_NONE}, {"suffix", CONFIG_LANE_FROM_SUFFIX});
WORDS(lane_kinds, {"auto", CONFIG_LANES_AUTO}, {"any", CONFIG_LANES_ANY},
      {"named", CONFIG_LANES_NAMED});
WORDS(unique_parts, {"none", CONFIG_UNIQUE_NONE}, {"item", CONFIG_UNIQUE_ITEM});
WORDS(sinks, {"journal", CONFIG_OUTPUT_JOURNAL}, {"file", CONFIG_OUTPUT_FILE},
      {"discard", CONFIG_OUTPUT_DISCARD}, {"inherit", CONFIG_OUTPUT_INHERIT});
WORDS(at_max, {"truncate", CONFIG_AT_MAX_TRUNCATE}, {"kill", CONFIG_AT_MAX_KILL});
WORDS(command_kinds, {"any", CONFIG_COMMANDS_ANY}, {"listed", CONFIG_COMMANDS_LISTED});
WORDS(signature_uses, {"off", CONFIG_SIGNATURES_OFF}, {"required", CONFIG_SIGNATURES_REQUIRED});
WORDS(cgroups, {"auto", CONFIG_CGROUP_AUTO}, {"required", CONFIG_CGROUP_REQUIRED},
      {"off", CONFIG_CGROUP_OFF});
WORDS(targets, {"auto", CONFIG_LOG_AUTO}, {"journal", CONFIG_LOG_JOURNAL},
      {"stderr", CONFIG_LOG_STDERR}, {"json", CONFIG_LOG_JSON});
WORDS(levels, {"error", LOG_ERR}, {"warning", LOG_WARNING}, {"notice", LOG_NOTICE},
      {"info", LOG_INFO}, {"debug", LOG_DEBUG});

#endif
