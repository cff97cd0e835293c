/* tree_remedy: says what to do about a text that libyaml refuses (recipes/read/read_int.h). */
#include <stdio.h>
#include <string.h>

#include "recipes/fields/values.h"
#include "recipes/read/read_int.h"

#define PATH_SIZE  128
#define SHOWN_MOST 60

/* One line of the text, without its line break. */
typedef struct line {
    const char *text;
    size_t length;
    size_t indent; /* blanks at its start */
} line;

typedef struct place {
    const dt_yaml_fault *fault;
    dt_yaml_remedy *out;
    line here;  /* the line of the fault */
    line above; /* the last line above it that is neither blank nor a comment; text NULL: none */
    size_t above_number;
    size_t at; /* byte of the fault in `here` */
} place;

/* --- lines and words --- */

static line line_at(const char *text)
{
    line out = {.text = text, .length = strcspn(text, "\r\n")};

    out.indent = strspn(text, " ");
    if (out.indent > out.length)
        out.indent = out.length;
    return out;
}

static bool has_content(const line *of)
{
    return of->length > of->indent && of->text[of->indent] != '#';
}

/* Finds the lines of the fault; false if the text ends before it. */
static bool find_lines(place *out)
{
    const char *text = out->fault->text;

    for (size_t number = 0;; number++) {
        line found = line_at(text);

        if (number == out->fault->line) {
            out->here = found;
            break;
        }
        if (has_content(&found)) {
            out->above = found;
            out->above_number = number;
        }
        text += found.length;
        if (*text == '\0')
            return false;
        text += text[0] == '\r' && text[1] == '\n' ? 2 : 1;
    }
    for (size_t column = 0; column < out->fault->column && out->at < out->here.length; column++)
        do
            out->at++;
        while (out->at < out->here.length &&
               ((unsigned char)out->here.text[out->at] & 0xc0) == 0x80);
    return true;
}

static char char_at(const place *p, size_t at)
{
    return at < p->here.length ? p->here.text[at] : '\0';
}

/* Returns the number of characters before the byte. */
static size_t column_of(const line *of, size_t byte)
{
    size_t column = 0;

    for (size_t i = 0; i < byte && i < of->length; i++)
        column += ((unsigned char)of->text[i] & 0xc0) != 0x80;
    return column;
}

static void move_to(const place *p, size_t byte)
{
    p->out->column = column_of(&p->here, byte);
}

/* Returns the byte of the last ": " before `end`; the line's length if there is none. */
static size_t find_colon(const line *of, size_t end)
{
    for (size_t i = end; i-- > of->indent;)
        if (of->text[i] == ':' && i + 1 < of->length && of->text[i + 1] == ' ')
            return i;
    return of->length;
}

static int shown(size_t length)
{
    return (int)(length > SHOWN_MOST ? SHOWN_MOST : length);
}

/* --- indentation --- */

/* Refuses the indentation of the line: "this line is indented by 3 spaces, line 4 above it by 2". */
static void suggest_indent(const place *p)
{
    dt_strbuf_add_fmt(&p->out->message,
                      "wrong indentation: this line begins with %zu space%s, and line %zu above it "
                      "with %zu: keys of one map, and items of one list, begin in the same column",
                      p->here.indent, p->here.indent == 1 ? "" : "s", p->above_number + 1,
                      p->above.indent);
    move_to(p, p->here.indent);
}

/* Returns whether the fault is at the first word of its line. */
static bool is_at_start(const place *p)
{
    return p->at <= p->here.indent && p->above.text != NULL;
}

/* --- brackets and braces --- */

/* Returns the end of the plain word that holds the byte: a blank, a comma or the bracket that closes an outer one. */
static size_t end_of_word(const place *p, size_t from)
{
    size_t at = from;
    int depth = 0;

    for (; at < p->here.length; at++) {
        char c = p->here.text[at];

        if (c == '[' || c == '{')
            depth++;
        else if ((c == ']' || c == '}') && depth-- == 0)
            break;
        else if (depth == 0 && (c == ' ' || c == ','))
            break;
    }
    return at;
}

static size_t start_of_word(const place *p, size_t before)
{
    size_t at = before;

    while (at > 0 && strchr(" ,[{", p->here.text[at - 1]) == NULL)
        at--;
    return at;
}

/* "${env:X}" and "gpu[01-10]" inside braces: the bracket of the word looks like one of the recipe's. */
static bool suggest_bracket_in_word(const place *p)
{
    char bracket = char_at(p, p->at);
    size_t from = start_of_word(p, p->at), end = end_of_word(p, from);

    bool environment = bracket == '{' && from < p->at && char_at(p, p->at - 1) == '$' &&
                       strncmp(p->here.text + p->at, "{env:", 5) != 0;

    if ((bracket != '{' && bracket != '[') || from == p->at)
        return false;
    dt_strbuf_add_fmt(&p->out->message,
                      "inside braces and brackets, a text with '%c' needs quotes: \"%.*s%s%.*s\"",
                      bracket, shown(p->at + 1 - from), p->here.text + from,
                      environment ? "env:" : "", shown(end - p->at - 1), p->here.text + p->at + 1);
    move_to(p, from);
    return true;
}

/* "{train: a: b}", and "{steps: 10 kind: cosine}" without its comma. */
static bool suggest_colon_in_braces(const place *p)
{
    size_t colon = find_colon(&p->here, p->at), from, word;

    if (char_at(p, p->at) != ':' || colon == p->here.length)
        return false;
    from = colon + 1 + strspn(p->here.text + colon + 1, " ");
    word = start_of_word(p, p->at);
    if (word > from && memchr(p->here.text + from, ',', p->at - from) == NULL) {
        dt_strbuf_add_fmt(&p->out->message,
                          "a comma is missing before '%.*s', or the value needs quotes",
                          shown(p->at - word), p->here.text + word);
        move_to(p, word);
        return true;
    }
    dt_strbuf_add_str(&p->out->message, "a value with a colon and a blank needs quotes");
    move_to(p, from);
    return true;
}

static bool suggest_flow(const place *p)
{
    char c = char_at(p, p->at);

    if (suggest_bracket_in_word(p) || suggest_colon_in_braces(p))
        return true;
    if (c == ']' || c == '}') {
        dt_strbuf_add_fmt(&p->out->message, "a '%c' is missing before this '%c'",
                          c == ']' ? '}' : ']', c);
        return true;
    }
    dt_strbuf_add_fmt(&p->out->message, "%s: is a comma missing before it, or one too many?",
                      p->fault->problem);
    return true;
}

/* --- colons --- */

/* "optimizer: lr: 1e-3" has two keys in a line; "name: a: b" a value with a colon. */
static bool suggest_two_colons(const place *p)
{
    size_t colon = find_colon(&p->here, p->at), from;
    char path[PATH_SIZE];
    size_t key;

    if (colon == p->here.length)
        return false;
    from = colon + 1 + strspn(p->here.text + colon + 1, " ");
    key = colon - p->here.indent;
    snprintf(path, sizeof(path), "%.*s.%.*s", shown(key), p->here.text + p->here.indent,
             shown(p->at - from), p->here.text + from);
    if (dt_field_find(dt_field_unalias(path)) != NULL)
        dt_strbuf_add_fmt(&p->out->message, "two keys in one line need braces: '%.*s: {%.*s}'",
                          shown(key), p->here.text + p->here.indent, shown(p->here.length - from),
                          p->here.text + from);
    else
        dt_strbuf_add_fmt(&p->out->message,
                          "a value with a colon and a blank needs quotes: '%.*s: \"%.*s\"'",
                          shown(key), p->here.text + p->here.indent, shown(p->here.length - from),
                          p->here.text + from);
    move_to(p, from);
    return true;
}

/* "seed:1" in the line above, which therefore has no key. */
static bool suggest_missing_blank_above(const place *p)
{
    dt_strbuf *message = &p->out->message;

    if (p->above.text == NULL)
        return false;
    if (!dt_yaml_missing_blank(message, p->above.text + p->above.indent,
                               p->above.length - p->above.indent))
        return false;
    p->out->line = p->above_number;
    p->out->column = p->above.indent;
    return true;
}

bool dt_yaml_missing_blank(dt_strbuf *out, const char *text, size_t length)
{
    size_t key = 0;

    while (key < length &&
           (strchr("_-.", text[key]) != NULL || (text[key] >= 'a' && text[key] <= 'z') ||
            (text[key] >= 'A' && text[key] <= 'Z') || (text[key] >= '0' && text[key] <= '9')))
        key++;
    if (key == 0 || key + 1 >= length || text[key] != ':' || strchr(" /\\:", text[key + 1]) != NULL)
        return false;
    dt_strbuf_add_fmt(out, "a key is followed by a colon and a blank: '%.*s: %.*s'", shown(key),
                      text, shown(length - key - 1), text + key + 1);
    return true;
}

/* --- the rest --- */

/* Text after a closing quote or bracket, as in 'name: "a" b'. */
static bool suggest_after_end(const place *p)
{
    size_t before = p->at;

    while (before > 0 && char_at(p, before - 1) == ' ')
        before--;
    if (before == 0 || strchr("\"'}]", char_at(p, before - 1)) == NULL || p->at >= p->here.length)
        return false;
    dt_strbuf_add_fmt(&p->out->message,
                      "the value ends with the %c before this text: remove the text, begin a new "
                      "line, or put the whole value in quotes",
                      char_at(p, before - 1));
    return true;
}

static bool suggest_character(const place *p)
{
    char c = char_at(p, p->at);

    if (c == '\t')
        dt_strbuf_add_str(&p->out->message, "a tab before this value: use spaces");
    else if (c != '\0')
        dt_strbuf_add_fmt(&p->out->message, "a plain text cannot begin with '%c': put it in quotes",
                          c);
    return c != '\0';
}

static bool contains(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static bool say(const place *p)
{
    const char *problem = p->fault->problem, *context = p->fault->context;

    if (contains(context, "flow mapping") || contains(context, "flow sequence") ||
        contains(context, "flow node"))
        return suggest_flow(p);
    if (contains(problem, "mapping values are not allowed")) {
        if (suggest_two_colons(p) || suggest_missing_blank_above(p))
            return true;
        if (p->above.text == NULL || p->above.indent == p->here.indent)
            return false;
        suggest_indent(p);
        return true;
    }
    if (contains(problem, "did not find expected key") ||
        contains(problem, "did not find expected '-' indicator") ||
        contains(problem, "did not find expected <document start>")) {
        if (!is_at_start(p))
            return suggest_after_end(p);
        suggest_indent(p);
        return true;
    }
    if (contains(problem, "cannot start any token"))
        return suggest_character(p);
    if (contains(problem, "unknown escape character")) {
        dt_strbuf_add_str(&p->out->message,
                          "this backslash means nothing in double quotes: use single "
                          "quotes, or write '\\\\'");
        return true;
    }
    if (contains(context, "block scalar")) {
        dt_strbuf_add_str(
            &p->out->message,
            "the text of '|' or '>' begins in the next line: put this value in quotes, "
            "or in the next line");
        return true;
    }
    return false;
}

void dt_yaml_remedy_find(dt_yaml_remedy *out, const dt_yaml_fault *fault)
{
    place p = {.fault = fault, .out = out};

    out->line = fault->line;
    out->column = fault->column;
    dt_strbuf_init(&out->message);
    dt_strbuf_add_str(&out->message, "not YAML: ");
    if (find_lines(&p) && say(&p))
        return;
    dt_strbuf_reset(&out->message);
    dt_strbuf_add_fmt(
        &out->message,
        "not YAML: %s%s%s: check quotes, brackets and indentation of this line and the "
        "one above it",
        fault->problem, fault->context[0] != '\0' ? " " : "", fault->context);
}
