/* help: writes the texts of --help and docs/commands.md from the table of commands, and wraps help texts
 * for narrow terminals. */
#include "runner/cli/help.h"

#include <stdio.h>
#include <string.h>

/* Parts of a help text: paragraphs, labels with their text, indented lines. */

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

enum { TEXT_COLUMN = 26, RIGHT_EDGE = DT_HELP_COLUMNS };

const char dt_help_about_runs[] =
    "RUN is an id, the start of an id, a name (its newest run), or 'last'.\n";

const char dt_help_about_exit[] =
    "Exit codes: 0 success, 1 the run failed, 2 error in the command line or recipe, 3 error\n"
    "of a node or the system, 4 stopped by request, 5 processes or memory not released,\n"
    "124 time limit reached, 130 interrupted (the run continues).\n";

/* Adds the words of `text` from `column` on, wrapped between TEXT_COLUMN and RIGHT_EDGE. */
static void add_wrapped(dt_strbuf *out, const char *text, size_t column)
{
    if (column + 2 > TEXT_COLUMN) {
        dt_strbuf_add_char(out, '\n');
        column = 0;
    }
    for (; column < TEXT_COLUMN; column++)
        dt_strbuf_add_char(out, ' ');
    while (*text != '\0') {
        size_t word = strcspn(text, " ");
        if (column > TEXT_COLUMN && column + 1 + word > RIGHT_EDGE) {
            dt_strbuf_add_fmt(out, "\n%*s", TEXT_COLUMN, "");
            column = TEXT_COLUMN;
        } else if (column > TEXT_COLUMN) {
            dt_strbuf_add_char(out, ' ');
            column++;
        }
        dt_strbuf_add(out, text, word);
        column += word;
        text += word + (text[word] == ' ');
    }
    dt_strbuf_add_char(out, '\n');
}

void dt_help_option(dt_strbuf *out, const dt_option *option,
                    void (*add)(dt_strbuf *out, const char *text))
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, option->help);
    if (option->kind == DT_OPTION_CHOICE)
        for (size_t i = 0; option->choices[i] != NULL; i++)
            dt_strbuf_add_fmt(&text, "%s%s", i == 0 ? ": " : ", ", option->choices[i]);
    if (option->kind == DT_OPTION_LIST)
        dt_strbuf_add_str(&text, " (repeatable)");
    if (option->fallback != NULL && option->fallback[0] != '\0')
        dt_strbuf_add_fmt(&text, " (default %s)", option->fallback);
    add(out, text.data);
    dt_strbuf_release(&text);
}

static void add_option(dt_strbuf *out, const dt_option *option)
{
    size_t start = out->length;
    dt_strbuf text;

    if (option->letter != 0)
        dt_strbuf_add_fmt(out, "  -%c, --%s", option->letter, option->name);
    else
        dt_strbuf_add_fmt(out, "      --%s", option->name);
    if (option->value != NULL)
        dt_strbuf_add_fmt(out, " %s", option->value);

    dt_strbuf_init(&text);
    dt_help_option(&text, option, dt_strbuf_add_str);
    add_wrapped(out, text.data, out->length - start);
    dt_strbuf_release(&text);
}

void dt_help_overview(dt_strbuf *out)
{
    dt_strbuf_add_str(out, "dtrun: train models on one machine or many, from one recipe\n\n"
                           "Usage: dtrun COMMAND [options] [arguments]\n\nCommands:\n");
    for (size_t i = 0; dt_commands[i] != NULL; i++)
        if (!dt_commands[i]->hidden)
            dt_strbuf_add_fmt(out, "  %-12s %s\n", dt_commands[i]->name, dt_commands[i]->summary);
    dt_strbuf_add_fmt(
        out,
        "\n%s"
        "Every command takes --json (one object, \"version\": 1) and --help.\n"
        "'dtrun help COMMAND' shows the help of a command, 'dtrun --version' the version.\n"
        "\n%s",
        dt_help_about_runs, dt_help_about_exit);
}

void dt_help_command(dt_strbuf *out, const dt_command *command)
{
    const dt_option *options;
    dt_arena arena;
    size_t count;

    dt_arena_init(&arena, 0);
    dt_options_of(&options, &count, command, &arena);
    dt_strbuf_add_fmt(out, "dtrun %s: %s\n\nUsage: dtrun %s [options]%s%s\n\nOptions:\n",
                      command->name, command->summary, command->name,
                      command->operands[0] != '\0' ? " " : "", command->operands);
    for (size_t i = 0; i < count; i++)
        add_option(out, &options[i]);
    if (command->takes == DT_OPERAND_RUN)
        dt_strbuf_add_fmt(out, "\n%s", dt_help_about_runs);
    if (command->notes != NULL)
        dt_strbuf_add_fmt(out, "\n%s", command->notes);
    dt_arena_release(&arena);
}

void dt_help_markdown(dt_strbuf *out)
{

    dt_strbuf_add_str(out, "# Commands\n\n"
                           "Generated by `dtrun help --markdown`.\n\n```text\n");
    dt_help_overview(out);
    dt_strbuf_add_str(out, "```\n");
    for (size_t i = 0; dt_commands[i] != NULL; i++) {
        if (dt_commands[i]->hidden)
            continue;
        dt_strbuf_add_fmt(out, "\n## %s\n\n```text\n", dt_commands[i]->name);
        dt_help_command(out, dt_commands[i]);
        dt_strbuf_add_str(out, "```\n");
    }
}
