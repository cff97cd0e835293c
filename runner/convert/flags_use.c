/* flags_use: returns the values of flags that were read, and adds them to the draft. */
#include <stdlib.h>
#include <string.h>

#include "recipes/fields/values.h"
#include "runner/convert/flags.h"

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
