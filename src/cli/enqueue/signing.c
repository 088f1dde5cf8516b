/*
 * Signing tasks with a key of the configuration or of a file.
 */
#include "cli/enqueue/signing.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/lib/queues.h"
#include "config/types/keys.h"
#include "config/types/strings.h"
#include "queue/keyring.h"

struct signer {
    struct keyring *keyring;
    const char *stream; /* of the configuration */
    int64_t valid_ms;
    bool replaces; /* existing signatures */
    char until[32];
    char text[SIGNATURE_TEXT_SIZE];
};

static int fail(const struct buffer *why)
{
    if (why->failed || why->size == 0) {
        return cli_no_memory();
    }
    cli_error("cannot sign: %.*s", (int)why->size, why->data);
    return EX_NOINPUT;
}

/* Reads the key of NAME:FILE. FILE may be relative to the working directory. */
static int read_given(const char *sign, char ***secrets)
{
    struct buffer why = BUFFER_INIT;
    const char *file = strchr(sign, ':') + 1;
    char absolute[PATH_MAX], *entry;
    int status = EX_OK;

    if (!realpath(file, absolute)) {
        cli_error("cannot sign: %s: %s", file, strerror(errno));
        return EX_NOINPUT;
    }
    if (asprintf(&entry, "%.*s%s", (int)(file - sign), sign, absolute) < 0) {
        return cli_no_memory();
    }
    if (keys_read_file(secrets, entry, &why) != 0) {
        status = fail(&why);
    }
    free(entry);
    buffer_free(&why);
    return status;
}

/* Reads a key of the configuration; name NULL: the first one. It reads no others, which this user
 * may not be allowed to read. */
static int read_configured(const struct cli *cli, const char *name, char ***secrets)
{
    struct buffer why = BUFFER_INIT;
    int found = keys_read(&cli->config->security, name, secrets, &why), status = EX_OK;

    if (found < 0) {
        status = fail(&why);
    } else if (found == 0 && name) {
        status = cli_usage(cli, "%s has no key '%s'; use --sign NAME:FILE for a key in %s file",
                           queues_reads_file(cli) ? cli->config->path : "without a file, the queue",
                           name, queues_reads_file(cli) ? "another" : "a");
    }
    buffer_free(&why);
    return status;
}

int signer_open(const struct cli *cli, const char *sign, int64_t valid_ms, struct signer **signer)
{
    bool wanted = sign || cli->config->security.signatures == CONFIG_SIGNATURES_REQUIRED;
    char **secrets = NULL;
    int status = EX_OK;

    *signer = NULL;
    if (!wanted) {
        return EX_OK;
    }
    status = sign && strchr(sign, ':') ? read_given(sign, &secrets)
                                       : read_configured(cli, sign, &secrets);
    if (status == EX_OK) {
        *signer = calloc(1, sizeof **signer);
        if (!*signer || !((*signer)->keyring = keyring_new(secrets))) {
            signer_close(*signer);
            *signer = NULL;
            cli_error("cannot sign: no memory, or libcrypto cannot be loaded");
            status = EX_OSERR;
        } else {
            (*signer)->stream = cli->config->queue.stream;
            (*signer)->valid_ms = valid_ms;
            (*signer)->replaces = sign;
        }
    }
    strings_free_list(&secrets);
    return status;
}

void signer_close(struct signer *signer)
{
    if (!signer) {
        return;
    }
    keyring_free(signer->keyring);
    free(signer);
}

/* Parses "+MS" (from now) or "MS". A time in the past means now. */
static int64_t due_ms(const char *due)
{
    int64_t ms = 0, now = clock_wall_ms();

    /* task_options.c wrote this number */
    (void)units_parse_integer(due[0] == '+' ? due + 1 : due, 0, INT64_MAX / 4, &ms);
    if (due[0] == '+') {
        return now + ms;
    }
    return ms > now ? ms : now;
}

int signer_sign(struct signer *signer, struct draft *draft, const char *due)
{
    if (!signer) {
        return 0;
    }
    if (draft_has(draft, "signature")) {
        if (!signer->replaces) {
            return 0;
        }
        draft_remove(draft, "signature");
        draft_remove(draft, "not_after");
    }
    /* round up to whole seconds */
    (void)snprintf(signer->until, sizeof signer->until, "%lld",
                   (long long)((due_ms(due) + signer->valid_ms + 999) / 1000));
    if (draft->count + 2 > SIGNATURE_FIELDS_MOST) {
        return -1;
    }
    if (!draft_has(draft, "not_after") && draft_add_text(draft, "not_after", signer->until) != 0) {
        return -1;
    }
    if (keyring_sign(signer->keyring, NULL, signer->stream, draft->fields, draft->count,
                     signer->text) != 0) {
        return -1;
    }
    return draft_add_text(draft, "signature", signer->text);
}
