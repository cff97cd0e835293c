/* flags: reads a command line with a table of flags, returns the values of flags, and adds them to the
 * draft. */
#include "runner/convert/flags.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/values.h"
#include "runner/cli/options.h"

/* --- names --- */

/* Compares names. '_' and '-' are equal, except for the dashes at the beginning. */
static bool same_name(const char *name, const char *typed, size_t length, size_t name_length)
{
    if (name_length != length)
        return false;
    for (size_t i = 0; i < length; i++) {
        char a = name[i] == '_' ? '-' : name[i], b = typed[i] == '_' ? '-' : typed[i];

        if (a != b)
            return false;
    }
    return true;
}

/* Returns true if the name is one of `also`. */
static bool is_also(const char *also, const char *typed, size_t length)
{
    while (also != NULL && *also != '\0') {
        size_t name = strcspn(also, " ");

        if (name == length && same_name(also, typed, length, name))
            return true;
        also += name + (also[name] == ' ');
    }
    return false;
}

size_t dt_flags_row(const dt_flag_table *table, const char *name, size_t length)
{
    size_t i = 0;

    if (table->one_dash && length > 2 && name[0] == '-' && name[1] == '-') {
        name++; /* the table has the names with one dash */
        length--;
    }
    while (i < table->count &&
           !same_name(table->flags[i].name, name, length, strlen(table->flags[i].name)) &&
           !is_also(table->flags[i].also, name, length))
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
    case DT_TAKES_PAIR:
    case DT_TAKES_MAYBE:
        break;
    }
    return DT_OK;
}

static const char *line_of(const dt_shell_word *word, dt_arena *arena)
{
    return word->line > 0 ? dt_arena_printf(arena, "line %d: ", word->line) : "";
}

/* Fails for a value that only a shell can expand, or that a recipe would expand from the environment. */
static dt_status check_known(const dt_flags *flags, const dt_flag *flag, const dt_shell_word *value,
                             const char *shown, dt_error *err)
{
    if (flag->fate == DT_FLAG_LEFT)
        return DT_OK;
    if (value->open != NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "%s%s: %s", line_of(value, flags->draft->arena), shown,
                       value->open);
    if (strstr(value->text, "${") != NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "%s: a recipe would replace '${...}'", shown);
    return DT_OK;
}

dt_status dt_flags_set(dt_flags *flags, size_t row, const dt_shell_word *value, const char *shown,
                       dt_error *err)
{
    const dt_flag *flag = &flags->table->flags[row];
    dt_flag_use *use = &flags->uses[row];

    if (flag->takes == DT_TAKES_PAIR && flag->fate == DT_FLAG_LEFT) {
        dt_draft_left(flags->draft, shown, "%s", flag->into); /* it can be repeated */
        return DT_OK;
    }
    if (flag->fate == DT_FLAG_EACH && value != NULL) {
        flags->each = dt_arena_array_room(flags->draft->arena, flags->each, flags->each_count + 1,
                                          &flags->each_capacity, sizeof(flags->each[0]));
        flags->each[flags->each_count++] = (dt_flag_each){row, value->text};
    } else if (use->shown != NULL && strcmp(use->shown, shown) != 0) {
        dt_draft_note(flags->draft, use->shown, "it is given again, as %s; the last one counts",
                      shown);
    }
    *use = (dt_flag_use){.shown = shown};
    if (flag->fate != DT_FLAG_EACH)
        dt_draft_give(flags->draft, shown, flag->into);
    if (value != NULL && (value->open != NULL || strstr(value->text, "${") != NULL))
        return check_known(flags, flag, value, shown, err);
    use->text = value != NULL ? value->text : "true";
    return value != NULL ? read_value(use, flag, value->text, err) : DT_OK;
}

/* --- words --- */

/* Returns the flag as it is shown; flags that share a row only for their reason are shown as typed. */
static const char *show(dt_draft *draft, const dt_flag *flag, const dt_shell_word *word,
                        size_t length, const dt_shell_word *value)
{
    bool typed = flag->also != NULL && strchr(flag->also, ' ') != NULL &&
                 (flag->fate == DT_FLAG_LEFT || flag->fate == DT_FLAG_REFUSED);
    const char *name = typed ? dt_arena_strndup(draft->arena, word->text, length) : flag->name;

    return value == NULL ? name : dt_arena_printf(draft->arena, "%s %s", name, value->text);
}

/* Returns true for a word that looks like a flag; "-1" and "-.5" are numbers. */
static bool is_flag(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && strchr("0123456789.", word[1]) == NULL;
}

/* Skips an unknown flag together with the next word, unless that is a flag. */
static dt_status pass_over(size_t *taken, dt_flags *flags, const dt_shell_word *words, size_t at,
                           size_t count, dt_error *err)
{
    bool takes = strchr(words[at].text, '=') == NULL && at + 1 < count &&
                 !is_flag(words[at + 1].text) && !flags->table->stops_at_operand;
    size_t length = strcspn(words[at].text, "=");
    char *name = dt_arena_strndup(flags->draft->arena, words[at].text, length);
    const char *about =
        takes ? dt_arena_printf(flags->draft->arena, "%s %s", words[at].text, words[at + 1].text)
              : words[at].text;

    if (flags->table->strict)
        return DT_FAIL(err, DT_ERR_USAGE, "%s%s: unknown flag of %s%s",
                       line_of(&words[at], flags->draft->arena), words[at].text,
                       flags->table->program, dt_flags_suggestion(flags, name));
    dt_draft_left(flags->draft, about, "unknown flag%s", dt_flags_suggestion(flags, name));
    *taken = takes ? 2 : 1;
    return DT_OK;
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
        *value = (dt_shell_word){.text = word->text + 2, .line = word->line, .open = word->open};
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
    dt_shell_word value = {
        .text = word->text + length + has_value, .line = word->line, .open = word->open};
    const dt_flag *flag;

    *taken = 1;
    if (row == table->count) {
        row = split_attached(table, word, &value);
        attached = row < table->count;
    }
    if (row == table->count)
        return pass_over(taken, flags, words, at, count, err);
    flag = &table->flags[row];
    if (flag->fate == DT_FLAG_REFUSED)
        return DT_FAIL(err, DT_ERR_USAGE, "%s%s: %s", line_of(word, flags->draft->arena),
                       word->text, flag->into);
    if (flag->takes == DT_TAKES_NOTHING ||
        (flag->takes == DT_TAKES_MAYBE && !has_value && !attached)) {
        if (has_value)
            return DT_FAIL(err, DT_ERR_USAGE, "%s takes no value, got '%s'", flag->name,
                           value.text);
        return dt_flags_set(flags, row, NULL, show(flags->draft, flag, word, length, NULL), err);
    }
    if (flag->takes == DT_TAKES_PAIR) {
        if (at + 2 >= count)
            return DT_FAIL(err, DT_ERR_USAGE, "%s: its two values are missing", flag->name);
        value = words[at + 2];
        value.text =
            dt_arena_printf(flags->draft->arena, "%s=%s", words[at + 1].text, words[at + 2].text);
        value.open = value.open != NULL ? value.open : words[at + 1].open;
        *taken = 3;
    } else if (!has_value && !attached) {
        if (at + 1 == count || (is_flag(words[at + 1].text) && words[at + 1].open == NULL))
            return DT_FAIL(err, DT_ERR_USAGE, "%s: its value is missing", flag->name);
        value = words[at + 1];
        *taken = 2;
    }
    return dt_flags_set(flags, row, &value, show(flags->draft, flag, word, length, &value), err);
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

/* The values of flags that were read, and their fields in the draft. */

const dt_flag_use *dt_flags_get(const dt_flags *flags, const char *name)
{
    size_t row = dt_flags_row(flags->table, name, strlen(name));

    DT_ASSERT(row < flags->table->count);
    return &flags->uses[row];
}

bool dt_flags_given(const dt_flags *flags, const char *name)
{
    return dt_flags_get(flags, name)->text != NULL;
}

double dt_flags_number(const dt_flags *flags, const char *name, double fallback)
{
    const dt_flag_use *use = dt_flags_get(flags, name);

    return use->text != NULL ? use->number : fallback;
}

const char *dt_flags_text(const dt_flags *flags, const char *name, const char *fallback)
{
    const dt_flag_use *use = dt_flags_get(flags, name);

    return use->text != NULL ? use->text : fallback;
}

const char *dt_flags_from(const dt_flags *flags, const char *name)
{
    const dt_flag_use *use = dt_flags_get(flags, name);
    return use->text != NULL
               ? use->shown
               : dt_arena_printf(flags->draft->arena, "%s's default", flags->table->program);
}

const char *dt_flags_about(const dt_flags *flags, const char *name)
{
    const dt_flag_use *use = dt_flags_get(flags, name);

    return use->shown != NULL ? use->shown : name;
}

void dt_flags_set_number(dt_draft *draft, const dt_flags *flags, const char *path, const char *flag,
                         double fallback)
{
    dt_draft_number(draft, path, dt_flags_number(flags, flag, fallback), "%s",
                    dt_flags_from(flags, flag));
}

static void carry(const dt_flags *flags, const dt_flag *flag, const dt_flag_use *use)
{
    const dt_field *field = dt_field_find(flag->into);

    DT_ASSERT(field != NULL);
    if (flag->takes == DT_TAKES_INT || flag->takes == DT_TAKES_NUMBER)
        dt_draft_number(flags->draft, flag->into, use->number, "%s", use->shown);
    else if (field->type == DT_FIELD_BOOL)
        dt_draft_word(flags->draft, flag->into,
                      flag->takes == DT_TAKES_NOTHING || use->number != 0 ? "true" : "false", "%s",
                      use->shown);
    else
        dt_draft_text(flags->draft, flag->into, use->text, "%s", use->shown);
}

/* Returns true if the value needs no report. Numbers are compared by value: "0" equals "0.0". */
static bool loses_nothing(const dt_flag *flag, const dt_flag_use *use)
{
    bool number = flag->takes == DT_TAKES_INT || flag->takes == DT_TAKES_NUMBER;

    if (flag->loses_nothing == NULL || use->text == NULL)
        return false;
    return number ? strtod(flag->loses_nothing, NULL) == use->number
                  : strcmp(flag->loses_nothing, use->text) == 0;
}

void dt_flags_carry(const dt_flags *flags)
{
    for (size_t i = 0; i < flags->table->count; i++) {
        const dt_flag *flag = &flags->table->flags[i];
        const dt_flag_use *use = &flags->uses[i];

        if (flag->fate == DT_FLAG_FIELD && use->text != NULL)
            carry(flags, flag, use);
        else if (flag->fate == DT_FLAG_LEFT && use->shown != NULL && loses_nothing(flag, use))
            dt_draft_same(flags->draft, use->shown, flag->into);
        else if (flag->fate == DT_FLAG_LEFT && use->shown != NULL)
            dt_draft_left(flags->draft, use->shown, "%s", flag->into);
    }
}

void dt_flags_describe(dt_strbuf *out, const dt_flag_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const dt_flag *flag = &table->flags[i];
        size_t start = out->length, used;

        dt_strbuf_add_str(out, flag->name);
        if (flag->also != NULL)
            dt_strbuf_add_fmt(out, ", %s", flag->also);
        used = out->length - start;
        dt_strbuf_add_fmt(out, "%*s%s%s\n", used < 40 ? (int)(41 - used) : 1, "",
                          flag->fate == DT_FLAG_LEFT      ? "not carried: "
                          : flag->fate == DT_FLAG_REFUSED ? "refused: "
                                                          : "",
                          flag->into);
    }
}
