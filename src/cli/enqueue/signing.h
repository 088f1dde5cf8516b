/*
 * Signing tasks before they are sent, with the key that --sign names, or with the first key of the
 * configuration if it requires signatures.
 */
#ifndef LEAT_CLI_ENQUEUE_SIGNING_H
#define LEAT_CLI_ENQUEUE_SIGNING_H

#include "cli/enqueue/draft.h"
#include "cli/lib/cli.h"

struct signer;

/* sign: NAME, NAME:FILE, or NULL: as configured. The configuration is loaded. valid_ms: how long
 * signatures are valid once a task is due. Returns 0 and *signer, which the caller owns and which
 * is NULL if tasks need no signature; or an exit status after printing the error. */
int signer_open(const struct cli *cli, const char *sign, int64_t valid_ms, struct signer **signer);
void signer_close(struct signer *signer);

/* Adds a signature, and not_after if the draft has none. Both are valid until the next call. due:
 * as for leat_enqueue. An existing signature is kept unless --sign was given. Does nothing if
 * signer is NULL. Returns 0, or -1 if libcrypto fails, there is no memory, or the draft has too
 * many fields. */
int signer_sign(struct signer *signer, struct draft *draft, const char *due);

#endif
