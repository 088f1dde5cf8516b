/*
 * The audit log of operators' actions, in the journal.
 */
#include "cli/lib/audit.h"

#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/log/log.h"
#include "base/log/log_ids.h"
#include "cli/lib/cli.h"

enum {
    USER_MAX = 40, /* bytes; the host gets the rest */
    FIELDS = 4,    /* besides the ids */
};

static void read_user(char *user, size_t size)
{
    const char *caller = getenv("SUDO_USER");
    const struct passwd *entry;

    if (getuid() == 0 && caller && *caller) {
        (void)snprintf(user, size, "%s", caller);
        return;
    }
    entry = getpwuid(getuid());
    if (entry) {
        (void)snprintf(user, size, "%s", entry->pw_name);
    } else {
        (void)snprintf(user, size, "%lld", (long long)getuid());
    }
}

void audit_who(char who[AUDIT_WHO_SIZE])
{
    char user[USER_MAX + 1], host[256];

    read_user(user, sizeof user);
    if (gethostname(host, sizeof host) != 0) {
        (void)snprintf(host, sizeof host, "unknown");
    }
    host[sizeof host - 1] = '\0';
    (void)snprintf(who, AUDIT_WHO_SIZE, "%s@%.*s", user, AUDIT_WHO_SIZE - USER_MAX - 2, host);
    for (char *letter = who; *letter; letter++) {
        if (*letter <= ' ' || *letter > '~') {
            *letter = '?';
        }
    }
}

void audit_add(struct audit *act, const char *id)
{
    if (act->count++ < AUDIT_IDS) {
        (void)snprintf(act->ids[act->id_count++], AUDIT_ID_SIZE, "%s", id);
    }
}

static void append_ids(const struct audit *act, struct buffer *message)
{
    /* a failed append marks the buffer */
    for (size_t i = 0; i < act->id_count; i++) {
        (void)buffer_printf(message, "%s%s", i == 0 ? ": " : ", ", act->ids[i]);
    }
    if (act->count > act->id_count && act->id_count > 0) {
        (void)buffer_printf(message, " and %zu more", act->count - act->id_count);
    }
}

static void write_record(const struct cli *cli, const struct audit *act, const char *who,
                         const struct buffer *message)
{
    struct log_field fields[FIELDS + AUDIT_IDS];
    char number[32];
    size_t count = 0;

    fields[count++] = LOG_TEXT("LEAT_QUEUE", cli->config->queue.name);
    fields[count++] = LOG_TEXT("LEAT_EVENT", act->event);
    fields[count++] = LOG_TEXT("LEAT_OPERATOR", who);
    (void)snprintf(number, sizeof number, "%zu", act->count);
    if (act->count > 0) {
        fields[count++] = LOG_TEXT("LEAT_COUNT", number);
    }
    for (size_t i = 0; i < act->id_count; i++) {
        fields[count++] = LOG_TEXT("LEAT_TASK", act->ids[i]);
    }

    /* never log to stderr: it is for the command's own messages */
    if (log_open(LOG_TARGET_JOURNAL, LOG_NOTICE, "leat") == 0) {
        log_bytes(LOG_NOTICE, LOG_ID_OPERATOR, fields, count, message->data, message->size);
    }
    log_close();
}

void audit_record(const struct cli *cli, const struct audit *act, const char *format, ...)
{
    struct buffer message = BUFFER_INIT;
    char who[AUDIT_WHO_SIZE], what[256];
    va_list args;

    audit_who(who);
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    /* a failed append marks the buffer */
    (void)buffer_printf(&message, "%s %s", who, what);
    append_ids(act, &message);
    if (!message.failed) {
        write_record(cli, act, who, &message);
    }
    buffer_free(&message);
}
