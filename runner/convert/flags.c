#include "runner/convert/flags.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/values.h"
#include "runner/cli/suggest.h"

#include "base/banned.h"

/* --- names --- */

/* Compares names. '_' and '-' are equal, except for the dashes at the beginning. */
static bool same_name(const char *name, const char *typed, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char a = name[i] == '_' ? '-' : name[i], b = typed[i] == '_' ? '-' : typed[i];

        if (a != b || name[i] == '\0')
            return false;
    }
    return name[length] == '\0';
}

size_t dt_flags_row(const dt_flag_table *table, const char *name, size_t length)
{
    size_t i = 0;

    while (i < table->count && !same_name(table->flags[i].name, name, length) &&
           (table->flags[i].also == NULL || !same_name(table->flags[i].also, name, length)))
        i++;
    return i;
}

const char *dt_flags_suggestion(const dt_flags *flags, const char *name)
{
    const dt_flag_table *table = flags->table;
    const char **names =
        dt_arena_alloc_array(flags->draft->arena, table->count + 1, sizeof(names[0]));
    const char *meant;

    for (size_t i = 0; i < table->count; i++)
        names[i] = table->flags[i].name;
    meant = dt_suggest(name, names);
    if (meant == NULL)
        return "";
    return dt_arena_printf(flags->draft->arena, " (did you mean '%s'?)", meant);
}

/* --- values --- */

static dt_status read_number(double *out, const dt_flag *flag, const char *text, dt_error *err)
{
    bool whole = flag->takes == DT_TAKES_INT;
    char *end;

    *out = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(*out) ||
        (whole && (*out != floor(*out) || fabs(*out) > 9e15)))
        return DT_FAIL(err, DT_ERR_USAGE, "%s: expected a %snumber, got '%s'", flag->name,
                       whole ? "whole " : "", text);
    return DT_OK;
}

static dt_status read_value(dt_flag_use *use, const dt_flag *flag, const char *text, dt_error *err)
{
    bool is_true = strcmp(text, "True") == 0 || strcmp(text, "true") == 0;

    switch (flag->takes) {
    case DT_TAKES_INT:
    case DT_TAKES_NUMBER:
        return read_number(&use->number, flag, text, err);
    case DT_TAKES_BOOL:
        use->number = is_true;
        if (!is_true && strcmp(text, "False") != 0 && strcmp(text, "false") != 0)
            return DT_FAIL(err, DT_ERR_USAGE, "%s: expected True or False, got '%s'", flag->name,
                           text);
        return DT_OK;
    case DT_TAKES_NOTHING:
    case DT_TAKES_TEXT:
        break;
    }
    return DT_OK;
}

/* Returns true for a value that only a shell can expand, or that a recipe would expand from the environment. */
static bool is_open(const dt_shell_word *word)
{
    return word->open || strstr(word->text, "${") != NULL;
}

dt_status dt_flags_set(dt_flags *flags, size_t row, const dt_shell_word *value, const char *shown,
                       dt_error *err)
{
    const dt_flag *flag = &flags->table->flags[row];
    dt_flag_use *use = &flags->uses[row];

    if (use->shown != NULL && strcmp(use->shown, shown) != 0)
        dt_draft_note(flags->draft, use->shown, "it is given again, as %s; the last one counts",
                      shown);
    *use = (dt_flag_use){.shown = shown};
    dt_draft_give(flags->draft, shown, flag->into);
    if (value != NULL && is_open(value)) {
        if (!flags->table->numbers_open && flag->fate != DT_FLAG_LEFT)
            dt_draft_left(flags->draft, shown,
                          "only a shell knows this value: put it into the recipe yourself");
        return DT_OK;
    }
    use->text = value != NULL ? value->text : "true";
    return value != NULL ? read_value(use, flag, value->text, err) : DT_OK;
}

/* --- words --- */

static const char *show(dt_draft *draft, const dt_flag *flag, const dt_shell_word *value)
{
    const char *text = value == NULL
                           ? dt_arena_strdup(draft->arena, flag->name)
                           : dt_arena_printf(draft->arena, "%s %s", flag->name, value->text);

    return text != NULL ? text : flag->name;
}

/* Returns true for a word that looks like a flag; "-1" and "-.5" are numbers. */
static bool is_flag(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && strchr("0123456789.", word[1]) == NULL;
}

/* Skips an unknown flag together with the next word, unless that is a flag. */
static size_t pass_over(dt_flags *flags, const dt_shell_word *words, size_t at, size_t count)
{
    bool takes = strchr(words[at].text, '=') == NULL && at + 1 < count &&
                 !is_flag(words[at + 1].text) && !flags->table->stops_at_operand;
    size_t length = strcspn(words[at].text, "=");
    char *name = dt_arena_strndup(flags->draft->arena, words[at].text, length);
    const char *about =
        takes ? dt_arena_printf(flags->draft->arena, "%s %s", words[at].text, words[at + 1].text)
              : words[at].text;

    dt_draft_left(flags->draft, about, "unknown flag%s", dt_flags_suggestion(flags, name));
    return takes ? 2 : 1;
}

/* Splits "-N2" into the row of -N and the value 2. Returns the table's count if the word has
 * another form. */
static size_t split_attached(const dt_flag_table *table, const dt_shell_word *word,
                             dt_shell_word *value)
{
    size_t row = table->count;

    if (table->attached && word->text[1] != '-' && word->text[2] != '\0')
        row = dt_flags_row(table, word->text, 2);
    if (row < table->count && table->flags[row].takes != DT_TAKES_NOTHING)
        *value = (dt_shell_word){word->text + 2, word->line, word->open};
    else
        row = table->count;
    return row;
}

/* Reads one flag and its value. *taken: the number of words that were read. */
static dt_status take_flag(size_t *taken, dt_flags *flags, const dt_shell_word *words, size_t at,
                           size_t count, dt_error *err)
{
    const dt_flag_table *table = flags->table;
    const dt_shell_word *word = &words[at];
    size_t length = strcspn(word->text, "="), row = dt_flags_row(table, word->text, length);
    bool has_value = word->text[length] == '=', attached = false;
    dt_shell_word value = {word->text + length + has_value, word->line, word->open};
    const dt_flag *flag;

    *taken = 1;
    if (row == table->count) {
        row = split_attached(table, word, &value);
        attached = row < table->count;
    }
    if (row == table->count) {
        *taken = pass_over(flags, words, at, count);
        return DT_OK;
    }
    flag = &table->flags[row];
    if (flag->takes == DT_TAKES_NOTHING) {
        if (has_value)
            return DT_FAIL(err, DT_ERR_USAGE, "%s takes no value, got '%s'", flag->name,
                           value.text);
        return dt_flags_set(flags, row, NULL, show(flags->draft, flag, NULL), err);
    }
    if (!has_value && !attached) {
        if (at + 1 == count || is_flag(words[at + 1].text))
            return DT_FAIL(err, DT_ERR_USAGE, "%s: its value is missing", flag->name);
        value = words[at + 1];
        *taken = 2;
    }
    return dt_flags_set(flags, row, &value, show(flags->draft, flag, &value), err);
}

dt_status dt_flags_read(dt_flags *out, const dt_flag_table *table, const dt_shell_word *words,
                        size_t count, dt_draft *draft, dt_error *err)
{
    dt_status st = DT_OK;
    size_t taken;

    *out =
        (dt_flags){.table = table,
                   .draft = draft,
                   .uses = dt_arena_alloc_array(draft->arena, table->count, sizeof(out->uses[0]))};
    while (out->taken < count && st == DT_OK) {
        const dt_shell_word *word = &words[out->taken];

        taken = 1;
        if (is_flag(word->text) && strcmp(word->text, "--") != 0)
            st = take_flag(&taken, out, words, out->taken, count, err);
        else if (table->stops_at_operand)
            break;
        else if (strcmp(word->text, "--") != 0)
            st = dt_shell_add_word(&out->operands, word, draft->arena, err);
        out->taken += taken;
    }
    return st;
}
