/* draft: collects the values of a converted recipe and the parts that cannot be converted, and writes them
 * as a YAML file for editing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "recipes/fields/fields.h"
#include "recipes/fields/values.h"
#include "runner/convert/flags.h"

void dt_draft_init(dt_draft *out, const char *title, dt_arena *arena)
{
    *out = (dt_draft){.arena = arena, .title = title};
}

static dt_draft_value *find(const dt_draft *draft, const char *path)
{
    for (size_t i = 0; i < draft->count; i++)
        if (strcmp(draft->values[i].path, path) == 0)
            return &draft->values[i];
    return NULL;
}

const dt_draft_value *dt_draft_find(const dt_draft *draft, const char *path)
{
    return find(draft, path);
}

static void set(dt_draft *draft, const char *path, const char *yaml, const char *from)
{
    dt_draft_value *value = find(draft, path);

    DT_ASSERT(dt_field_find(path) != NULL);
    if (value == NULL) {
        draft->values = dt_arena_array_room(draft->arena, draft->values, draft->count + 1,
                                            &draft->capacity, sizeof(*value));
        value = &draft->values[draft->count++];
        value->path = dt_arena_strdup(draft->arena, path);
    }
    value->yaml = dt_arena_strdup(draft->arena, yaml);
    value->from = from;
}

void dt_draft_word(dt_draft *draft, const char *path, const char *word, const char *from, ...)
{
    va_list args;

    va_start(args, from);
    set(draft, path, word, dt_arena_vprintf(draft->arena, from, args));
    va_end(args);
}

/* Appends the text in double quotes, where YAML allows any text. Control characters, including line
 * ends, are escaped. */
static void add_quoted(dt_strbuf *out, const char *text)
{
    size_t left = strlen(text), used;

    dt_strbuf_add_char(out, '"');
    for (const unsigned char *c = (const unsigned char *)text; left > 0; c += used, left -= used) {
        bool is_control = dt_display_next(&used, c, left) == DT_DISPLAY_CONTROL;
        uint32_t code = *c;

        if (is_control || *c < 0x20) {
            (void)dt_utf8_decode(&code, c, left);
            dt_strbuf_add_fmt(out,
                              code < 0x100     ? "\\x%02x"
                              : code < 0x10000 ? "\\u%04x"
                                               : "\\U%08x",
                              (unsigned)code);
        } else {
            dt_strbuf_add_str(out, *c == '"' || *c == '\\' ? "\\" : "");
            dt_strbuf_add(out, c, used);
        }
    }
    dt_strbuf_add_char(out, '"');
}

/* Returns true if YAML reads the text as a string without quotes. A text that begins with a digit
 * may be a number. */
static bool is_plain(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
    static const char *const words[] = {"true", "false", "null", "yes", "no",
                                        "on",   "off",   "y",    "n",   NULL};
    char first = text[0];

    if (first == '\0' || first == '-' || first == '.' || first == '+' ||
        (first >= '0' && first <= '9') || text[strspn(text, letters)] != '\0')
        return false;
    for (size_t i = 0; words[i] != NULL; i++)
        if (strcmp(text, words[i]) == 0)
            return false;
    return true;
}

static void add_text(dt_strbuf *out, const char *text)
{
    if (is_plain(text))
        dt_strbuf_add_str(out, text);
    else
        add_quoted(out, text);
}

void dt_draft_text(dt_draft *draft, const char *path, const char *text, const char *from, ...)
{
    dt_strbuf yaml;
    va_list args;

    dt_strbuf_init(&yaml);
    add_text(&yaml, text);
    va_start(args, from);
    set(draft, path, yaml.data, dt_arena_vprintf(draft->arena, from, args));
    va_end(args);
    dt_strbuf_release(&yaml);
}

void dt_draft_texts(dt_draft *draft, const char *path, const char *const *texts, size_t count,
                    const char *from)
{
    dt_strbuf yaml;

    dt_strbuf_init(&yaml);
    if (count != 1)
        dt_strbuf_add_char(&yaml, '[');
    for (size_t i = 0; i < count; i++) {
        dt_strbuf_add_str(&yaml, i > 0 ? ", " : "");
        add_text(&yaml, texts[i]);
    }
    if (count != 1)
        dt_strbuf_add_char(&yaml, ']');
    set(draft, path, yaml.data, dt_arena_strdup(draft->arena, from));
    dt_strbuf_release(&yaml);
}

void dt_draft_map(dt_draft *draft, const char *path, const char *const *assignments, size_t count,
                  const char *from)
{
    dt_strbuf yaml;

    dt_strbuf_init(&yaml);
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(assignments[i], "=");

        dt_strbuf_add_fmt(&yaml, "%s%.*s: ", i > 0 ? ", " : "{", (int)length, assignments[i]);
        add_text(&yaml, assignments[i] + length + (assignments[i][length] == '='));
    }
    dt_strbuf_add_char(&yaml, '}');
    set(draft, path, yaml.data, dt_arena_strdup(draft->arena, from));
    dt_strbuf_release(&yaml);
}

/* Appends a number without zeros in its exponent: "1e-07" and "1e+20" become "1e-7" and "1e20". */
static void add_without_zeros(dt_strbuf *out, const char *text)
{
    const char *exponent = strchr(text, 'e');

    if (exponent == NULL) {
        dt_strbuf_add_str(out, text);
        return;
    }
    dt_strbuf_add(out, text, (size_t)(exponent - text) + 1);
    exponent++;
    if (*exponent == '-')
        dt_strbuf_add_char(out, '-');
    exponent += strspn(exponent, "+-0");
    dt_strbuf_add_str(out, *exponent != '\0' ? exponent : "0");
}

void dt_draft_number_text(dt_strbuf *out, double value)
{
    char text[64];

    if (value == floor(value) && fabs(value) < 1e15) {
        dt_strbuf_add_fmt(out, "%.0f", value == 0 ? 0.0 : value);
        return;
    }
    snprintf(text, sizeof(text), "%.15g", value);
    value = strtod(text, NULL);
    for (int digits = 1; digits <= 15; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    add_without_zeros(out, text);
}

void dt_draft_number(dt_draft *draft, const char *path, double value, const char *from, ...)
{
    dt_strbuf yaml;
    va_list args;

    dt_strbuf_init(&yaml);
    dt_draft_number_text(&yaml, value);
    va_start(args, from);
    set(draft, path, yaml.data, dt_arena_vprintf(draft->arena, from, args));
    va_end(args);
    dt_strbuf_release(&yaml);
}

static void remark(dt_draft *draft, dt_draft_remarks *list, const char *about, const char *text)
{
    list->items = dt_arena_array_room(draft->arena, list->items, list->count + 1, &list->capacity,
                                      sizeof(list->items[0]));
    list->items[list->count++] =
        (dt_draft_remark){.about = dt_arena_strdup(draft->arena, about), .text = text};
}

void dt_draft_left(dt_draft *draft, const char *about, const char *reason, ...)
{
    va_list args;

    va_start(args, reason);
    remark(draft, &draft->left, about, dt_arena_vprintf(draft->arena, reason, args));
    va_end(args);
}

void dt_draft_note(dt_draft *draft, const char *about, const char *text, ...)
{
    va_list args;

    va_start(args, text);
    remark(draft, &draft->notes, about, dt_arena_vprintf(draft->arena, text, args));
    va_end(args);
}

void dt_draft_same(dt_draft *draft, const char *about, const char *text)
{
    remark(draft, &draft->same, about, dt_arena_strdup(draft->arena, text));
}

/* --- the account of the command line */

void dt_draft_give(dt_draft *draft, const char *shown, const char *into)
{
    draft->given = dt_arena_array_room(draft->arena, draft->given, draft->given_count + 1,
                                       &draft->given_capacity, sizeof(draft->given[0]));
    draft->given[draft->given_count++] = (dt_draft_given){
        .shown = dt_arena_strdup(draft->arena, shown), .into = dt_arena_strdup(draft->arena, into)};
}

/* Returns true if `text` contains `part`, but not as a part of a longer word. */
static bool mentions(const char *text, const char *part)
{
    size_t length = strlen(part);

    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) {
        bool begins = at == text || strchr(" (/,'", at[-1]) != NULL;
        bool ends = at[length] == '\0' || strchr(" ,:;)'", at[length]) != NULL;

        if (begins && ends)
            return true;
    }
    return false;
}

static bool is_mentioned(const dt_draft *draft, const char *part)
{
    const dt_draft_remarks *lists[] = {&draft->left, &draft->notes, &draft->same};

    for (size_t i = 0; i < draft->count; i++)
        if (mentions(draft->values[i].from, part))
            return true;
    for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++)
        for (size_t i = 0; i < lists[l]->count; i++)
            if (mentions(lists[l]->items[i].about, part))
                return true;
    return false;
}

void dt_draft_account(dt_draft *draft)
{
    static const char nothing[] = "nothing";

    for (size_t i = 0; i < draft->given_count; i++) {
        const dt_draft_given *given = &draft->given[i];

        if (is_mentioned(draft, given->shown))
            continue;
        if (strncmp(given->into, nothing, sizeof(nothing) - 1) == 0)
            dt_draft_same(draft, given->shown, given->into);
        else
            dt_draft_left(draft, given->shown, "it has no effect in this recipe (%s)", given->into);
    }
}

/* Writing the YAML file. */

enum { COMMENT_COLUMN = 34 };

/* Writes the rest of a comment as one line: the text may hold any character, and YAML ends lines
 * not only at \n. */
static void add_line(dt_strbuf *out, const char *text, size_t length)
{
    size_t line;

    for (; length > 0; text += line, length -= line) {
        line = strcspn(text, "\n");
        line = line < length ? line : length;
        dt_display_add(out, text, line);
        if (line < length) {
            dt_strbuf_add_char(out, ' ');
            line++;
        }
    }
    dt_strbuf_add_char(out, '\n');
}

static void add_comment(dt_strbuf *out, const char *text)
{
    add_line(out, text, strlen(text));
}

static void add_value(dt_strbuf *out, const char *indent, const char *key,
                      const dt_draft_value *value)
{
    size_t start = out->length, used;

    dt_strbuf_add_fmt(out, "%s%s: %s", indent, key, value->yaml);
    if (value->from[0] != '\0') {
        used = out->length - start;
        dt_strbuf_add_fmt(out, "%*s# ", used < COMMENT_COLUMN ? (int)(COMMENT_COLUMN - used) : 1,
                          "");
        add_comment(out, value->from);
    } else {
        dt_strbuf_add_char(out, '\n');
    }
}

static void add_field(dt_strbuf *out, const dt_draft *draft, size_t row, const char **group)
{
    const dt_field *field = &dt_fields[row];
    size_t length = dt_field_group_length(field);
    const dt_draft_value *value = dt_draft_find(draft, field->path);

    if (value == NULL)
        return;
    if (length == 0) {
        add_value(out, "", field->path, value);
        *group = NULL;
        return;
    }
    if (*group == NULL || strncmp(*group, field->path, length + 1) != 0)
        dt_strbuf_add_fmt(out, "%.*s:\n", (int)length, field->path);
    *group = field->path;
    add_value(out, "  ", field->path + length + 1, value);
}

/* Writes the fields in the order of their table, where those of a group follow each other. */
static void add_fields(dt_strbuf *out, const dt_draft *draft)
{
    const char *group = NULL;

    for (size_t i = 0; i < dt_fields_count; i++)
        add_field(out, draft, i, &group);
}

static void add_remarks(dt_strbuf *out, const char *title, const dt_draft_remarks *remarks)
{
    dt_strbuf line;

    if (remarks->count == 0)
        return;
    dt_strbuf_init(&line);
    dt_strbuf_add_fmt(out, "#\n# %s\n", title);
    for (size_t i = 0; i < remarks->count; i++) {
        dt_strbuf_reset(&line);
        dt_strbuf_add_fmt(&line, "%s: %s", remarks->items[i].about, remarks->items[i].text);
        dt_strbuf_add_str(out, "#   ");
        add_comment(out, line.data);
    }
    dt_strbuf_release(&line);
}

/* Writes the entries of `same` as one comment, separated by commas. */
static void add_same(dt_strbuf *out, const dt_draft_remarks *same)
{
    dt_strbuf line;

    if (same->count == 0)
        return;
    dt_strbuf_init(&line);
    for (size_t i = 0; i < same->count; i++)
        dt_strbuf_add_fmt(&line, "%s%s", i > 0 ? ", " : "", same->items[i].about);
    dt_strbuf_add_str(out, "#\n# Nothing is lost without: ");
    add_comment(out, line.data);
    dt_strbuf_release(&line);
}

static void add_said(dt_strbuf *out, const char *said)
{
    while (*said != '\0') {
        size_t length = strcspn(said, "\n");

        dt_strbuf_add_str(out, "#   ");
        add_line(out, said, length);
        said += length + (said[length] == '\n');
    }
}

void dt_draft_write(dt_strbuf *out, const dt_draft *draft)
{
    dt_strbuf_add_fmt(out, "# Written by 'dtrun import %s'%s\n", draft->title,
                      draft->said != NULL ? " from" : "");
    if (draft->said != NULL)
        add_said(out, draft->said);
    add_remarks(out, "Not carried:", &draft->left);
    add_same(out, &draft->same);
    add_remarks(out, "To know:", &draft->notes);
    dt_strbuf_add_char(out, '\n');
    add_fields(out, draft);
}
