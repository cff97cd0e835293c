#include "runner/cli/man.h"

#include <string.h>

#include "base/version.h"
#include "runner/cli/help.h"

#include "base/banned.h"

/* Nothing in it is taken for a request, an escape or a hyphen. */
static void add_text(dt_strbuf *out, const char *text)
{
    bool begins = true;

    for (; *text != '\0'; text++) {
        if (begins && (*text == '.' || *text == '\''))
            dt_strbuf_add_str(out, "\\&");
        if (*text == '\\')
            dt_strbuf_add_str(out, "\\e");
        else if (*text == '-')
            dt_strbuf_add_str(out, "\\-");
        else if (*text == '\'')
            dt_strbuf_add_str(out, "\\(aq");
        else if (*text == '^')
            dt_strbuf_add_str(out, "\\(ha");
        else if (*text == '~')
            dt_strbuf_add_str(out, "\\(ti");
        else if (*text == '`')
            dt_strbuf_add_str(out, "\\(ga");
        else
            dt_strbuf_add_char(out, *text);
        begins = *text == '\n';
    }
}

/* Lines as they are. */
static void add_block(dt_strbuf *out, const char *text)
{
    dt_strbuf_add_str(out, ".nf\n");
    add_text(out, text);
    if (text[0] != '\0' && text[strlen(text) - 1] != '\n')
        dt_strbuf_add_char(out, '\n');
    dt_strbuf_add_str(out, ".fi\n");
}

static void begin_page(dt_strbuf *out, const char *name, const char *summary)
{
    dt_strbuf_add_str(
        out, ".\\\" Made by `dtrun help --man` from the table that parses the options.\n.TH ");
    for (const char *c = name; *c != '\0'; c++)
        dt_strbuf_add_char(out, *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c);
    dt_strbuf_add_fmt(out, " 1 \"\" \"dtrun %s\" \"dtrun\"\n.SH NAME\n", DT_VERSION);
    add_text(out, name);
    dt_strbuf_add_str(out, " \\- ");
    add_text(out, summary);
    dt_strbuf_add_str(out, "\n.SH SYNOPSIS\n");
}

static void add_option(dt_strbuf *out, const dt_option *option)
{
    dt_strbuf_add_str(out, ".TP\n");
    if (option->letter != 0)
        dt_strbuf_add_fmt(out, "\\fB\\-%c\\fR, ", option->letter);
    dt_strbuf_add_str(out, "\\fB\\-\\-");
    add_text(out, option->name);
    dt_strbuf_add_str(out, "\\fR");
    if (option->value != NULL) {
        dt_strbuf_add_str(out, " \\fI");
        add_text(out, option->value);
        dt_strbuf_add_str(out, "\\fR");
    }
    dt_strbuf_add_char(out, '\n');
    dt_help_option(out, option, add_text);
    dt_strbuf_add_char(out, '\n');
}

void dt_man_overview(dt_strbuf *out)
{
    begin_page(out, "dtrun", "train models on one machine or many, from one recipe");
    dt_strbuf_add_str(out, "\\fBdtrun\\fR \\fICOMMAND\\fR [\\fIoptions\\fR] [\\fIarguments\\fR]\n"
                           ".SH COMMANDS\n");
    for (size_t i = 0; dt_commands[i] != NULL; i++) {
        if (dt_commands[i]->hidden)
            continue;
        dt_strbuf_add_fmt(out, ".TP\n\\fBdtrun\\-%s\\fR(1)\n", dt_commands[i]->name);
        add_text(out, dt_commands[i]->summary);
        dt_strbuf_add_char(out, '\n');
    }
    dt_strbuf_add_str(out, ".SH RUNS\n");
    add_block(out, dt_help_about_runs);
    dt_strbuf_add_str(out, ".SH EXIT STATUS\n");
    add_block(out, dt_help_about_exit);
    dt_strbuf_add_str(out, ".SH FILES\n.TP\n$XDG_STATE_HOME/dtrun (\\(ti/.local/state/dtrun)\n"
                           "store.db, and a folder for each run with its recipe, logs and "
                           "checkpoints\n.TP\n$XDG_CACHE_HOME/dtrun (\\(ti/.cache/dtrun)\n"
                           "what was fetched, and what other machines brought here\n");
}

dt_status dt_man_command(dt_strbuf *out, const dt_command *command, dt_error *err)
{
    const dt_option *options;
    dt_arena arena;
    dt_status st;
    size_t count;
    char *name;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_options_of(&options, &count, command, &arena, err));
    name = dt_arena_printf(&arena, "dtrun-%s", command->name);
    if (name == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    begin_page(out, name, command->summary);
    dt_strbuf_add_fmt(out, "\\fBdtrun %s\\fR [\\fIoptions\\fR]", command->name);
    if (command->operands[0] != '\0') {
        dt_strbuf_add_str(out, " \\fI");
        add_text(out, command->operands);
        dt_strbuf_add_str(out, "\\fR");
    }
    dt_strbuf_add_str(out, "\n.SH OPTIONS\n");
    for (size_t i = 0; i < count; i++)
        add_option(out, &options[i]);
    if (strstr(command->operands, "RUN") != NULL || command->notes != NULL)
        dt_strbuf_add_str(out, ".SH DESCRIPTION\n");
    if (strstr(command->operands, "RUN") != NULL)
        add_block(out, dt_help_about_runs);
    if (command->notes != NULL) {
        if (strstr(command->operands, "RUN") != NULL)
            dt_strbuf_add_str(out, ".PP\n");
        add_block(out, command->notes);
    }
    dt_strbuf_add_str(out, ".SH SEE ALSO\n\\fBdtrun\\fR(1)\n");
out:
    dt_arena_release(&arena);
    return st;
}
