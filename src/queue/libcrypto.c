/*
 * The functions of libcrypto that the keyring uses. The library is loaded with the first key.
 *
 * If leat is built with TLS, libcrypto comes with libssl at the start of each program.
 */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/opensslv.h>

#include "base/process/shared_object.h"

#ifndef LEAT_TLS

#define TEXT(number) #number
#define TEXT_OF(number) TEXT(number)

static struct shared_object libcrypto = {.file = "libcrypto.so." TEXT_OF(OPENSSL_SHLIB_VERSION)};

#define FUNCTION(type, name, parameters, arguments, failure)                                       \
    SHARED_OBJECT_FUNCTION(libcrypto, type, name, parameters, arguments, failure)

FUNCTION(EVP_MAC *, EVP_MAC_fetch,
         (OSSL_LIB_CTX * libctx, const char *algorithm, const char *properties),
         (libctx, algorithm, properties), NULL)
FUNCTION(EVP_MAC_CTX *, EVP_MAC_CTX_new, (EVP_MAC * mac), (mac), NULL)
FUNCTION(int, EVP_MAC_init,
         (EVP_MAC_CTX * ctx, const unsigned char *key, size_t keylen, const OSSL_PARAM params[]),
         (ctx, key, keylen, params), 0)
FUNCTION(int, EVP_MAC_update, (EVP_MAC_CTX * ctx, const unsigned char *data, size_t datalen),
         (ctx, data, datalen), 0)
FUNCTION(int, EVP_MAC_final, (EVP_MAC_CTX * ctx, unsigned char *out, size_t *outl, size_t outsize),
         (ctx, out, outl, outsize), 0)
FUNCTION(int, CRYPTO_memcmp, (const void *in_a, const void *in_b, size_t len), (in_a, in_b, len), 1)

SHARED_OBJECT_FREE(libcrypto, EVP_MAC_CTX_free, (EVP_MAC_CTX * ctx), (ctx))
SHARED_OBJECT_FREE(libcrypto, EVP_MAC_free, (EVP_MAC * mac), (mac))

#endif
