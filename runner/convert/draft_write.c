/* draft_write: writes a draft as a YAML file, for editing. */
#include <string.h>

#include "base/display.h"
#include "recipes/fields/fields.h"
#include "recipes/fields/values.h"
#include "runner/convert/draft.h"

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
