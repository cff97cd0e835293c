#include "runner/cli/help.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

enum { TEXT_COLUMN = 26, RIGHT_EDGE = 88 };

const char dt_help_about_runs[] =
    "RUN is an id, the beginning of one, a name (its newest run), or 'last'.\n";

const char dt_help_about_exit[] =
    "Exit codes: 0 good, 1 the run failed, 2 command line or recipe, 3 a node or the\n"
    "system, 4 stopped by a person, 5 processes or memory not released,\n"
    "124 its time_limit is over, 130 interrupted (the run continues).\n";

/* Words of text from `column` on, wrapped at the right edge under TEXT_COLUMN. */
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
    dt_strbuf_add_fmt(out,
                      "\n%s"
                      "Every command takes --json (one object, \"version\": 1) and --help.\n"
                      "'dtrun help COMMAND' says more; 'dtrun --version' says which one this is.\n"
                      "\n%s",
                      dt_help_about_runs, dt_help_about_exit);
}

dt_status dt_help_command(dt_strbuf *out, const dt_command *command, dt_error *err)
{
    const dt_option *options;
    dt_arena arena;
    dt_status st = DT_OK;
    size_t count;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_options_of(&options, &count, command, &arena, err));
    dt_strbuf_add_fmt(out, "dtrun %s: %s\n\nUsage: dtrun %s [options]%s%s\n\nOptions:\n",
                      command->name, command->summary, command->name,
                      command->operands[0] != '\0' ? " " : "", command->operands);
    for (size_t i = 0; i < count; i++)
        add_option(out, &options[i]);
    if (strstr(command->operands, "RUN") != NULL)
        dt_strbuf_add_fmt(out, "\n%s", dt_help_about_runs);
    if (command->notes != NULL)
        dt_strbuf_add_fmt(out, "\n%s", command->notes);
out:
    dt_arena_release(&arena);
    return st;
}

dt_status dt_help_markdown(dt_strbuf *out, dt_error *err)
{
    dt_status st = DT_OK;

    dt_strbuf_add_str(out, "# Commands\n\n"
                           "Written by `dtrun help --markdown`, from the table that also parses "
                           "the options.\n\n```text\n");
    dt_help_overview(out);
    dt_strbuf_add_str(out, "```\n");
    for (size_t i = 0; dt_commands[i] != NULL; i++) {
        if (dt_commands[i]->hidden)
            continue;
        dt_strbuf_add_fmt(out, "\n## %s\n\n```text\n", dt_commands[i]->name);
        DT_TRY(dt_help_command(out, dt_commands[i], err));
        dt_strbuf_add_str(out, "```\n");
    }
out:
    return st;
}
