/* dtrun top: shows a live table of all runs with their curves. */
#include "runner/top/top.h"
#include "runner/cli/command.h"

static dt_status top(dt_call *call, dt_error *err)
{
    const dt_top_wish wish = {
        .metric = dt_arguments_get(call->args, "metric")->text,
        .sort = (dt_top_sort)dt_arguments_get(call->args, "sort")->choice,
        .reverse = dt_arguments_flag(call->args, "reverse"),
        .all = dt_arguments_flag(call->args, "all"),
    };

    return dt_top(call->args->operands_count > 0 ? call->args->operands[0] : NULL, &wish, call,
                  err);
}

static const dt_option options[] = {
    {.name = "metric",
     .letter = 'm',
     .kind = DT_OPTION_TEXT,
     .value = "NAME",
     .fallback = "loss",
     .help = "metric of the curves at the start"},
    {.name = "sort",
     .kind = DT_OPTION_CHOICE,
     .value = "ORDER",
     .choices = dt_top_sort_names,
     .fallback = "newest",
     .help = "order at the start"},
    {.name = "reverse", .letter = 'r', .kind = DT_OPTION_FLAG, .help = "reverse the order"},
    {.name = "all",
     .letter = 'a',
     .kind = DT_OPTION_FLAG,
     .help = "also show runs that ended long ago"},
    {0},
};

const dt_command dt_command_top = {
    .name = "top",
    .summary = "show a live table of all runs with loss curves",
    .operands = "[RUN]",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_max = 1,
    .options = options,
    .notes =

        "Shows active runs and runs that ended in the last ten minutes, one line each. Keys:\n"
        "  j k arrows     move; g and G go to the ends\n"
        "  /              search: only runs with all of these words in name, id, tags, group or\n"
        "                 state; Enter keeps the filter, Esc clears it\n"
        "  s S            sort by the next or the previous column; r reverses\n"
        "  Enter          open the run: its curve and its last output; Esc goes back\n"
        "  Space          mark the run, up to five: their curves are drawn with that of the run\n"
        "                 that is opened; u unmarks all\n"
        "  m M            change the metric\n"
        "  a              show all runs, or active ones only\n"
        "  q              quit; the runs continue\n"
        "With RUN, starts with this run open. Without a terminal, prints the lines once. In the\n"
        "order 'metric', the last values of the metric of the curves count.\n",
    .run = top,
};
