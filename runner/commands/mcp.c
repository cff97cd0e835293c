/* dtrun mcp: serves programs on stdin and stdout: they call commands as tools of the Model Context Protocol. */
#include "runner/mcp/mcp.h"
#include "runner/cli/command.h"

static dt_status mcp(dt_call *call, dt_error *err)
{
    return dt_mcp_serve(dt_arguments_flag(call->args, "write"),
                        (size_t)dt_arguments_get(call->args, "answer-bytes")->integer, err);
}

static const dt_option options[] = {
    {.name = "write", .kind = DT_OPTION_FLAG, .help = "offer the tools launch and stop as well"},
    {.name = "answer-bytes",
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "40000",
     .low = 1000,
     .high = 16e6,
     .help = "shorten longer answers, with a note"},
    {0},
};

const dt_command dt_command_mcp = {
    .name = "mcp",
    .summary = "serve runs to assistants, as tools over stdin and stdout",
    .operands = "",
    .runs = DT_RUNS_SERVED,
    .options = options,
    .notes =

        "A server of the Model Context Protocol for programs that start it, such as an editor or\n"
        "an assistant; docs/mcp.md shows how to add it to two of them. It reads requests from\n"
        "stdin until its end, and writes answers to stdout.\n"
        "The tools list, show, status, compare, metrics, logs and checkpoints are the commands of\n"
        "these names, with their options as arguments and the object of --json as answer;\n"
        "launch_dry_run is 'dtrun launch --dry-run'. Nothing changes runs without --write.\n"
        "With DTRUN_SERVER, the tools that only read ask another machine's 'dtrun serve'.\n",
    .run = mcp,
};
