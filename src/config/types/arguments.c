/* Parses the arguments of a listed command into words, literal text and fields. */
#include "config/types/arguments.h"

#include <stdlib.h>
#include <string.h>

#define FIELD_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

struct parser {
    struct arguments *arguments;
    const char *at;
    char quote;            /* the open quote, or NUL */
    bool in_word;          /* the last word is not finished */
    struct buffer literal; /* its last piece */
    struct buffer *why;
};

static int refuse(struct parser *parser, const char *reason)
{
    /* a failure sets why->failed, which the caller checks */
    (void)buffer_append_text(parser->why, reason);
    return -1;
}

static int no_memory(struct parser *parser)
{
    parser->why->failed = true;
    return -1;
}

static int add_piece(struct parser *parser, struct argument_piece piece)
{
    struct argument *word = &parser->arguments->words[parser->arguments->count - 1];
    struct argument_piece *longer =
        reallocarray(word->pieces, word->count + 1, sizeof *word->pieces);

    if (!longer || !piece.text) {
        word->pieces = longer ? longer : word->pieces;
        free(piece.text);
        free(piece.fallback);
        return no_memory(parser);
    }
    word->pieces = longer;
    longer[word->count++] = piece;
    return 0;
}

/* Adds the literal text before a field or before the end of the word. */
static int end_literal(struct parser *parser)
{
    int result = 0;

    if (parser->literal.failed) {
        return no_memory(parser);
    }
    if (parser->literal.size > 0) {
        result = add_piece(parser, (struct argument_piece){.text = strndup(parser->literal.data,
                                                                           parser->literal.size)});
    }
    buffer_clear(&parser->literal);
    return result;
}

static int begin_word(struct parser *parser)
{
    struct arguments *arguments = parser->arguments;
    struct argument *longer;

    if (parser->in_word) {
        return 0;
    }
    longer = reallocarray(arguments->words, arguments->count + 1, sizeof *longer);
    if (!longer) {
        return no_memory(parser);
    }
    arguments->words = longer;
    longer[arguments->count++] = (struct argument){0};
    parser->in_word = true;
    return 0;
}

static int end_word(struct parser *parser)
{
    if (!parser->in_word) {
        return 0;
    }
    parser->in_word = false;
    return end_literal(parser);
}

/* Parses a field; at is behind the opening brace. */
static int take_field(struct parser *parser)
{
    const char *name = parser->at;
    size_t length = strspn(name, FIELD_LETTERS);
    const char *fallback = name[length] == '=' ? name + length + 1 : NULL;
    const char *end = fallback ? fallback + strcspn(fallback, "{}") : name + length;
    struct argument_piece piece = {.is_field = true};

    if (length == 0 || *end != '}') {
        return refuse(parser, "a { must begin {FIELD} or {FIELD=TEXT}, with FIELD of A-Z a-z 0-9 "
                              "_; write {{ for a brace");
    }
    if (fallback && memchr(fallback, '\'', (size_t)(end - fallback))) {
        return refuse(parser,
                      "unexpected quote between braces; put the quotes around the whole word");
    }
    if (fallback && memchr(fallback, '"', (size_t)(end - fallback))) {
        return refuse(parser,
                      "unexpected quote between braces; put the quotes around the whole word");
    }
    if (parser->quote == '\0' && strcspn(name, " \t") < (size_t)(end - name)) {
        return refuse(parser,
                      "unexpected white space between braces; put the whole word in quotes");
    }
    if (end_literal(parser) != 0) {
        return -1;
    }
    piece.text = strndup(name, length);
    if (fallback) {
        piece.fallback = strndup(fallback, (size_t)(end - fallback));
        if (!piece.fallback) {
            free(piece.text);
            return no_memory(parser);
        }
    }
    parser->at = end + 1;
    return add_piece(parser, piece);
}

static int take_letter(struct parser *parser, char letter)
{
    bool twice = *parser->at == letter;

    if (begin_word(parser) != 0) {
        return -1;
    }
    if (letter == '{' && !twice) {
        return take_field(parser);
    }
    if (letter == '}' && !twice) {
        return refuse(parser, "unexpected } without {; write }} for a brace");
    }
    if (letter == '{' || letter == '}') {
        parser->at++;
    }
    (void)buffer_append(&parser->literal, &letter, 1); /* end_literal checks for failures */
    return 0;
}

/* Parses the next character. Returns 0 or -1. */
static int take_next(struct parser *parser)
{
    char letter = *parser->at++;

    if (parser->quote == '\0' && (letter == ' ' || letter == '\t')) {
        return end_word(parser);
    }
    if (parser->quote == '\0' && (letter == '\'' || letter == '"')) {
        parser->quote = letter;
        return begin_word(parser);
    }
    if (letter == parser->quote) {
        parser->quote = '\0';
        return 0;
    }
    return take_letter(parser, letter);
}

int arguments_parse(const char *text, struct arguments *arguments, struct buffer *why)
{
    struct parser parser = {.arguments = arguments, .at = text, .why = why};
    int result = 0;

    *arguments = (struct arguments){0};
    while (result == 0 && *parser.at != '\0') {
        result = take_next(&parser);
    }
    if (result == 0 && parser.quote != '\0') {
        result = refuse(&parser, "missing closing quote; to use a quote as text, put the other "
                                 "kind of quotes around it");
    }
    if (result == 0) {
        result = end_word(&parser);
    }
    buffer_free(&parser.literal);
    return result;
}

void arguments_free(struct arguments *arguments)
{
    for (size_t i = 0; i < arguments->count; i++) {
        struct argument *word = &arguments->words[i];

        for (size_t j = 0; j < word->count; j++) {
            free(word->pieces[j].text);
            free(word->pieces[j].fallback);
        }
        free(word->pieces);
    }
    free(arguments->words);
    *arguments = (struct arguments){0};
}
