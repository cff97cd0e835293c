/* secrets: recognizes words and variables that look like secrets.
 *
 * A flag looks like one if the last part of its name is key, token, password or the like ("--hub_token X"), unless the part
 * before says what kind of key or token it is ("--text_key", "--pad_token"), or its value is a number. A value looks like
 * one if it begins with "hf_", "sk-" and the like.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runner/convert/tool.h"

static bool is_in(const char *list, const char *word, size_t length)
{
    for (const char *at = list; *at != '\0'; at += strcspn(at, " ") + (strchr(at, ' ') != NULL))
        if (strcspn(at, " ") == length && strncasecmp(at, word, length) == 0)
            return true;
    return false;
}

/* Returns true for a name such as "hub_token", "wandb-key", "OPENAI_API_KEY". */
static bool is_secret_name(const char *name, size_t length)
{
    static const char last[] =
        "key keys apikey token tokens password passwd passphrase secret secrets credential "
        "credentials pat";
    static const char kinds[] =
        "pad eos bos unk mask sep cls image video audio special stop text label input output "
        "prompt response caption data dataset sort group target source query json column feature "
        "primary max min num per n total batch foreign tokens start end begin user assistant "
        "system message messages image_text ignore separator add";
    size_t at = length, before;

    while (at > 0 && strchr("_-.", name[at - 1]) == NULL)
        at--;
    if (!is_in(last, name + at, length - at))
        return false;
    if (at == 0)
        return true;
    before = --at;
    while (before > 0 && strchr("_-.", name[before - 1]) == NULL)
        before--;
    return !is_in(kinds, name + before, at - before);
}

static bool is_secret_value(const char *value)
{
    static const struct {
        const char *prefix;
        size_t length; /* of the whole value, at least */
    } forms[] = {{"hf_", 12},    {"sk-", 12},  {"ghp_", 12},  {"github_pat_", 16},
                 {"glpat-", 12}, {"AKIA", 16}, {"xoxb-", 12}, {"wandb_v1_", 12}};

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (strncmp(value, forms[i].prefix, strlen(forms[i].prefix)) == 0 &&
            strlen(value) >= forms[i].length &&
            value[strspn(
                value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0')
            return true;
    return false;
}

/* Returns true for values that are not secrets: numbers, True, names of files, placeholders. */
static bool is_harmless(const char *value)
{
    char *end;

    (void)strtod(value, &end);
    return value[0] == '\0' || *end == '\0' || value[0] == '<' || value[0] == '/' ||
           strncmp(value, "./", 2) == 0 || strstr(value, "${") != NULL ||
           is_in("true false none null yes no auto", value, strlen(value));
}

bool dt_secret_is_variable(const char *assignment)
{
    size_t length = dt_shell_assigned(assignment);
    const char *value = assignment + length + 1;

    return length > 0 &&
           ((is_secret_name(assignment, length) && !is_harmless(value)) || is_secret_value(value));
}

const char *dt_secret_reason(const char *word, const char *next, dt_arena *arena)
{
    size_t dashes = strspn(word, "-"), length = strcspn(word, "=");
    const char *value = word[length] == '=' ? word + length + 1 : next;
    bool flag = dashes > 0 || word[length] == '=';

    if (flag && dashes < length && value != NULL && (value[0] != '-' || word[length] == '=') &&
        ((is_secret_name(word + dashes, length - dashes) && !is_harmless(value)) ||
         (word[length] == '=' && is_secret_value(value))))
        return dt_arena_printf(
            arena,
            "'%.*s' has a value that looks like a secret, and a recipe and the history would show "
            "it: remove it, and write 'env: {NAME: \"${env:NAME}\"}' with the variable that the "
            "program reads",
            (int)length, word);
    if (is_secret_value(word))
        return "a word looks like a secret, and a recipe and the history would show it: remove it, "
               "and write 'env: {NAME: \"${env:NAME}\"}' with the variable that the program reads";
    return NULL;
}
