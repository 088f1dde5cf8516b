/* Keys of the sections [command.NAME]. */
#include "config/types/commands.h"

#include <string.h>

#include "config/types/arguments.h"
#include "config/types/strings.h"

#define NAME_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:@-"

bool commands_is_name(const char *name)
{
    size_t length = strlen(name);

    return length >= 1 && length <= COMMANDS_NAME_MOST && strspn(name, NAME_LETTERS) == length;
}

const char *config_command_value(char *const *list, const char *name)
{
    const char *entry = strings_find(list, name, strlen(name), '=');

    return entry ? entry + strlen(name) + 1 : NULL;
}

static int add(char ***list, const char *name, const char *text, struct buffer *why)
{
    struct buffer entry = BUFFER_INIT;
    int result = -1;

    if (config_command_value(*list, name)) {
        (void)buffer_append_text(why, "already set; remove one of the two lines");
        return -1;
    }
    if (buffer_printf(&entry, "%s=%s", name, text) == 0) {
        result = strings_append(list, entry.data, entry.size);
    }
    why->failed |= result != 0;
    buffer_free(&entry);
    return result;
}

int commands_set_program(char ***list, const char *name, const char *text, struct buffer *why)
{
    if (*text != '/' && (strchr(text, '/') || strpbrk(text, " \t"))) {
        return strings_refuse(
            why, text,
            "is neither an absolute path nor a name that can be on [task] path; write one of them");
    }
    return add(list, name, text, why);
}

int commands_set_arguments(char ***list, const char *name, const char *text, struct buffer *why)
{
    struct arguments arguments;
    int result = arguments_parse(text, &arguments, why);

    arguments_free(&arguments);
    return result == 0 ? add(list, name, text, why) : -1;
}
