/* TLS by hiredis_ssl, or a refusal if it is not built in. */
#include "redis/connection/tls.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#ifdef LEAT_TLS

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* Replaces OpenSSL's callback, which would ask on the terminal or read stdin. */
static int have_no_passphrase(char *text, int size, int writing, void *context)
{
    (void)text;
    (void)size;
    (void)writing;
    (void)context;
    return -1;
}

/* Takes OpenSSL's errors, and returns why it failed, or NULL. The first one is the cause; the
 * others mostly tell which part of OpenSSL met it. */
static const char *take_reason(void)
{
    unsigned long first = ERR_get_error();
    for (unsigned long error = first; error; error = ERR_get_error()) {
        if (ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_BAD_PASSWORD_READ) {
            return "it has a passphrase";
        }
    }
    if (ERR_GET_LIB(first) == ERR_LIB_SYS) {
        return strerror(ERR_GET_REASON(first));
    }
    if (ERR_GET_LIB(first) == ERR_LIB_X509 && ERR_GET_REASON(first) == X509_R_KEY_VALUES_MISMATCH) {
        return "it is not the key of tls_cert";
    }
    return ERR_reason_error_string(first);
}

/* Writes what failed, on which file, and why. */
static void tell(const char *what, const char *file, char *why, size_t size)
{
    const char *reason = take_reason();
    (void)snprintf(why, size, "%s%s%s%s%s", what, file ? " " : "", file ? file : "",
                   reason ? ": " : "", reason ? reason : "");
}

static int load_files(SSL_CTX *context, const struct config_redis *config, char *why, size_t size)
{
    if (config->tls_ca ? SSL_CTX_load_verify_locations(context, config->tls_ca, NULL) != 1
                       : SSL_CTX_set_default_verify_paths(context) != 1) {
        tell("TLS: cannot read [redis] tls_ca", config->tls_ca, why, size);
        return -1;
    }
    if (config->tls_cert && SSL_CTX_use_certificate_chain_file(context, config->tls_cert) != 1) {
        tell("TLS: cannot read [redis] tls_cert", config->tls_cert, why, size);
        return -1;
    }
    if (config->tls_key &&
        SSL_CTX_use_PrivateKey_file(context, config->tls_key, SSL_FILETYPE_PEM) != 1) {
        tell("TLS: cannot read [redis] tls_key", config->tls_key, why, size);
        return -1;
    }
    return 0;
}

/* Each connection makes a new context, so a renewed certificate is used from the next one on. */
static SSL_CTX *make_context(const struct config_redis *config, char *why, size_t size)
{
    bool old = config->tls_versions != CONFIG_TLS_13;
    bool new = config->tls_versions != CONFIG_TLS_12;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context ||
        SSL_CTX_set_min_proto_version(context, old ? TLS1_2_VERSION : TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_max_proto_version(context, new ? TLS1_3_VERSION : TLS1_2_VERSION) != 1) {
        tell("TLS: out of memory", NULL, why, size);
        SSL_CTX_free(context);
        return NULL;
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_default_passwd_cb(context, have_no_passphrase);
    if (load_files(context, config, why, size)) {
        SSL_CTX_free(context);
        return NULL;
    }
    return context;
}

/* Sets the name or address that the certificate must have; the server gets a name, too. */
static int set_name(SSL *ssl, const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1) {
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name);
    }
    return SSL_set_tlsext_host_name(ssl, name) == 1 ? SSL_set1_host(ssl, name) : 0;
}

static void free_kept(void *ssl)
{
    SSL_free(ssl);
}

int tls_begin(struct redisContext *redis, const struct config_redis *config, char *why, size_t size)
{
    if (!config->tls) {
        return 0;
    }
    ERR_clear_error();
    SSL_CTX *context = make_context(config, why, size);
    if (!context) {
        return -1;
    }
    SSL *ssl = SSL_new(context);
    SSL_CTX_free(context); /* ssl keeps a reference */
    const char *name = config->tls_server_name ? config->tls_server_name : config->host;
    if (!ssl || set_name(ssl, name) != 1 || SSL_up_ref(ssl) != 1) {
        tell("TLS: cannot be set up for", name, why, size);
        SSL_free(ssl);
        return -1;
    }
    redis->privdata = ssl; /* tls_explain needs one reference, hiredis the other */
    redis->free_privdata = free_kept;
    if (redisInitiateSSL(redis, ssl) != REDIS_OK) {
        if (tls_explain(redis, why, size)) {
            (void)snprintf(why, size, "TLS: %s", redis->errstr);
        }
        SSL_free(ssl);
        return -1;
    }
    return 0;
}

static const char *advice_of(long verdict)
{
    switch (verdict) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return "set host or tls_server_name to a name in it";
    case X509_V_ERR_CERT_NOT_YET_VALID:
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return "renew it, or set the clock of this host";
    default:
        return "set tls_ca to the authority that issued it";
    }
}

/* True for alerts by which a server refuses the certificate of its client. */
static bool is_about_own_certificate(unsigned long error)
{
    switch (ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_CERTIFICATE_REQUIRED:
        return ERR_GET_LIB(error) == ERR_LIB_SSL;
    default:
        return false;
    }
}

int tls_explain(const struct redisContext *redis, char *text, size_t size)
{
    const SSL *ssl = redis->privdata;
    if (!ssl) {
        return -1;
    }
    long verdict = SSL_get_verify_result(ssl);
    if (verdict != X509_V_OK) {
        (void)snprintf(text, size, "TLS: the server's certificate is refused: %s; %s",
                       X509_verify_cert_error_string(verdict), advice_of(verdict));
        return 0;
    }
    unsigned long error = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(error);
    if (ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER ||
        (!reason && !SSL_is_init_finished(ssl))) {
        ERR_clear_error();
        /* may be cut */
        (void)snprintf(text, size,
                       "TLS: the server does not speak TLS on this port, or closed the connection "
                       "before the handshake was over; set port to a TLS port, or tls = no");
        return 0;
    }
    ERR_clear_error(); /* report it once, not for the next connection, too */
    if (reason && is_about_own_certificate(error)) {
        (void)snprintf(text, size,
                       "TLS: the server does not accept this host's certificate: %s; set tls_cert "
                       "and tls_key",
                       reason);
        return 0;
    }
    if (reason) {
        (void)snprintf(text, size, "TLS: %s", reason);
        return 0;
    }
    return -1;
}

#else

/* config/file/check.c refuses tls = yes in such a build. */
int tls_begin(struct redisContext *redis, const struct config_redis *config, char *why, size_t size)
{
    (void)redis;
    (void)snprintf(why, size, "this leat was built without TLS");
    return config->tls ? -1 : 0;
}

int tls_explain(const struct redisContext *redis, char *text, size_t size)
{
    (void)redis;
    (void)text;
    (void)size;
    return -1;
}

#endif
