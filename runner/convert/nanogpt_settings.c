/* nanogpt_settings: reads nanoGPT's settings as its configurator.py does: files of assignments,
 * followed by --name=value. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "runner/convert/nanogpt.h"
#include "runner/convert/python_values.h"

#define FILE_MOST ((size_t)1 << 20)

/* Returns an integer setting as text. A value such as "0.03 * max_iters" is often not an integer;
 * nanoGPT compares it with the step, so it is rounded up. */
static const char *whole_text(dt_draft *draft, const dt_flag *flag, const dt_python_value *value,
                              const char *place)
{
    double number = value->number, nearest = round(number);

    if (flag->takes != DT_TAKES_INT || value->kind != DT_PYTHON_NUMBER || number == nearest ||
        !(fabs(number) < 1e15))
        return dt_python_text(value, draft->arena);
    if (fabs(number - nearest) > 1e-9 * fabs(number)) {
        nearest = ceil(number);
        dt_draft_note(draft, place, "it is %g, and %.0f is used", number, nearest);
    }
    return dt_arena_printf(draft->arena, "%.0f", nearest);
}

static dt_status set_one(dt_flags *flags, const char *name, const dt_python_value *value,
                         const char *shown, const char *place, dt_error *err)
{
    size_t row = dt_flags_row(&dt_nanogpt_flags, name, strlen(name));
    dt_shell_word word = {0};
    dt_status st;

    if (row == dt_nanogpt_flags.count) {
        dt_draft_left(flags->draft, place, "unknown name%s", dt_flags_suggestion(flags, name));
        return DT_OK;
    }
    if (value->kind == DT_PYTHON_UNKNOWN) {
        flags->uses[row] = (dt_flag_use){0};
        dt_draft_left(flags->draft, place,
                      "only Python can evaluate this; nanoGPT's default is used");
        return DT_OK;
    }
    word.text = whole_text(flags->draft, &dt_nanogpt_flags.flags[row], value, place);
    st = dt_flags_set(flags, row, &word, shown, err);
    if (st != DT_OK)
        dt_error_prefix(err, "%s", place);
    return st;
}

static const char *shown_as(dt_draft *draft, const char *name, const dt_python_value *value)
{
    const char *text =
        value->kind == DT_PYTHON_UNKNOWN
            ? name
            : dt_arena_printf(draft->arena, "%s = %s", name, dt_python_text(value, draft->arena));

    return text != NULL ? text : name;
}

dt_status dt_nanogpt_read_text(dt_strbuf *out, const char *path, const char *folder, dt_error *err)
{
    dt_strbuf beside;
    dt_status st;

    dt_strbuf_init(&beside);
    if (folder != NULL && path[0] != '/' && !dt_file_exists(path)) {
        dt_strbuf_add_fmt(&beside, "%s/%s", folder, path);
        if (dt_file_exists(beside.data))
            path = beside.data;
    }
    st = dt_file_read(out, path, FILE_MOST, err);
    dt_strbuf_release(&beside);
    return st;
}

static dt_status take_file(dt_flags *flags, const char *path, const char *folder, dt_error *err)
{
    dt_draft *draft = flags->draft;
    dt_python_file file;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_python_init(&file, draft->arena);
    DT_TRY(dt_nanogpt_read_text(&text, path, folder, err));
    DT_TRY(dt_python_read(&file, text.data, text.length, path, err));
    for (size_t i = 0; i < file.count; i++) {
        const dt_python_statement *s = &file.statements[i];
        const char *place = dt_arena_printf(draft->arena, "%s:%d: %s", path, s->line, s->shown);

        if (s->name == NULL)
            dt_draft_left(draft, place, "it is not a plain assignment, and Python code is not run");
        else
            DT_TRY(set_one(flags, s->name, &s->value, shown_as(draft, s->name, &s->value), place,
                           err));
    }
out:
    dt_strbuf_release(&text);
    return st;
}

/* Sets an option "--key=value". The value is a Python literal, or else a text. */
static dt_status take_option(dt_flags *flags, const char *word, dt_error *err)
{
    dt_arena *arena = flags->draft->arena;
    size_t length = strcspn(word + 2, "=");
    char *name = dt_arena_strndup(arena, word + 2, length);
    dt_python_file none;
    dt_python_value value;

    if (word[2 + length] != '=')
        return DT_FAIL(err, DT_ERR_USAGE, "%s: expected --name=value", word);
    dt_python_init(&none, arena);
    if (!dt_python_evaluate(&value, &none, word + 2 + length + 1))
        value = (dt_python_value){.kind = DT_PYTHON_TEXT, .text = word + 2 + length + 1};
    return set_one(flags, name, &value, word, word, err);
}

dt_status dt_nanogpt_read_settings(dt_flags *flags, dt_draft *draft, const dt_launcher *launcher,
                                   const char *folder, dt_error *err)
{
    dt_status st = dt_flags_read(flags, &dt_nanogpt_flags, NULL, 0, draft, err);

    for (size_t i = 0; i < launcher->count && st == DT_OK; i++) {
        const dt_shell_word *word = &launcher->words[i];

        if (strncmp(word->text, "--", 2) == 0 && word->text[2] != '\0')
            st = take_option(flags, word->text, err);
        else if (strcmp(word->text, "--") != 0)
            st = take_file(flags, word->text, folder, err);
    }
    return st;
}
