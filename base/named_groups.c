#include "base/named_groups.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"

#define GROUPS_MOST 64 /* groups in all, named or not */
#define NAME_MOST   64

struct dt_named_groups {
    regex_t expression;
    bool compiled;
    int count;
    char names[GROUPS_MOST][NAME_MOST];
    int numbers[GROUPS_MOST]; /* the group of each name in the expression */
    regmatch_t found[GROUPS_MOST + 1];
};

/* The translation of a pattern to a POSIX expression. */
typedef struct translation {
    dt_named_groups *groups;
    const char *at;
    int opened; /* groups so far, of the POSIX expression */
    dt_strbuf out;
} translation;

static dt_status refuse(const char *what, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_RECIPE, "%s is not supported in an expression", what);
}

/* Reads "name>" of a named group. */
static dt_status read_name(translation *t, dt_error *err)
{
    size_t length = 0;
    char *name;

    while (isalnum((unsigned char)t->at[length]) || t->at[length] == '_')
        length++;
    if (length == 0 || length >= NAME_MOST || t->at[length] != '>')
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "a name of a group has letters, digits and '_', as in '(?P<loss>...)'");
    name = t->groups->names[t->groups->count];
    memcpy(name, t->at, length);
    name[length] = '\0';
    if (dt_named_groups_find(t->groups, name) >= 0)
        return DT_FAIL(err, DT_ERR_RECIPE, "the group '%s' occurs twice", name);
    t->groups->numbers[t->groups->count++] = t->opened;
    t->at += length + 1;
    return DT_OK;
}

/* Translates a '(' and what follows it. */
static dt_status open_group(translation *t, dt_error *err)
{
    if (++t->opened > GROUPS_MOST)
        return DT_FAIL(err, DT_ERR_RECIPE, "an expression has at most %d groups", GROUPS_MOST);
    dt_strbuf_add_char(&t->out, '(');
    t->at++;
    if (*t->at != '?')
        return DT_OK;
    if (strncmp(t->at, "?:", 2) == 0) {
        t->at += 2;
        return DT_OK;
    }
    if (strncmp(t->at, "?P<", 3) == 0)
        t->at += 3;
    else if (strncmp(t->at, "?<", 2) == 0 && t->at[2] != '=' && t->at[2] != '!')
        t->at += 2;
    else
        return refuse("'(?' without a name", err);
    return read_name(t, err);
}

/* Returns the class of a letter after a backslash, without brackets; NULL: it is not a class. */
static const char *class_of(char letter)
{
    switch (letter) {
    case 'd':
        return "0-9";
    case 's':
        return "[:space:]";
    case 'w':
        return "[:alnum:]_";
    default:
        return NULL;
    }
}

static dt_status escape(translation *t, dt_error *err)
{
    char letter = t->at[1], low = (char)tolower((unsigned char)letter);
    const char *class = class_of(low);

    if (letter == '\0')
        return DT_FAIL(err, DT_ERR_RECIPE, "the expression ends with a backslash");
    if (class != NULL)
        dt_strbuf_add_fmt(&t->out, "[%s%s]", letter != low ? "^" : "", class);
    else if (letter == 't')
        dt_strbuf_add_char(&t->out, '\t');
    else if (isalnum((unsigned char)letter))
        return refuse("a backslash before this letter or digit", err);
    else
        dt_strbuf_add_fmt(&t->out, "\\%c", letter);
    t->at += 2;
    return DT_OK;
}

/* Translates a [...]: a backslash in it is an escape, which POSIX does not know. A ']' that is escaped
 * comes first in POSIX, and a '-' or '^' would change its meaning there: these are refused. */
static dt_status bracket(translation *t, dt_error *err)
{
    dt_strbuf_add_char(&t->out, *t->at++);
    if (*t->at == '^')
        dt_strbuf_add_char(&t->out, *t->at++);
    if (*t->at == ']')
        dt_strbuf_add_char(&t->out, *t->at++);
    while (*t->at != '\0' && *t->at != ']') {
        if (*t->at != '\\') {
            dt_strbuf_add_char(&t->out, *t->at++);
            continue;
        }
        if (class_of(t->at[1]) != NULL)
            dt_strbuf_add_str(&t->out, class_of(t->at[1]));
        else if (t->at[1] == '.' || t->at[1] == '+' || t->at[1] == '*' || t->at[1] == '/')
            dt_strbuf_add_char(&t->out, t->at[1]);
        else
            return refuse("this backslash inside '[...]'", err);
        t->at += 2;
    }
    if (*t->at == '\0')
        return DT_FAIL(err, DT_ERR_RECIPE, "a '[' is not closed");
    dt_strbuf_add_char(&t->out, *t->at++);
    return DT_OK;
}

static dt_status translate(translation *t, dt_error *err)
{
    dt_status st = DT_OK;

    while (*t->at != '\0') {
        if (*t->at == '(') {
            DT_TRY(open_group(t, err));
        } else if (*t->at == '\\') {
            DT_TRY(escape(t, err));
        } else if (*t->at == '[') {
            DT_TRY(bracket(t, err));
        } else if (strchr("*+?}", *t->at) != NULL && (t->at[1] == '?' || t->at[1] == '+')) {
            DT_TRY(refuse("a lazy or possessive repetition ('*?')", err));
        } else {
            dt_strbuf_add_char(&t->out, *t->at++);
        }
    }
out:
    return st;
}

dt_status dt_named_groups_open(dt_named_groups **out, const char *pattern, dt_error *err)
{
    translation t = {.groups = dt_calloc(1, sizeof(*t.groups)), .at = pattern};
    dt_status st = DT_OK;
    char words[256];
    int code;

    *out = NULL;
    dt_strbuf_init(&t.out);
    DT_TRY(translate(&t, err));
    code = regcomp(&t.groups->expression, t.out.data, REG_EXTENDED);
    if (code != 0) {
        regerror(code, &t.groups->expression, words, sizeof(words));
        DT_THROW(err, DT_ERR_RECIPE, "not a regular expression: %s", words);
    }
    t.groups->compiled = true;
    *out = t.groups;
    t.groups = NULL;
out:
    dt_strbuf_release(&t.out);
    dt_named_groups_close(t.groups);
    return st;
}

void dt_named_groups_close(dt_named_groups *groups)
{
    if (groups == NULL)
        return;
    if (groups->compiled)
        regfree(&groups->expression);
    free(groups);
}

int dt_named_groups_count(const dt_named_groups *groups)
{
    return groups->count;
}

const char *dt_named_groups_name(const dt_named_groups *groups, int index)
{
    return groups->names[index];
}

int dt_named_groups_find(const dt_named_groups *groups, const char *name)
{
    for (int i = 0; i < groups->count; i++)
        if (strcmp(groups->names[i], name) == 0)
            return i;
    return -1;
}

bool dt_named_groups_match(dt_named_groups *groups, const char *text)
{
    return regexec(&groups->expression, text, GROUPS_MOST + 1, groups->found, 0) == 0;
}

const char *dt_named_groups_text(const dt_named_groups *groups, int index, const char *text,
                                 size_t *length)
{
    const regmatch_t *found = &groups->found[groups->numbers[index]];

    if (found->rm_so < 0)
        return NULL;
    *length = (size_t)(found->rm_eo - found->rm_so);
    return text + found->rm_so;
}
