/* dtrun compare: prints the differences between runs, in recipes and results. */
#include <string.h>
#include <unistd.h>

#include "base/metric_kinds.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/term/term.h"
#include "runner/view/compare/compare.h"
#include "runner/view/runs/runs.h"

enum { RUNS_MOST = 100, CHART_COLUMNS = 100 };

static dt_status add_run(dt_run_entries *io, const dt_run *run, dt_error *err)
{
    for (size_t i = 0; i < io->count; i++)
        if (strcmp(io->items[i].run->id, run->id) == 0)
            return DT_OK;
    if (io->count == RUNS_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "more than %d runs", RUNS_MOST);
    io->items[io->count++] = (dt_run_entry){.run = run};
    return DT_OK;
}

/* Adds the runs of a group, oldest first. DT_ERR_NOT_FOUND if the group has no run. */
static dt_status add_group(dt_run_entries *io, dt_store *store, const char *name,
                           const dt_call *call, dt_error *err)
{
    dt_run_selection selection = {.state = -1, .group = name};
    dt_run_entries group = {0};
    dt_status st = DT_OK;

    DT_TRY(dt_run_select(&group, store, &selection, call->arena, err));
    if (group.count == 0)
        DT_THROW(err, DT_ERR_NOT_FOUND, "no group '%s' ('dtrun list' shows all runs)", name);
    for (size_t i = group.count; i-- > 0;)
        DT_TRY(add_run(io, group.items[i].run, err));
out:
    dt_run_entries_release(&group);
    return st;
}

/* Adds the run that `ref` names, or else the runs of the group of this name. */
static dt_status add_operand(dt_run_entries *io, dt_store *store, const char *ref,
                             const dt_call *call, dt_error *err)
{
    dt_error unknown = DT_ERROR_INIT;
    dt_run *run = dt_arena_alloc(call->arena, sizeof(*run));
    dt_status st;

    st = dt_runs_find(store, run, ref, call, &unknown);
    if (st == DT_OK)
        return add_run(io, run, err);
    if (st == DT_ERR_NOT_FOUND && add_group(io, store, ref, call, err) == DT_OK)
        return DT_OK;
    dt_error_clear(err);
    return DT_FAIL(err, st, "%s", unknown.message);
}

/* Collects the runs given as operands, in this order, then those of --group. */
static dt_status find_runs(dt_run_entries *out, dt_store *store, const dt_call *call, dt_error *err)
{
    const char *group = dt_arguments_get(call->args, "group")->text;
    dt_status st = DT_OK;

    out->items = dt_arena_alloc_array(call->arena, RUNS_MOST, sizeof(out->items[0]));
    for (int i = 0; i < call->args->operands_count; i++)
        DT_TRY(add_operand(out, store, call->args->operands[i], call, err));
    if (group != NULL)
        DT_TRY(add_group(out, store, group, call, err));
    if (out->count < 2)
        DT_THROW(err, DT_ERR_USAGE, "expected at least two runs, not %zu ('dtrun list' shows all)",
                 out->count);
out:
    return st;
}

/* Finds which of the usual metrics the runs have. Returns their number. */
static size_t usual_metrics(const char **out, dt_store *store, const dt_run_entries *runs)
{
    static const dt_metric_id usual[] = {DT_METRIC_VALID_LOSS, DT_METRIC_LOSS,
                                         DT_METRIC_TOKENS_PER_SECOND};
    dt_metric_end end;
    size_t count = 0;

    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        const char *name = dt_metric_name(usual[i]);

        for (size_t r = 0; r < runs->count; r++)
            if (dt_store_metric_end(store, &end, runs->items[r].run->id, name, DT_METRIC_LAST,
                                    NULL) == DT_OK &&
                end.there) {
                out[count++] = name;
                break;
            }
    }
    return count;
}

static dt_status compare(dt_call *call, dt_error *err)
{
    const dt_value *asked = dt_arguments_get(call->args, "metric");
    const char *usual[3], *const *metrics = asked->items;
    size_t metrics_count = asked->items_count, buckets;
    dt_comparison comparison = {0};
    dt_run_entries runs = {0};
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_strbuf text;
    dt_term term;

    dt_strbuf_init(&text);
    dt_term_init(&term, STDOUT_FILENO);
    buckets = dt_plot_buckets(term.seen && term.columns < CHART_COLUMNS ? term.columns - 1
                                                                        : CHART_COLUMNS - 1);
    DT_TRY(dt_store_open_to_read(&store, NULL, err));
    DT_TRY(find_runs(&runs, store, call, err));
    if (metrics_count == 0 && !call->json) {
        metrics = usual;
        metrics_count = usual_metrics(usual, store, &runs);
    }
    comparison = (dt_comparison){.store = store, .runs = runs.items, .count = runs.count};
    DT_TRY(dt_comparison_make(&comparison, metrics, metrics_count, call->json ? 0 : buckets,
                              call->arena, err));
    if (call->json) {
        DT_TRY(dt_report_json(dt_comparison_to_json(&comparison, call->arena), err));
    } else {
        dt_comparison_add(&text, &term, &comparison, call->arena);
        DT_TRY(dt_report_styled(&text, err));
    }
out:
    dt_strbuf_release(&text);
    dt_run_entries_release(&runs);
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "metric",
     .letter = 'm',
     .kind = DT_OPTION_LIST,
     .value = "NAME",
     .help = "show this metric instead of the losses and the throughput"},
    {.name = "group",
     .kind = DT_OPTION_TEXT,
     .value = "GROUP",
     .help = "add the runs of this group, oldest first"},
    {0},
};

const dt_command dt_command_compare = {
    .name = "compare",
    .summary = "compare recipes and results of runs",
    .operands = "RUN...",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_REMOTE,
    .operands_max = -1,
    .options = options,
    .notes =

        "RUN can also be the name of a group, for example of a sweep: all its runs are compared,\n"
        "the oldest first.\n"
        "Prints the recipe keys that differ, the best and last value of each metric with the\n"
        "difference to the first run, and the curves in one chart. The best value is the lowest\n"
        "one; of a throughput or an accuracy, the highest. --json has all metrics.\n",
    .run = compare,
};
