/* dtrun top: all that runs, redrawn until somebody leaves. */
#include "runner/top/top.h"
#include "runner/cli/command.h"

#include "base/banned.h"

static dt_status top(dt_call *call, dt_error *err)
{
    const dt_top_wish wish = {
        .metric = dt_arguments_get(call->args, "metric")->text,
        .sort = (dt_top_sort)dt_arguments_get(call->args, "sort")->choice,
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
     .help = "whose curves are shown at first"},
    {.name = "sort",
     .kind = DT_OPTION_CHOICE,
     .value = "ORDER",
     .choices = dt_top_sort_names,
     .fallback = "newest",
     .help = "the order at first"},
    {.name = "all", .letter = 'a', .kind = DT_OPTION_FLAG, .help = "also runs that ended long ago"},
    {0},
};

const dt_command dt_command_top = {
    .name = "top",
    .summary = "all that runs, with curves, until one leaves it",
    .operands = "[RUN]",
    .operands_max = 1,
    .options = options,
    .notes =
        "What runs, and what ended in the last ten minutes, a line each. Keys: j, k and arrows\n"
        "move, Enter opens a run (a curve over the whole width, and what was said last) and Esc\n"
        "goes back, m and M change the metric, s the order, a shows all runs, q leaves; the runs\n"
        "continue. With RUN that one is open at first. Where there is no terminal the lines are\n"
        "printed once.\n",
    .run = top,
};
