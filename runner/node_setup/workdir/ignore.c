#include "runner/node_setup/workdir/ignore.h"

#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef enum token_kind {
    TOKEN_LETTER, /* this byte */
    TOKEN_SET,    /* a byte of the set, but not '/' */
    TOKEN_STAR,   /* any number of bytes other than '/' */
    TOKEN_DEEP,   /* any number of bytes */
    /* "**" and its slash: no folder, or with the token after it, TOKEN_BELOW, some folders */
    TOKEN_FOLDERS,
    TOKEN_BELOW
} token_kind;

typedef struct token {
    token_kind kind;
    unsigned char letter;
    uint8_t set[32]; /* a bit for each byte */
} token;

struct dt_ignore_rule {
    char *base; /* folder of the rule; "" for the root */
    char *text, *file;
    token *tokens;
    size_t count;
    bool takes_in, folders_only, whole_path;
};

/* --- reading a pattern */

static bool in_set(const uint8_t *set, unsigned char c)
{
    return (set[c >> 3] >> (c & 7) & 1) != 0;
}

static void add_to_set(uint8_t *set, unsigned char c)
{
    set[c >> 3] = (uint8_t)(set[c >> 3] | 1u << (c & 7));
}

/* Adds a class such as "alpha"; false: unknown. */
static bool add_class(uint8_t *set, const char *name, size_t length)
{
    static const struct {
        const char *name;
        int (*has)(int);
    } classes[] = {{"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank},
                   {"cntrl", iscntrl}, {"digit", isdigit}, {"graph", isgraph},
                   {"lower", islower}, {"print", isprint}, {"punct", ispunct},
                   {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit}};

    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (strlen(classes[i].name) != length || strncmp(classes[i].name, name, length) != 0)
            continue;
        for (int c = 0; c < 128; c++)
            if (classes[i].has(c))
                add_to_set(set, (unsigned char)c);
        return true;
    }
    return false;
}

/* Reads "[...]" from the bracket on. Returns its end; NULL: it has none, or is malformed. */
static const char *read_set(uint8_t *set, const char *at)
{
    bool negated = *++at == '!' || *at == '^';
    unsigned char before = 0; /* start of a range; 0: none */

    memset(set, 0, 32);
    at += negated;
    do {
        unsigned char c = (unsigned char)*at;

        if (c == '[' && at[1] == ':') {
            const char *name = at + 2, *end = strchr(name, ']');

            if (end == NULL)
                return NULL;
            if (end > name && end[-1] == ':') {
                if (!add_class(set, name, (size_t)(end - 1 - name)))
                    return NULL;
                before = 0;
                at = end + 1;
                continue;
            }
        }
        if (c == '-' && before != 0 && at[1] != '\0' && at[1] != ']') {
            unsigned char last = (unsigned char)*++at;

            if (last == '\\' && (last = (unsigned char)*++at) == '\0')
                return NULL;
            for (int i = before; i <= last; i++)
                add_to_set(set, (unsigned char)i);
            before = 0;
            at++;
            continue;
        }
        if (c == '\\')
            c = (unsigned char)*++at;
        if (c == '\0')
            return NULL;
        add_to_set(set, c);
        before = c;
        at++;
    } while (*at != ']');
    for (int i = 0; negated && i < 32; i++)
        set[i] = (uint8_t)~set[i];
    return at + 1;
}

/* Adds the tokens of the stars at `at`. Returns where the pattern continues. */
static const char *read_stars(dt_ignore_rule *rule, const char *pattern, const char *at)
{
    bool starts = at == pattern || at[-1] == '/', several = at[1] == '*';

    at += strspn(at, "*");
    if (several && starts && *at == '/') {
        rule->tokens[rule->count++].kind = TOKEN_FOLDERS;
        rule->tokens[rule->count++].kind = TOKEN_BELOW;
        return at + 1;
    }
    rule->tokens[rule->count++].kind = several && starts && *at == '\0' ? TOKEN_DEEP : TOKEN_STAR;
    return at;
}

/* Reads the tokens; false: the pattern matches nothing. */
static bool read_tokens(dt_ignore_rule *rule, const char *pattern)
{
    const char *at = pattern;

    rule->tokens = dt_calloc(strlen(pattern) + 1, sizeof(rule->tokens[0]));
    while (*at != '\0') {
        token *next = &rule->tokens[rule->count];

        if (*at == '*') {
            at = read_stars(rule, pattern, at);
            continue;
        }
        rule->count++;
        if (*at == '[' || *at == '?') {
            next->kind = TOKEN_SET;
            if (*at == '?') {
                memset(next->set, 0xff, sizeof(next->set));
                at++;
            } else if ((at = read_set(next->set, at)) == NULL) {
                return false;
            }
            continue;
        }
        if (*at == '\\' && *++at == '\0')
            return false;
        next->letter = (unsigned char)*at++;
    }
    return true;
}

/* Removes blanks at the end of a line, except one after a backslash. */
static void trim(char *line)
{
    char *blanks = NULL;

    for (char *at = line; *at != '\0'; at++) {
        if (*at == ' ') {
            if (blanks == NULL)
                blanks = at;
            continue;
        }
        blanks = NULL;
        if (*at == '\\' && *++at == '\0')
            return;
    }
    if (blanks != NULL)
        *blanks = '\0';
}

static void free_rule(dt_ignore_rule *rule)
{
    free(rule->base);
    free(rule->text);
    free(rule->file);
    free(rule->tokens);
}

static void add_line(dt_ignore *ignore, const char *base, const char *file, char *line)
{
    dt_ignore_rule rule = {0};
    size_t length;

    trim(line);
    rule.text = dt_strdup(line);
    rule.file = dt_strdup(file);
    rule.takes_in = *line == '!';
    line += rule.takes_in;
    length = strlen(line);
    if (length > 0 && line[length - 1] == '/') {
        rule.folders_only = true;
        line[--length] = '\0';
    }
    rule.whole_path = strchr(line, '/') != NULL;
    line += rule.whole_path && *line == '/';
    if (!read_tokens(&rule, line) || rule.count == 0) {
        free_rule(&rule);
        return;
    }
    rule.base = dt_strdup(base);
    if (ignore->count == ignore->capacity) {
        ignore->capacity = ignore->capacity * 2 + 16;
        ignore->rules = dt_realloc(ignore->rules, ignore->capacity, sizeof(ignore->rules[0]));
    }
    ignore->rules[ignore->count++] = rule;
}

/* --- matching: all positions in the tokens that the bytes so far can have led to */

/* Adds a position, and those that tokens which match nothing lead to. */
static void reach(bool *at, const dt_ignore_rule *rule, size_t position)
{
    for (;;) {
        at[position] = true;
        if (position == rule->count)
            return;
        if (rule->tokens[position].kind == TOKEN_FOLDERS)
            position += 2;
        else if (rule->tokens[position].kind == TOKEN_STAR ||
                 rule->tokens[position].kind == TOKEN_DEEP)
            position++;
        else
            return;
    }
}

static void step(bool *next, const dt_ignore_rule *rule, size_t position, unsigned char c)
{
    const token *one = &rule->tokens[position];

    switch (one->kind) {
    case TOKEN_LETTER:
        if (one->letter == c)
            reach(next, rule, position + 1);
        break;
    case TOKEN_SET:
        if (c != '/' && in_set(one->set, c))
            reach(next, rule, position + 1);
        break;
    case TOKEN_STAR:
        if (c != '/')
            reach(next, rule, position);
        break;
    case TOKEN_DEEP:
        reach(next, rule, position);
        break;
    case TOKEN_FOLDERS:
        next[position + 1] = true;
        break;
    case TOKEN_BELOW:
        next[position] = true;
        if (c == '/')
            reach(next, rule, position + 1);
        break;
    }
}

static bool matches(const dt_ignore_rule *rule, const char *text)
{
    bool *at = dt_calloc(2 * (rule->count + 1), sizeof(*at)), *next = at + rule->count + 1;
    bool *memory = at, matched, any = true;

    reach(at, rule, 0);
    for (; *text != '\0' && any; text++) {
        bool *swap = at;

        any = false;
        memset(next, 0, (rule->count + 1) * sizeof(*next));
        for (size_t i = 0; i < rule->count; i++)
            if (at[i])
                step(next, rule, i, (unsigned char)*text);
        for (size_t i = 0; i <= rule->count; i++)
            any = any || next[i];
        at = next;
        next = swap;
    }
    matched = any && at[rule->count];
    free(memory);
    return matched;
}

/* Returns the part of the path that the rule is matched against; NULL: it is not in the rule's folder. */
static const char *subject(const dt_ignore_rule *rule, const char *path)
{
    size_t length = strlen(rule->base);
    const char *slash;

    if (length > 0 && (strncmp(path, rule->base, length) != 0 || path[length] != '/'))
        return NULL;
    if (rule->whole_path)
        return path + length + (length > 0);
    slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* --- the rules of all folders */

void dt_ignore_init(dt_ignore *ignore)
{
    *ignore = (dt_ignore){0};
}

void dt_ignore_release(dt_ignore *ignore)
{
    dt_ignore_cut(ignore, 0);
    free(ignore->rules);
    *ignore = (dt_ignore){0};
}

void dt_ignore_cut(dt_ignore *ignore, size_t count)
{
    while (ignore->count > count)
        free_rule(&ignore->rules[--ignore->count]);
}

void dt_ignore_add(dt_ignore *ignore, const char *base, const char *file, const char *text,
                   size_t length)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of an editor, before the first line */
    const char *at = text, *end = text + length;

    if (length >= 3 && memcmp(text, mark, 3) == 0)
        at += 3;
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at)), *last;
        char *line;

        line_end = line_end != NULL ? line_end : end;
        last = line_end > at && line_end[-1] == '\r' ? line_end - 1 : line_end;
        line = dt_calloc((size_t)(last - at) + 1, 1);
        memcpy(line, at, (size_t)(last - at));
        if (line[0] != '\0' && line[0] != '#')
            add_line(ignore, base, file, line);
        free(line);
        at = line_end + 1;
    }
}

const dt_ignore_rule *dt_ignore_find(const dt_ignore *ignore, const char *path, bool is_folder)
{
    for (size_t i = ignore->count; i-- > 0;) {
        const dt_ignore_rule *rule = &ignore->rules[i];
        const char *text;

        if (rule->folders_only && !is_folder)
            continue;
        text = subject(rule, path);
        if (text != NULL && matches(rule, text))
            return rule->takes_in ? NULL : rule;
    }
    return NULL;
}

bool dt_ignore_has(const dt_ignore *ignore, const char *path, bool is_folder)
{
    return dt_ignore_find(ignore, path, is_folder) != NULL;
}

const char *dt_ignore_rule_text(const dt_ignore_rule *rule)
{
    return rule->text;
}

const char *dt_ignore_rule_file(const dt_ignore_rule *rule)
{
    return rule->file;
}
