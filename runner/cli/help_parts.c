/* help_parts: takes help texts apart, so that they fit terminals and pages of any width (runner/cli/help.h). */
#include <string.h>

#include "runner/cli/help.h"

enum { NARROW = 60, TEXT_NARROW = 8 };

static size_t line_length(const char *text)
{
    return strcspn(text, "\n");
}

static const char *next_line(const char *text)
{
    text += line_length(text);
    return text + (*text == '\n');
}

/* Returns the column of the text after a label, as in "csv     one line a point"; 0: the line has no label. */
static size_t text_column(const char *line)
{
    size_t length = line_length(line), start = strspn(line, " ");

    for (size_t i = start + 1; i + 2 < length; i++)
        if (line[i] == ' ' && line[i + 1] == ' ')
            return i + strspn(line + i, " ");
    return 0;
}

static void add_words(dt_strbuf *out, const char *text)
{
    if (out->length > 0)
        dt_strbuf_add_char(out, ' ');
    dt_strbuf_add(out, text, line_length(text));
}

const char *dt_help_next(dt_help_part *part, const char *text)
{
    size_t column = text_column(text), label;

    dt_strbuf_reset(&part->text);
    part->label = NULL;
    part->column = column > 0 ? column : strspn(text, " ");
    part->indent = strspn(text, " ");
    part->filled = part->indent == 0 && line_length(text) > 0;
    if (column > 0) {
        label = column;
        while (text[label - 1] == ' ')
            label--;
        part->label = text + part->indent;
        part->label_length = label - part->indent;
        add_words(&part->text, text + column);
        for (text = next_line(text); strspn(text, " ") == column && text_column(text) == 0;
             text = next_line(text))
            add_words(&part->text, text + column);
        return text;
    }
    add_words(&part->text, text + part->indent);
    for (text = next_line(text);
         part->filled && *text != '\0' && *text != '\n' && *text != ' ' && text_column(text) == 0;
         text = next_line(text))
        add_words(&part->text, text);
    return text;
}

/* Adds a part in lines of this width: a label, and its text beside it if the label leaves room, else below it. */
static void add_part(dt_strbuf *out, const dt_term *term, const dt_help_part *part, size_t columns)
{
    size_t used = part->label != NULL ? part->indent + part->label_length : 0, start = out->length;
    size_t column = part->column;

    if (columns < NARROW && column > TEXT_NARROW)
        column = TEXT_NARROW;
    if (part->label != NULL && used + 2 > column) {
        dt_strbuf_add_fmt(out, "%*s%.*s\n", (int)part->indent, "", (int)part->label_length,
                          part->label);
        start = out->length;
    }
    dt_term_add_wrapped(out, term, DT_STYLE_PLAIN, column, columns, part->text.data);
    if (part->label != NULL && used + 2 <= column)
        memcpy(out->data + start + part->indent, part->label, part->label_length);
}

void dt_help_fit(dt_strbuf *text, const dt_term *term)
{
    dt_help_part part = {.label = NULL};
    dt_strbuf out;

    if (!term->seen || term->columns >= DT_HELP_COLUMNS)
        return;
    dt_strbuf_init(&out);
    dt_strbuf_init(&part.text);
    for (const char *at = text->data; *at != '\0';) {
        at = dt_help_next(&part, at);
        if (part.text.length == 0)
            dt_strbuf_add_char(&out, '\n');
        add_part(&out, term, &part, (size_t)term->columns);
    }
    dt_strbuf_reset(text);
    dt_strbuf_add(text, out.data, out.length);
    dt_strbuf_release(&part.text);
    dt_strbuf_release(&out);
}
