/*
 * Signing tasks before they are sent: with the key that --sign names, or where the configuration
 * wants signatures, with its first.
 */
#ifndef LEAT_CLI_ENQUEUE_SIGNING_H
#define LEAT_CLI_ENQUEUE_SIGNING_H

#include "cli/enqueue/draft.h"
#include "cli/lib/cli.h"

struct signer;

/* sign: NAME, NAME:FILE, or NULL: as the configuration says, which is loaded. valid_ms: for how
 * long signatures are good once a task is due. Returns 0 with *signer owned by the caller, NULL
 * where tasks are not to be signed; or an exit status, the error being printed. */
int signer_open(const struct cli *cli, const char *sign, int64_t valid_ms, struct signer **signer);
void signer_close(struct signer *signer);

/* Signs the draft: adds not_after, unless it has one, and signature; both stay valid until the next
 * call. due: as leat_enqueue takes it. A signature that is there stays, unless sign was given.
 * signer NULL does nothing. Returns 0, or -1 where libcrypto fails, there is no memory, or too many
 * fields. */
int signer_sign(struct signer *signer, struct draft *draft, const char *due);

#endif
