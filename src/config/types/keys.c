/* Reads the keys that sign tasks. */
#include "config/types/keys.h"

#include <string.h>

#include "config/types/secret.h"
#include "config/types/strings.h"

#define NAME_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"

static size_t name_length(const char *entry)
{
    return strcspn(entry, ":");
}

static int check_entry(const char *entry, bool file, struct buffer *why)
{
    size_t length = name_length(entry);
    const char *place = entry[length] == ':' ? entry + length + 1 : NULL;

    if (file && (!place || *place != '/')) {
        return strings_refuse(
            why, entry, "is not NAME:FILE; begin with the key's name, and use an absolute path");
    }
    if (length < 1 || length > KEYS_NAME_MOST || strspn(entry, NAME_LETTERS) != length) {
        return strings_refuse(
            why, entry, "does not begin with the name of a key; use 1 to 64 of A-Z a-z 0-9 _ . -");
    }
    if (!file && place && (*place == '\0' || strchr(place, '/'))) {
        return strings_refuse(why, entry,
                              "is neither NAME nor NAME:CREDENTIAL; use a name without /");
    }
    return 0;
}

static int check_entries(char *const *list, bool files, struct buffer *why)
{
    for (char *const *entry = list; entry && *entry; entry++) {
        if (check_entry(*entry, files, why) != 0) {
            return -1;
        }
        if (strings_find(entry + 1, *entry, name_length(*entry), ':')) {
            return strings_refuse(why, *entry, "has the name of another key; use another name");
        }
    }
    return 0;
}

int keys_set(char ***list, const char *text, bool files, struct buffer *why)
{
    if (strings_set_words(list, text, why) != 0) {
        return -1;
    }
    if (check_entries(*list, files, why) == 0) {
        return 0;
    }
    strings_free_list(list); /* do not look for other faults in an invalid list */
    return -1;
}

/* Takes ownership of secret, and wipes it. */
static int add_secret(char ***secrets, const char *entry, char *secret, struct buffer *why)
{
    struct buffer text = BUFFER_INIT;
    size_t length = name_length(entry), size = strlen(secret);
    int result = -1;

    if (size < KEYS_LEAST) {
        /* a failure sets why->failed, which the caller checks */
        (void)buffer_printf(why,
                            "the key %.*s has only %zu bytes and can be guessed; use at least 32, "
                            "for example of openssl rand -hex 32",
                            (int)length, entry, size);
    } else {
        /* reserve the memory at once, so that growing leaves no copies behind */
        if (buffer_reserve(&text, length + 1 + size) == 0 &&
            buffer_append(&text, entry, length) == 0 && buffer_append_text(&text, ":") == 0 &&
            buffer_append(&text, secret, size) == 0) {
            result = strings_append(secrets, text.data, text.size);
        }
        why->failed |= result != 0;
        if (text.data) {
            explicit_bzero(text.data, text.capacity);
        }
        buffer_free(&text);
    }
    strings_free(&secret);
    return result;
}

int keys_read_file(char ***secrets, const char *entry, struct buffer *why)
{
    char *secret;

    if (check_entry(entry, true, why) != 0) {
        return -1;
    }
    secret = secret_read_file(entry + name_length(entry) + 1, true, why);
    return secret ? add_secret(secrets, entry, secret, why) : -1;
}

static int read_credential(char ***secrets, const char *entry, struct buffer *why)
{
    const char *place = entry[name_length(entry)] == ':' ? entry + name_length(entry) + 1 : entry;
    char *secret = secret_read_credential(place, why);

    return secret ? add_secret(secrets, entry, secret, why) : -1;
}

/* The entry with that name (NULL: the first entry), or NULL. */
static const char *find_entry(char *const *list, const char *name)
{
    if (!name) {
        return list ? *list : NULL;
    }
    return strings_find(list, name, strlen(name), ':');
}

int keys_read(const struct config_security *security, const char *name, char ***secrets,
              struct buffer *why)
{
    const char *file = find_entry(security->key_files, name);
    const char *credential = find_entry(security->key_credentials, name);
    int result = 0;

    if (file) {
        result = keys_read_file(secrets, file, why);
    } else if (credential) {
        result = read_credential(secrets, credential, why);
    } else {
        return 0;
    }
    return result == 0 ? 1 : -1;
}

void keys_load(struct config_security *security, bool skip_credentials,
               const struct key_lines *lines, struct report *report)
{
    size_t files = lines->keys[table_index(table_find("security", "key_files"))];
    size_t credentials = lines->keys[table_index(table_find("security", "key_credentials"))];
    struct buffer why = BUFFER_INIT;

    for (char **entry = security->key_files; entry && *entry; entry++) {
        buffer_clear(&why);
        if (keys_read_file(&security->secrets, *entry, &why) != 0) {
            report_reason(report, files, "key_files", &why);
        }
    }
    for (char **entry = security->key_credentials; entry && *entry && !skip_credentials; entry++) {
        buffer_clear(&why);
        if (read_credential(&security->secrets, *entry, &why) != 0) {
            report_reason(report, credentials, "key_credentials", &why);
        }
    }
    buffer_free(&why);
}
