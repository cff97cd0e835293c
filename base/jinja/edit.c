/* edit: texts made from others: stripped, filled, cut into lines, with parts replaced. */
#include <string.h>

#include "base/jinja/jinja_int.h"

/* --- stripping */

/* Returns whether the code point at `at`, of `length` bytes, is one of `characters`. */
static bool is_one_of(const dt_jinja_text *text, size_t at, size_t length,
                      const dt_jinja_text *characters)
{
    return memmem(characters->data, characters->length, text->data + at, length) != NULL;
}

/* Returns the bytes of the code point that begins at `at`, if it is stripped; 0 otherwise. characters NULL: spaces. */
static size_t stripped_at(const dt_jinja_text *text, size_t at, const dt_jinja_text *characters)
{
    size_t length = 1;

    if (characters == NULL)
        return dt_space_at(text->data, text->length, at);
    while (at + length < text->length && ((unsigned char)text->data[at + length] & 0xc0) == 0x80)
        length++;
    return is_one_of(text, at, length, characters) ? length : 0;
}

static size_t stripped_before(const dt_jinja_text *text, size_t at, size_t from,
                              const dt_jinja_text *characters)
{
    size_t start = at - 1;

    if (characters == NULL)
        return dt_space_before(text->data, at);
    while (start > from && ((unsigned char)text->data[start] & 0xc0) == 0x80)
        start--;
    return is_one_of(text, start, at - start, characters) ? at - start : 0;
}

dt_status dt_text_strip(const dt_jinja_text **out, dt_jinja_run *run, const dt_jinja_text *text,
                        const dt_jinja_text *characters, bool left, bool right)
{
    size_t from = 0, to = text->length, used;
    dt_status st = DT_OK;

    while (left && from < to && (used = stripped_at(text, from, characters)) > 0)
        from += used;
    while (right && to > from && (used = stripped_before(text, to, from, characters)) > 0)
        to -= used;
    DT_TRY(dt_jinja_spend(run, 1 + (int64_t)(text->length - (to - from)) / 16));
    *out = dt_text_part(run, text, from, to);
out:
    return st;
}

/* --- lines */

void dt_text_add_part(dt_jinja_run *run, dt_jinja_value list, const dt_jinja_text *text,
                      size_t from, size_t to)
{
    dt_jinja_append(run, list, dt_jinja_string(dt_text_part(run, text, from, to)));
}

/* Returns the bytes of a line break at `at`; 0: none. */
static size_t break_at(const dt_jinja_text *text, size_t at)
{
    const unsigned char *c = (const unsigned char *)text->data + at;
    size_t left = text->length - at;

    if (c[0] == '\r' && left > 1 && c[1] == '\n')
        return 2;
    if ((c[0] >= '\n' && c[0] <= '\r') || (c[0] >= 0x1c && c[0] <= 0x1e))
        return 1;
    if (left > 1 && c[0] == 0xc2 && c[1] == 0x85)
        return 2;
    return left > 2 && c[0] == 0xe2 && c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9) ? 3 : 0;
}

dt_status dt_text_lines(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *text,
                        bool keeps)
{
    dt_status st = DT_OK;
    size_t from = 0, used;

    *out = dt_value_list(run, DT_SHAPE_LIST, 0);
    DT_TRY(dt_jinja_spend(run, text->length / 8));
    for (size_t at = 0; at<text->length; at += used> 0 ? used : 1) {
        used = break_at(text, at);
        if (used == 0)
            continue;
        dt_text_add_part(run, *out, text, from, at + (keeps ? used : 0));
        from = at + used;
    }
    if (from < text->length)
        dt_text_add_part(run, *out, text, from, text->length);
out:
    return st;
}

/* --- making */

dt_status dt_text_replace(const dt_jinja_text **out, dt_jinja_run *run, const dt_jinja_text *text,
                          const dt_jinja_text *old, const dt_jinja_text *new_text, int64_t most)
{
    dt_jinja_sink sink = {.length = 0};
    dt_status st = DT_OK;
    size_t from = 0;

    if (most < 0)
        most = INT64_MAX;
    DT_TRY(dt_jinja_spend(run, 1 + text->length / 64));
    for (; most > 0; most--) {
        int64_t at = dt_text_find(text, old, from, text->length);
        size_t next;

        if (at < 0)
            break;
        DT_TRY(dt_jinja_spend(run, 1));
        DT_TRY(dt_sink_add_part(run, &sink, text, from, (size_t)at));
        DT_TRY(dt_sink_add_text(run, &sink, new_text));
        from = (size_t)at + old->length;
        if (old->length > 0)
            continue;
        if (from == text->length)
            break;
        for (next = from + 1;
             next < text->length && ((unsigned char)text->data[next] & 0xc0) == 0x80; next++)
            ;
        DT_TRY(dt_sink_add_part(run, &sink, text, from, next));
        from = next;
        if (from == text->length && most > 1) { /* an empty string also matches at the end */
            DT_TRY(dt_sink_add_text(run, &sink, new_text));
            break;
        }
    }
    if (from == 0 && sink.length == 0) {
        *out = text;
        return DT_OK;
    }
    DT_TRY(dt_sink_add_part(run, &sink, text, from, text->length));
    *out = dt_sink_text(run, &sink);
out:
    return st;
}

/* Puts `left` and `right` fill characters around a text. */
dt_status dt_text_fill(const dt_jinja_text **out, dt_jinja_run *run, const dt_jinja_text *text,
                       int64_t left, int64_t right, const dt_jinja_text *with)
{
    static const dt_jinja_text blank = {.data = " ", .length = 1, .codes = 1};
    dt_jinja_sink sink = {.length = 0};
    dt_status st = DT_OK;

    if (with == NULL)
        with = &blank;
    if (with->codes != 1)
        return dt_jinja_fail(run, "the fill character must be exactly one character long");
    for (; left > 0; left--)
        DT_TRY(dt_sink_add_text(run, &sink, with));
    DT_TRY(dt_sink_add_text(run, &sink, text));
    for (; right > 0; right--)
        DT_TRY(dt_sink_add_text(run, &sink, with));
    *out = dt_sink_text(run, &sink);
out:
    return st;
}

int64_t dt_text_fill_left(int64_t width, int64_t codes)
{
    int64_t more = width > codes ? width - codes : 0;

    return more / 2 + (more & width & 1); /* as CPython divides it */
}
