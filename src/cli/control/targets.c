/*
 * The tasks that an operator names, and calls for all of them.
 */
#include "cli/control/targets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "cli/lib/output.h"
#include "cli/lib/text.h"
#include "cli/show/expand_id.h"
#include "cli/show/show.h"
#include "redis/error.h"
#include "view/reply_fields.h"

#define WHY_SIZE 512

enum state { UNKNOWN, LATER, ANSWERED, NOT_FOUND, FAILED };

struct target {
    size_t id; /* as typed: its offset in ids */
    enum state state;
    char tid[48], token[48]; /* "": not located yet; no token: not in the requeue stream */
    const struct target_answer *answer; /* ANSWERED: and its detail */
    char detail[160];
};

static const char *id_of(const struct targets *targets, const struct target *target)
{
    return targets->ids.data + target->id;
}

/* The name of the task for Redis. */
static const char *name_of(const struct targets *targets, const struct target *target)
{
    return *target->tid ? target->tid : id_of(targets, target);
}

/* ---- calls */

static const struct target_answer *find_answer(const struct targets *targets, const char *text)
{
    size_t size = strcspn(text, " ");

    for (const struct target_answer *answer = targets->answers; answer->word; answer++) {
        if (strlen(answer->word) == size && strncmp(answer->word, text, size) == 0) {
            return answer;
        }
    }
    return NULL;
}

static void take_error(struct targets *targets, struct target *target, struct bytes error)
{
    char what[256], why[WHY_SIZE];
    const char *text;
    size_t size = redis_error_text(error.data, error.size, &text);

    target->state = FAILED;
    bytes_copy((struct bytes){text, size}, why, sizeof why);
    (void)snprintf(what, sizeof what, "cannot %s %s", targets->verb, id_of(targets, target));
    targets->status =
        cli_call_failed(targets->cli, what, redis_error_classify(error.data, error.size), why);
}

static void take_answer(struct targets *targets, struct target *target, struct bytes answer)
{
    char text[WHY_SIZE];

    bytes_copy(answer, text, sizeof text);
    target->answer = find_answer(targets, text);
    if (bytes_equal(answer, "gone")) {
        target->state = UNKNOWN;
    } else if (bytes_equal(answer, "later")) {
        target->state = LATER;
    } else if (target->answer) {
        size_t word = strlen(target->answer->word);
        target->state = ANSWERED;
        (void)snprintf(target->detail, sizeof target->detail, "%s",
                       text[word] ? text + word + 1 : "");
    } else {
        take_error(targets, target, answer);
    }
}

/* Acts on all targets in that state, in one call. *more: some of them have to be sent again.
 * Returns false after a failure. */
static bool ask_once(struct targets *targets, enum state state, bool *more)
{
    struct target *asked[QUEUE_CANCEL_MAX];
    struct command command = {0};
    struct redisReply *reply;
    char what[64];
    size_t count = 0;
    int status;

    targets->begin(targets->context, &command);
    for (size_t i = 0; i < targets->count; i++) {
        struct target *target = &targets->list[i];
        if (target->state != state) {
            continue;
        }
        queue_cancel_add(&command, name_of(targets, target), target->token);
        asked[count++] = target;
    }
    if (count == 0) {
        command_free(&command);
        return true;
    }
    (void)snprintf(what, sizeof what, "cannot %s", targets->verb);
    reply = cli_call(targets->cli, &command, what, count + 1, &status);
    if (!reply) {
        targets->status = status;
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        take_answer(targets, asked[i], fields_value(reply->element[i + 1]));
        *more = *more || asked[i]->state == LATER;
    }
    freeReplyObject(reply);
    return true;
}

/* Acts on all targets that are not settled. One call reads only a few very large tasks. Returns
 * false after a failure. */
static bool ask(struct targets *targets)
{
    bool more = false, fine = ask_once(targets, UNKNOWN, &more);

    while (fine && more) {
        more = false;
        fine = ask_once(targets, LATER, &more);
    }
    return fine;
}

/* Counts the tasks that were changed, for the audit record. */
static void count_done(struct targets *targets)
{
    for (size_t i = 0; i < targets->count; i++) {
        const struct target *target = &targets->list[i];
        if (target->state == ANSWERED && target->answer->acted) {
            audit_add(&targets->done, name_of(targets, target));
        }
    }
}

/* Locates the targets that the call did not find: they do not exist, or an older library has put
 * them into the requeue stream, and they are not indexed yet. Returns false after a failure. */
static bool locate(struct targets *targets)
{
    for (size_t i = 0; i < targets->count; i++) {
        struct target *target = &targets->list[i];
        struct redisReply *found;
        int status = EX_OK;
        if (target->state != UNKNOWN) {
            continue;
        }
        found = show_locate_live(targets->cli, name_of(targets, target), &status);
        if (status != EX_OK) {
            targets->status = status;
            return false;
        }
        if (!found) {
            continue;
        }
        bytes_copy(fields_bytes(found->element[2], "tid"), target->tid, sizeof target->tid);
        bytes_copy(fields_bytes(found->element[2], "token"), target->token, sizeof target->token);
        freeReplyObject(found);
    }
    return true;
}

/* ---- output */

static int print_json(const struct targets *targets, const struct target *target)
{
    const char *state = target->state == ANSWERED    ? target->answer->state
                        : target->state == NOT_FOUND ? "not_found"
                                                     : "failed";
    json_t *object = json_pack("{s:s}", "state", state);

    output_put_bytes(&object, "id", bytes_of(id_of(targets, target)));
    if (target->state == ANSWERED && target->answer->detail) {
        output_put(&object, target->answer->detail, json_string(target->detail));
    }
    return output_json(object, false);
}

/* Appends the text of the answer, with the detail in place of '%s'. */
static void append_text(struct buffer *line, const struct target *target)
{
    const char *text = target->answer->text, *detail = strstr(text, "%s");

    /* a failed append marks the buffer */
    if (!detail) {
        (void)buffer_append_text(line, text);
        return;
    }
    (void)buffer_append(line, text, (size_t)(detail - text));
    (void)text_append(line, target->detail, strlen(target->detail));
    (void)buffer_append_text(line, detail + 2);
}

static int print_line(const struct targets *targets, const struct target *target)
{
    const char *id = id_of(targets, target);
    struct buffer line = BUFFER_INIT;
    int status;

    /* a failed append marks the buffer */
    (void)text_append(&line, id, strlen(id));
    (void)buffer_append_text(&line, ": ");
    if (target->state == ANSWERED && !target->answer->is_error) {
        append_text(&line, target);
    } else {
        (void)buffer_append_text(&line, target->state == NOT_FOUND ? "not found" : "failed");
    }
    (void)buffer_append_text(&line, "\n");
    status = output_write(&line);
    buffer_free(&line);
    return status;
}

static void print_error(const struct targets *targets, const struct target *target)
{
    struct buffer text = BUFFER_INIT;

    append_text(&text, target);
    cli_error("cannot %s %s: %.*s", targets->verb, id_of(targets, target), (int)text.size,
              text.data ? text.data : "");
    buffer_free(&text);
}

static int print_all(struct targets *targets)
{
    int status = EX_OK;

    for (size_t i = 0; i < targets->count && status == EX_OK; i++) {
        const struct target *target = &targets->list[i];
        if (target->state == ANSWERED && target->answer->is_error) {
            print_error(targets, target);
            targets->status = EX_DATAERR;
        }
        status = targets->json ? print_json(targets, target) : print_line(targets, target);
        if (target->state == NOT_FOUND && targets->status == EX_OK) {
            targets->status = EX_NOINPUT;
        }
    }
    return status;
}

int targets_print_failed(const char *id, bool json)
{
    struct targets targets = {.json = json};
    const struct target target = {.state = FAILED};
    int status;

    if (buffer_append(&targets.ids, id, strlen(id) + 1) != 0) {
        return cli_no_memory();
    }
    status = json ? print_json(&targets, &target) : print_line(&targets, &target);
    buffer_free(&targets.ids);
    return status;
}

/* ---- the command */

/* Acts on the targets that were collected, and prints the results. Returns false after a failure.
 */
static bool settle(struct targets *targets)
{
    bool fine = ask(targets) && locate(targets) && ask(targets);
    int status;

    /* a task that moved in between is indexed, so the last call would have found it */
    for (size_t i = 0; i < targets->count && fine; i++) {
        if (targets->list[i].state == UNKNOWN) {
            targets->list[i].state = NOT_FOUND;
        }
    }
    count_done(targets);
    status = print_all(targets);
    targets->count = 0;
    buffer_clear(&targets->ids);
    if (status != EX_OK) {
        targets->status = status;
    }
    return fine && status == EX_OK && !ferror(stdout);
}

static bool add(struct targets *targets, const char *id)
{
    size_t start = targets->ids.size;
    struct expanded_id expanded;
    int status = expand_id(targets->cli, id, &expanded);

    if (status == EX_OK &&
        buffer_append(&targets->ids, expanded.id, strlen(expanded.id) + 1) != 0) {
        status = cli_no_memory();
    }
    if (status != EX_OK) {
        targets->status = status;
        return status == EX_USAGE; /* the other ids do not depend on this one */
    }
    targets->list[targets->count++] = (struct target){.id = start};
    return targets->count < QUEUE_CANCEL_MAX || settle(targets);
}

static bool add_lines(struct targets *targets, FILE *file)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    bool fine = true;

    while (fine && (size = getline(&line, &capacity, file)) >= 0) {
        int status = cli_check_line(targets->cli, line, (size_t)size);
        line[strcspn(line, "\n")] = '\0';
        if (status != EX_OK) {
            targets->status = status;
        } else if (*line) {
            fine = add(targets, line);
        }
    }
    if (fine && ferror(file)) {
        cli_error("cannot read ids from stdin: %s", strerror(errno));
        targets->status = EX_NOINPUT;
        fine = false;
    }
    free(line);
    return fine;
}

int targets_act(struct targets *targets, char *const *ids)
{
    bool fine = true;
    int status = cli_connect(targets->cli);

    if (status != EX_OK) {
        return status;
    }
    targets->list = calloc(QUEUE_CANCEL_MAX, sizeof *targets->list);
    if (!targets->list) {
        return cli_no_memory();
    }
    for (; *ids && fine; ids++) {
        fine = strcmp(*ids, "-") == 0 ? add_lines(targets, stdin) : add(targets, *ids);
    }
    if (fine || targets->count > 0) {
        (void)settle(targets); /* it sets targets->status */
    }
    buffer_free(&targets->ids);
    free(targets->list);
    targets->list = NULL;
    return targets->status;
}
