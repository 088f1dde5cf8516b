/*
 * The configuration of one queue as an immutable struct: the keys of the INI file, with defaults
 * filled in. config/file/load.h creates it.
 */
#ifndef LEAT_CONFIG_CONFIG_H
#define LEAT_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum config_library { CONFIG_LIBRARY_AUTO, CONFIG_LIBRARY_NEVER };
enum config_tls { CONFIG_TLS_12_13, CONFIG_TLS_12, CONFIG_TLS_13 };
enum config_stdin { CONFIG_STDIN_PAYLOAD, CONFIG_STDIN_NULL };
/* Ends of earlier attempts after which [task] check is asked; bits. */
enum config_check_after {
    CONFIG_CHECK_AFTER_LOST = 1,
    CONFIG_CHECK_AFTER_TIMEOUT = 2,
    CONFIG_CHECK_AFTER_KILLED = 4,
};
enum config_format { CONFIG_FORMAT_LINES, CONFIG_FORMAT_NUL, CONFIG_FORMAT_JSON };
enum config_jitter { CONFIG_JITTER_FULL, CONFIG_JITTER_NONE };
enum config_lane_from { CONFIG_LANE_FROM_NONE, CONFIG_LANE_FROM_SUFFIX };
enum config_unique { CONFIG_UNIQUE_NONE, CONFIG_UNIQUE_ITEM };
enum config_output_to {
    CONFIG_OUTPUT_JOURNAL,
    CONFIG_OUTPUT_FILE,
    CONFIG_OUTPUT_DISCARD,
    CONFIG_OUTPUT_INHERIT,
};
enum config_at_max { CONFIG_AT_MAX_TRUNCATE, CONFIG_AT_MAX_KILL };
enum config_rule_kind {
    CONFIG_RULE_NONE, /* not set: a wider rule applies */
    CONFIG_RULE_RETRY,
    CONFIG_RULE_DEAD,
    CONFIG_RULE_SUCCESS,
};
enum config_preset { CONFIG_PRESET_NONE, CONFIG_PRESET_QMAIL, CONFIG_PRESET_SYSEXITS };
enum config_commands { CONFIG_COMMANDS_ANY, CONFIG_COMMANDS_LISTED };
enum config_signatures { CONFIG_SIGNATURES_OFF, CONFIG_SIGNATURES_REQUIRED };
enum config_log { CONFIG_LOG_AUTO, CONFIG_LOG_JOURNAL, CONFIG_LOG_STDERR, CONFIG_LOG_JSON };

enum config_cgroup { CONFIG_CGROUP_AUTO, CONFIG_CGROUP_REQUIRED, CONFIG_CGROUP_OFF };

#define CONFIG_BATCH_MOST 1000        /* tasks in a batch */
#define CONFIG_CONCURRENCY_MOST 10000 /* processes of tasks at the same time */
#define CONFIG_NOTIFY_MOST 64         /* processes of [dead] notify at the same time */
#define CONFIG_RESIDENT_MOST                                                                       \
    5000 /* concurrency with resident processes, which may be replaced                             \
            all at the same time */

/* Values of limits for tasks: as in the daemon, and unlimited. */
#define CONFIG_INHERIT INT64_MIN
#define CONFIG_UNLIMITED INT64_MAX

#define CONFIG_CODES 256  /* exit codes */
#define CONFIG_SIGNALS 65 /* signals are 1 to 64 */

/* A set of exit codes 0–255. */
struct config_codes {
    uint64_t bits[4];
};

/* The action when an attempt ends in a certain way. */
struct config_rule {
    enum config_rule_kind kind;
    int32_t most; /* CONFIG_RULE_RETRY: attempts in all; 0: max_attempts */
};

/* The rule for each exit code, resolved from all keys; 0 always means success. */
struct config_exits {
    struct config_rule of[CONFIG_CODES];
    struct config_codes single, ranged; /* codes with a line of their own; codes in a range */
};

struct config_signals {
    struct config_rule of[CONFIG_SIGNALS];
};

struct config_redis {
    char *host;
    int64_t port;
    bool by_url;    /* the server is that of --redis or LEAT_REDIS */
    char *socket;   /* NULL: TCP */
    char *user;     /* NULL: the default user */
    char *password; /* from password, password_file or password_credential; wiped when freed */
    char *password_file;
    char *password_credential;
    int64_t db;
    /* instead of host and port: Sentinels that know the master of that name, or nodes of a Cluster;
     * lists of HOST:PORT, NULL-terminated; NULL: none */
    char **sentinels;
    char *master;
    char **cluster;
    int slot; /* hash slot of all keys of the queue */
    /* the same for the Sentinels */
    char *sentinel_user;
    char *sentinel_password;
    char *sentinel_password_file;
    char *sentinel_password_credential;
    bool tls;
    char *tls_ca; /* NULL: the authorities that the system trusts */
    char *tls_cert, *tls_key;
    char *tls_server_name; /* NULL: host */
    enum config_tls tls_versions;
    int64_t connect_timeout_ms;
    bool connect_in_lease; /* connect_timeout = auto: a part of the lease is a limit, too */
    int64_t command_timeout_ms;
    int64_t keepalive_s; /* 0: none */
    int64_t backoff_base_ms;
    int64_t backoff_cap_ms;
    int64_t wait_replicas; /* 0: none */
    int64_t wait_timeout_ms;
};

struct config_queue {
    char *name;
    char *stream; /* default: name */
    char *group;
    int64_t concurrency;
    int64_t lease_ms;
    int64_t scan_ms;    /* 0: auto, see lease_rule_scan_ms */
    int64_t max_length; /* 0: no limit */
    int64_t max_task;   /* bytes; 0: no limit */
    int64_t history;    /* ended tasks that are kept, or minus their age in ms; 0: none */
    int64_t max_crashes;
    enum config_library load_library;
};

struct config_limits {
    char *rate; /* NULL: none */
    int64_t burst;
    /* limits of each process of a task, or CONFIG_INHERIT or CONFIG_UNLIMITED */
    int64_t open_files;
    int64_t core; /* bytes, like all limits that are not numbers or times */
    int64_t cpu_time_s;
    int64_t file_size;
    int64_t processes; /* processes and threads of the tasks' user */
    int64_t stack;
    int64_t locked_memory;
    int64_t address_space;
};

/* Lanes that tasks may name: all, or those with settings. auto: see config/types/lanes_rule.h. */
enum config_lanes_only { CONFIG_LANES_AUTO, CONFIG_LANES_ANY, CONFIG_LANES_NAMED };

struct config_lanes {
    enum config_lanes_only only;
    char **list; /* NAME=SETTINGS, NULL-terminated; NULL: none. See config/types/limits.h */
};

struct config_task {
    char *command;      /* shell line for every task; NULL: tasks bring their own */
    char *shell;        /* run as SHELL -c COMMAND */
    char *directory;    /* NULL: the home of the tasks' user */
    char *path;         /* the variable PATH of tasks */
    char **environment; /* NAME=VALUE …, NULL-terminated */
    char *user, *group; /* NULL: the daemon's */
    bool no_new_privileges;
    int64_t umask;
    int64_t timeout_ms; /* 0: none */
    /* for a task's own timeout, or CONFIG_UNLIMITED; 0: timeout_ms if commands are listed */
    int64_t timeout_max_ms;
    int64_t kill_grace_ms;
    enum config_stdin stdin_from;
    int64_t result_ttl_ms; /* 0: results are kept only if a task asks for it */
    int64_t batch;         /* maximum number of tasks per process; 1: no batches */
    int64_t batch_wait_ms;
    enum config_format batch_format;
    bool resident; /* a process of the command stays, and gets task after task */
    int64_t resident_start_timeout_ms;
    /* when a resident process is replaced; 0: never for that reason */
    int64_t resident_tasks;
    int64_t resident_age_ms;
    int64_t resident_memory; /* bytes */
    int64_t resident_idle_ms;
    char *check;         /* shell line that finds out whether a task was done before; NULL: none */
    int64_t check_after; /* bits of enum config_check_after */
    int64_t check_timeout_ms;
    int64_t nice;   /* or CONFIG_INHERIT, like the next two */
    int64_t ionice; /* as ioprio_set(2) takes it: the class in bits 13 to 15, then the level */
    int64_t oom_score_adj; /* −1000 to 1000 */
};

/* Isolation of tasks; the limits are for all processes of a task together, 0: none. */
struct config_isolation {
    char *state; /* folder of worker lock files; NULL: see worker_locks_folder */
    enum config_cgroup cgroup;
    int64_t memory_max; /* bytes, like the next */
    int64_t memory_high;
    int64_t pids_max; /* processes and threads */
    int64_t cpu_max;  /* percent of one CPU */
    int64_t cpu_weight;
    int64_t io_weight;
};

struct config_retry {
    int64_t max_attempts;
    /* for a task's own, or CONFIG_UNLIMITED; 0: max_attempts if commands are listed */
    int64_t attempts_max;
    int64_t base_ms;
    double factor;
    int64_t cap_ms;
    enum config_jitter jitter;
    struct config_codes permanent, success; /* as listed; exits has the rules that follow */
    enum config_preset preset;              /* exits has its rules too */
    struct config_exits exits;
    struct config_signals signals;
    struct config_rule exit, signal; /* for exit codes and signals without another rule */
    struct config_rule killed, oom, timeout, output_limit, cannot_execute, check;
};

struct config_dead {
    int64_t output_tail; /* bytes of stdout and of stderr that a dead letter keeps */
    int64_t keep_ms;     /* 0: forever */
    int64_t keep_number; /* 0: all */
    char *notify;        /* shell line to run for each dead letter, or NULL */
    int64_t notify_jobs; /* maximum number of these programs at the same time */
    int64_t notify_timeout_ms;
};

/* Lists of producers that know nothing of leat. */
struct config_intake {
    char **lists; /* keys, NULL-terminated; NULL: none */
    char *prefix; /* prefix of the keys of further lists; NULL: none */
    char *field;  /* field of the task that an item becomes */
    enum config_lane_from lane_from;
    enum config_unique unique;
    int64_t scan_ms;
};

/* Which commands may run, and which signatures are required. */
struct config_security {
    enum config_commands commands;
    enum config_signatures signatures;
    char **key_files;       /* NAME:FILE, NULL-terminated; NULL: none */
    char **key_credentials; /* NAME or NAME:CREDENTIAL, NULL-terminated; NULL: none */
    char **secrets;         /* NAME:KEY of both lists, if with_keys was given; wiped when freed */
};

/* The sections [command.NAME]: lists of NAME=VALUE, NULL-terminated; NULL: none. */
struct config_command {
    char **program;
    char **arguments; /* see config/types/arguments.h */
};

struct config_log_section {
    enum config_log target;
    int64_t level; /* syslog priority */
    bool started;  /* log each start too, not only each end */
};

/* Where the stdout and stderr of tasks go. */
struct config_output {
    enum config_output_to to;
    char *directory;    /* folder of the files; NULL: see config/types/outputs.h */
    int64_t max_line;   /* bytes of a record */
    int64_t max_output; /* bytes of an attempt; 0: no limit */
    enum config_at_max at_max;
    int64_t rate; /* bytes per second of an attempt; 0: no limit */
    bool merge;   /* stdout and stderr are one pipe, which is read as stdout */
};

/* Limits above which the worker claims nothing; 0: none. */
struct config_admission {
    int64_t memory_pressure, io_pressure, cpu_pressure; /* percent of time */
    int64_t load;                                       /* percent of the CPUs */
    int64_t free_memory; /* minimum: bytes, or percent of all memory as a negative number */
};

struct config_shutdown {
    int64_t drain_ms;
};

struct config {
    char *path;
    struct config_redis redis;
    struct config_queue queue;
    struct config_limits limits;
    struct config_lanes lanes;
    struct config_task task;
    struct config_isolation isolation;
    struct config_retry retry;
    struct config_dead dead;
    struct config_intake intake;
    struct config_output output;
    struct config_security security;
    struct config_command command;
    struct config_log_section log;
    struct config_admission admission;
    struct config_shutdown shutdown;
};

#endif
