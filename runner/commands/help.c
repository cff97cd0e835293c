/* dtrun help: prints the help of dtrun or of one command, as text, manual page or docs/commands.md. */
#include <unistd.h>

#include "runner/cli/help.h"
#include "runner/cli/man.h"
#include "runner/cli/report.h"

static dt_status refuse(const char *name, dt_error *err)
{
    const char *meant = dt_command_suggest(name);

    if (meant != NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "unknown command '%s' (did you mean '%s'?)", name, meant);
    return DT_FAIL(err, DT_ERR_USAGE, "unknown command '%s'", name);
}

static dt_status help(dt_call *call, dt_error *err)
{
    const dt_command *command;
    dt_status st = DT_OK;
    dt_strbuf text;
    json_t *object;
    dt_term term;

    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    if (dt_arguments_flag(call->args, "man") && call->args->operands_count == 0) {
        dt_man_overview(&text);
    } else if (dt_arguments_flag(call->args, "markdown")) {
        dt_help_markdown(&text);
    } else if (call->args->operands_count == 0) {
        dt_help_overview(&text);
    } else {
        command = dt_command_find(call->args->operands[0]);
        if (command == NULL)
            DT_TRY(refuse(call->args->operands[0], err));
        if (dt_arguments_flag(call->args, "man"))
            dt_man_command(&text, command);
        else
            dt_help_command(&text, command);
    }
    if (call->json) {
        object = dt_report_object();
        json_object_set_new(object, "text", json_string(text.data));
        DT_TRY(dt_report_json(object, err));
    } else {
        if (!dt_arguments_flag(call->args, "man") && !dt_arguments_flag(call->args, "markdown"))
            dt_help_fit(&text, &term);
        DT_TRY(dt_report_text(&text, err));
    }
out:
    dt_strbuf_release(&text);
    return st;
}

static const dt_option options[] = {
    {.name = "markdown",
     .kind = DT_OPTION_FLAG,
     .help = "print the help of every command in Markdown (docs/commands.md)"},
    {.name = "man", .kind = DT_OPTION_FLAG, .help = "print a manual page, for 'man -l -'"},
    {0},
};

const dt_command dt_command_help = {
    .name = "help",
    .summary = "show help for dtrun or a command",
    .operands = "[COMMAND]",
    .takes = DT_OPERAND_COMMAND,
    .operands_max = 1,
    .options = options,
    .run = help,
};
