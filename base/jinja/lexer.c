/* lexer: cuts a template into tokens, with the rules for white space around tags: trim_blocks, lstrip_blocks, and the
 * signs '-' and '+'. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "base/jinja/jinja_int.h"

typedef enum tag { TAG_BLOCK, TAG_PRINT, TAG_COMMENT, TAG_RAW, TAG_NONE } tag;

enum { NESTED_MOST = 200 }; /* brackets in brackets */

typedef struct lexer {
    dt_jinja_tokens *tokens;
    const char *text, *name;
    size_t length, at;
    int line;
    bool starts_line; /* the last token ended with a line break */
    dt_arena *arena;
    dt_error *err;
} lexer;

static dt_status fail_at(const lexer *l, int line, const char *fmt, ...) DT_PRINTF(3, 4);

static dt_status fail_at(const lexer *l, int line, const char *fmt, ...)
{
    char message[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    return DT_FAIL(l->err, DT_ERR_UNSUPPORTED, "'%s', line %d: %s", l->name, line, message);
}

static dt_jinja_token *add(lexer *l, dt_jinja_token_kind kind, const char *data, size_t length)
{
    dt_jinja_tokens *t = l->tokens;

    t->items =
        dt_arena_array_room(l->arena, t->items, t->count + 1, &t->capacity, sizeof(*t->items));
    t->items[t->count] =
        (dt_jinja_token){.kind = kind, .line = l->line, .data = data, .length = length};
    return &t->items[t->count++];
}

static int lines_in(const char *data, size_t length)
{
    int count = 0;

    for (const char *end = data + length; (data = memchr(data, '\n', (size_t)(end - data))) != NULL;
         data++)
        count++;
    return count;
}

static bool follows(const lexer *l, size_t at, const char *what)
{
    size_t length = strlen(what);

    return l->length - at >= length && memcmp(l->text + at, what, length) == 0;
}

static size_t skip_spaces(const lexer *l, size_t at)
{
    size_t space;

    while (at < l->length && (space = dt_space_at(l->text, l->length, at)) > 0)
        at += space;
    return at;
}

/* Returns the bytes of "{%- raw -%}" at a place, with the white space that it drops; 0: something else. */
static size_t raw_tag(const lexer *l, size_t at, const char *word, bool trims, size_t *sign)
{
    size_t from = at;

    if (!follows(l, at, "{%"))
        return 0;
    at += 2;
    *sign = at < l->length && (l->text[at] == '-' || l->text[at] == '+') ? at++ : 0;
    at = skip_spaces(l, at);
    if (!follows(l, at, word))
        return 0;
    at = skip_spaces(l, at + strlen(word));
    if (follows(l, at, "-%}"))
        return skip_spaces(l, at + 3) - from;
    if (trims && follows(l, at, "+%}"))
        return at + 3 - from;
    if (!follows(l, at, "%}"))
        return 0;
    at += 2;
    return at + (trims && at < l->length && l->text[at] == '\n') - from;
}

/* Adds the text before a tag, less the white space that the tag drops. sign: 0, '-' or '+'. */
static void add_data(lexer *l, size_t from, size_t to, char sign, bool strips)
{
    size_t end = to, space, line;
    int lines = lines_in(l->text + from, to - from);

    if (sign == '-') {
        while (end > from && (space = dt_space_before(l->text, end)) > 0 && end - space >= from)
            end -= space;
    } else if (sign != '+' && strips) {
        for (line = to; line > from && l->text[line - 1] != '\n'; line--)
            ;
        if ((line > from || l->starts_line) && line < to) {
            for (end = line; end < to && (space = dt_space_at(l->text, to, end)) > 0; end += space)
                ;
            end = end == to ? line : to;
        }
    }
    if (end > from)
        add(l, DT_TOKEN_DATA, l->text + from, end - from);
    l->line += lines;
}

/* Finds the next tag. Returns its kind and where it begins. */
static tag next_tag(const lexer *l, size_t *at)
{
    for (size_t i = l->at; i + 1 < l->length; i++) {
        const char *brace = memchr(l->text + i, '{', l->length - 1 - i);

        if (brace == NULL)
            break;
        i = (size_t)(brace - l->text);
        *at = i;
        if (brace[1] == '%')
            return TAG_BLOCK;
        if (brace[1] == '{')
            return TAG_PRINT;
        if (brace[1] == '#')
            return TAG_COMMENT;
    }
    *at = l->length;
    return TAG_NONE;
}

static dt_status read_comment(lexer *l)
{
    const char *end = memmem(l->text + l->at, l->length - l->at, "#}", 2);
    int line = l->line;
    size_t at;

    if (end == NULL)
        return fail_at(l, line, "the comment has no end");
    at = (size_t)(end - l->text) + 2;
    if (end > l->text + l->at && end[-1] == '-')
        at = skip_spaces(l, at);
    else if (!(end > l->text + l->at && end[-1] == '+') && at < l->length && l->text[at] == '\n')
        at++;
    l->line += lines_in(l->text + l->at, at - l->at);
    l->starts_line = l->text[at - 1] == '\n';
    l->at = at;
    return DT_OK;
}

static dt_status read_raw(lexer *l)
{
    size_t sign, size;

    for (size_t at = l->at; at < l->length; at++) {
        size = raw_tag(l, at, "endraw", true, &sign);
        if (size == 0)
            continue;
        add_data(l, l->at, at, sign > 0 ? l->text[sign] : 0, true);
        l->line += lines_in(l->text + at, size);
        l->at = at + size;
        l->starts_line = l->text[l->at - 1] == '\n';
        return DT_OK;
    }
    return fail_at(l, l->line, "{%% raw %%} has no end");
}

/* --- inside of tags */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static dt_status read_name(lexer *l)
{
    size_t from = l->at;

    while (l->at < l->length && is_word(l->text[l->at]))
        l->at++;
    if (isdigit((unsigned char)l->text[from]))
        return fail_at(l, l->line, "'%.*s' is not a name",
                       (int)(l->at - from < 40 ? l->at - from : 40), l->text + from);
    add(l, DT_TOKEN_NAME, l->text + from, l->at - from);
    return DT_OK;
}

/* Returns where digits with single underscores between them end; `at` if there are none. */
static size_t skip_digits(const lexer *l, size_t at)
{
    while (at < l->length && (isdigit((unsigned char)l->text[at]) ||
                              (l->text[at] == '_' && at + 1 < l->length &&
                               isdigit((unsigned char)l->text[at + 1]) && at > l->at)))
        at++;
    return at;
}

/* Returns where a float ends; `from` if it is an integer. */
static size_t float_end(const lexer *l, size_t from)
{
    size_t at = skip_digits(l, from), more;
    bool real = false;

    if (l->at > 0 && l->text[l->at - 1] == '.')
        return from;
    if (at < l->length && l->text[at] == '.' && (more = skip_digits(l, at + 1)) > at + 1) {
        at = more;
        real = true;
    }
    if (at < l->length && (l->text[at] == 'e' || l->text[at] == 'E')) {
        size_t digits = at + 1;

        if (digits < l->length && (l->text[digits] == '+' || l->text[digits] == '-'))
            digits++;
        more = skip_digits(l, digits);
        if (more > digits)
            return more;
    }
    return real ? at : from;
}

static dt_status read_number(lexer *l)
{
    size_t end = float_end(l, l->at), used = 0;
    bool real = end > l->at;
    dt_jinja_token *token;
    char digits[64], *stop;
    int base = 10;

    if (!real) {
        const char *head = l->text + l->at;

        if (l->at + 2 < l->length && head[0] == '0' && strchr("xXoObB", head[1]) != NULL) {
            base = tolower((unsigned char)head[1]) == 'x'   ? 16
                   : tolower((unsigned char)head[1]) == 'o' ? 8
                                                            : 2;
            l->at += 2;
            for (end = l->at;
                 end < l->length && (isxdigit((unsigned char)l->text[end]) || l->text[end] == '_');
                 end++)
                ;
        } else {
            end = skip_digits(l, l->at);
        }
    }
    for (size_t i = l->at; i < end; i++)
        if (l->text[i] != '_' && used + 1 < sizeof(digits))
            digits[used++] = l->text[i];
    digits[used] = '\0';
    token = add(l, real ? DT_TOKEN_FLOAT : DT_TOKEN_INTEGER, l->text + l->at, end - l->at);
    errno = 0;
    if (real)
        token->real = strtod(digits, &stop);
    else
        token->integer = strtoll(digits, &stop, base);
    if (*stop != '\0' || used == 0 || (!real && errno != 0) || end - l->at >= sizeof(digits))
        return fail_at(l, l->line, "the number '%.*s' cannot be read",
                       (int)(end - l->at < 40 ? end - l->at : 40), l->text + l->at);
    l->at = end;
    if (l->at < l->length && is_word(l->text[l->at]))
        return fail_at(l, l->line, "the number '%.40s' is followed by a letter", digits);
    return DT_OK;
}

/* Reads up to `most` digits of a base at `at`. Returns how many there are. */
static int read_digits(uint32_t *out, const char *at, const char *end, int base, int most)
{
    int count = 0;

    for (*out = 0; count < most && at + count < end; count++) {
        char c = at[count];
        int digit = isdigit((unsigned char)c)    ? c - '0'
                    : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                                 : 99;

        if (digit >= base)
            break;
        *out = *out * (uint32_t)base + (uint32_t)digit;
    }
    return count;
}

/* Appends what an escape stands for, and returns where it ends; NULL if it is broken. at[0] is the backslash. */
static const char *unescape(dt_strbuf *out, const char *at, const char *end)
{
    static const char plain[] = "\\'\"abfnrtv", meant[] = "\\'\"\a\b\f\n\r\t\v";
    const char *known = strchr(plain, at[1]);
    char utf8[DT_UTF8_MAX];
    uint32_t code;
    int digits;

    if (at[1] == '\n')
        return at + 2;
    if (known != NULL && at[1] != '\0') {
        dt_strbuf_add_char(out, meant[known - plain]);
        return at + 2;
    }
    if (at[1] >= '0' && at[1] <= '7') {
        digits = read_digits(&code, at + 1, end, 8, 3);
        at += 1 + digits;
    } else if (at[1] == 'x' || at[1] == 'u' || at[1] == 'U') {
        int most = at[1] == 'x' ? 2 : at[1] == 'u' ? 4 : 8;

        digits = read_digits(&code, at + 2, end, 16, most);
        if (digits < most)
            return NULL;
        at += 2 + digits;
    } else {
        if (at[1] == 'N')
            return NULL;
        dt_strbuf_add_char(out, '\\');
        return at + 1;
    }
    if (code >= DT_UTF8_CODES || (code >= 0xd800 && code < 0xe000))
        return NULL;
    dt_strbuf_add(out, utf8, dt_utf8_encode(utf8, code));
    return at;
}

static dt_status read_string(lexer *l)
{
    const char *from = l->text + l->at + 1, *end = l->text + l->length, *at = from, *next;
    char quote = l->text[l->at];
    dt_status st = DT_OK;
    dt_strbuf value;

    dt_strbuf_init(&value);
    while (at < end && *at != quote)
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    if (at >= end)
        DT_THROW(l->err, DT_ERR_UNSUPPORTED, "'%s', line %d: the string has no end", l->name,
                 l->line);
    end = at;
    for (at = from; at < end; at = next) {
        const char *slash = memchr(at, '\\', (size_t)(end - at));

        dt_strbuf_add(&value, at, (size_t)((slash != NULL ? slash : end) - at));
        next = slash != NULL ? unescape(&value, slash, end) : end;
        if (next == NULL)
            DT_THROW(l->err, DT_ERR_UNSUPPORTED, "'%s', line %d: unsupported escape '%.6s'",
                     l->name, l->line, slash);
    }
    add(l, DT_TOKEN_STRING,
        dt_arena_strndup(l->arena, value.data != NULL ? value.data : "", value.length),
        value.length);
    l->line += lines_in(from, (size_t)(end - from));
    l->at = (size_t)(end - l->text) + 1;
out:
    dt_strbuf_release(&value);
    return st;
}

static dt_status read_operator(lexer *l, char *open, int *depth)
{
    static const char *const operators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                            "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                            ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    const char *found = NULL;

    for (size_t i = 0; found == NULL && i < sizeof(operators) / sizeof(operators[0]); i++)
        if (follows(l, l->at, operators[i]))
            found = operators[i];
    if (found == NULL)
        return fail_at(l, l->line, "unexpected character '%.1s'", l->text + l->at);
    if (strchr("([{", found[0]) != NULL) {
        if (*depth == NESTED_MOST)
            return fail_at(l, l->line, "more than %d brackets in one another", NESTED_MOST);
        open[(*depth)++] = found[0] == '(' ? ')' : found[0] == '[' ? ']' : '}';
    } else if (strchr(")]}", found[0]) != NULL) {
        if (*depth == 0 || open[*depth - 1] != found[0])
            return fail_at(l, l->line, "unexpected '%s'", found);
        (*depth)--;
    }
    add(l, DT_TOKEN_OPERATOR, found, strlen(found));
    l->at += strlen(found);
    return DT_OK;
}

/* Returns the bytes of the end of the tag, with what it drops; 0: another token. */
static size_t tag_end(const lexer *l, tag kind)
{
    const char *end = kind == TAG_BLOCK ? "%}" : "}}";
    size_t at = l->at;

    if (l->text[at] == '-' && follows(l, at + 1, end))
        return skip_spaces(l, at + 3) - l->at;
    if (kind == TAG_BLOCK && l->text[at] == '+' && follows(l, at + 1, end))
        return 3;
    if (!follows(l, at, end))
        return 0;
    return kind == TAG_BLOCK && at + 2 < l->length && l->text[at + 2] == '\n' ? 3 : 2;
}

static dt_status read_tag(lexer *l, tag kind)
{
    char open[NESTED_MOST];
    dt_status st = DT_OK;
    int depth = 0, line = l->line;
    size_t space, end;

    add(l, kind == TAG_BLOCK ? DT_TOKEN_BLOCK_BEGIN : DT_TOKEN_PRINT_BEGIN, "", 0);
    while (l->at < l->length) {
        char c = l->text[l->at];

        if (depth == 0 && (end = tag_end(l, kind)) > 0) {
            add(l, kind == TAG_BLOCK ? DT_TOKEN_BLOCK_END : DT_TOKEN_PRINT_END, "", 0);
            l->line += lines_in(l->text + l->at, end);
            l->at += end;
            l->starts_line = l->text[l->at - 1] == '\n';
            goto out;
        }
        if ((space = dt_space_at(l->text, l->length, l->at)) > 0) {
            l->line += c == '\n';
            l->at += space;
        } else if (isdigit((unsigned char)c)) {
            DT_TRY(read_number(l));
        } else if (is_word(c)) {
            DT_TRY(read_name(l));
        } else if (c == '\'' || c == '"') {
            DT_TRY(read_string(l));
        } else {
            DT_TRY(read_operator(l, open, &depth));
        }
    }
    st = fail_at(l, line, "the tag has no end");
out:
    return st;
}

/* Copies the text with "\n" for each line break, without the last one, as Jinja reads it. */
static const char *normalize_lines(dt_arena *arena, const char *text, size_t *length)
{
    char *made = dt_arena_alloc(arena, *length + 1), *to = made;

    for (size_t i = 0; i < *length; i++) {
        if (text[i] == '\r' && i + 1 < *length && text[i + 1] == '\n')
            continue;
        *to++ = text[i] == '\r' ? '\n' : text[i];
    }
    if (to > made && to[-1] == '\n')
        to--;
    *length = (size_t)(to - made);
    return made;
}

dt_status dt_jinja_lex(dt_jinja_tokens *out, const char *text, size_t length, const char *name,
                       dt_arena *arena, dt_error *err)
{
    lexer l = {
        .tokens = out, .name = name, .line = 1, .starts_line = true, .arena = arena, .err = err};
    dt_status st = DT_OK;

    l.text = normalize_lines(arena, text, &length);
    l.length = length;
    while (l.at < l.length) {
        size_t at, sign = 0, raw;
        tag kind = next_tag(&l, &at);

        if (kind == TAG_NONE) {
            add(&l, DT_TOKEN_DATA, l.text + l.at, l.length - l.at);
            break;
        }
        raw = kind == TAG_BLOCK ? raw_tag(&l, at, "raw", false, &sign) : 0;
        if (raw == 0)
            sign =
                at + 2 < l.length && (l.text[at + 2] == '-' || l.text[at + 2] == '+') ? at + 2 : 0;
        add_data(&l, l.at, at, sign > 0 ? l.text[sign] : 0, kind != TAG_PRINT);
        if (raw > 0) {
            l.line += lines_in(l.text + at, raw);
            l.at = at + raw;
            l.starts_line = l.text[l.at - 1] == '\n';
            DT_TRY(read_raw(&l));
            continue;
        }
        l.at = at + 2 + (sign > 0);
        DT_TRY(kind == TAG_COMMENT ? read_comment(&l) : read_tag(&l, kind));
    }
    add(&l, DT_TOKEN_END, "", 0);
out:
    return st;
}
