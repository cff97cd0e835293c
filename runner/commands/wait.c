/* dtrun wait: waits for a condition or for the end of a run, for scripts. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/view/follow/follow.h"
#include "runner/view/runs/runs.h"

#define LOOK_SECONDS 0.2 /* most between two looks: not every file system tells of changes */

typedef struct condition {
    const char *text;
    dt_run_filter filter;
    int64_t attempt, after_step; /* points of the metric up to here were checked */
} condition;

/* Parses a condition: "finished" means state=finished, and step=400 means step>=400. */
static dt_status read_condition(condition *out, const char *text, dt_arena *arena, dt_error *err)
{
    dt_run_state state;
    dt_status st = DT_OK;

    *out = (condition){.text = text, .after_step = -1};
    if (dt_run_state_parse(&state, text)) {
        out->filter = (dt_run_filter){.key = "state", .value = text, .kind = DT_FILTER_EQUAL};
        return DT_OK;
    }
    DT_TRY(dt_run_filter_parse(&out->filter, text, arena, err));
    if (strcmp(out->filter.key, "step") == 0 && out->filter.kind == DT_FILTER_EQUAL)
        out->filter.kind = DT_FILTER_MORE_OR_EQUAL;
    if (strcmp(out->filter.key, "state") == 0 && out->filter.kind == DT_FILTER_EQUAL &&
        !dt_run_state_parse(&state, out->filter.value))
        DT_THROW(err, DT_ERR_USAGE, "--until: '%s' is not a state of a run", out->filter.value);
out:
    return st;
}

/* Checks every new point of a metric, so that none is missed between two polls. */
static dt_status look_at_metric(bool *met, condition *on, dt_store *store, const dt_run *run,
                                dt_arena *arena, dt_error *err)
{
    dt_metric *points;
    dt_status st = DT_OK;
    int64_t count;

    if (on->attempt != run->attempt) /* a new attempt may repeat steps */
        on->after_step = -1;
    on->attempt = run->attempt;
    DT_TRY(dt_store_metric_list(store, &points, &count, run->id, on->filter.key, on->after_step,
                                false, arena, err));
    for (int64_t i = 0; i < count && !*met; i++) {
        const dt_run_value value = {true, true, points[i].value, ""};

        *met = dt_run_filter_passes(&on->filter, &value);
    }
    if (count > 0)
        on->after_step = points[count - 1].step;
out:
    return st;
}

static dt_status look(bool *met, condition *on, dt_store *store, const dt_run *run, dt_arena *arena,
                      dt_error *err)
{
    dt_run_entry entry = {.run = run};
    dt_status st = DT_OK;
    dt_run_value value;

    *met = false;
    DT_TRY(look_at_metric(met, on, store, run, arena, err));
    if (!*met && on->after_step < 0) { /* no metric of this run, or not yet */
        DT_TRY(dt_run_value_get(&value, store, &entry, on->filter.key, arena, err));
        *met = dt_run_filter_passes(&on->filter, &value);
    }
out:
    dt_run_entry_release(&entry);
    return st;
}

static dt_status look_at_all(const char **met, condition *conditions, size_t count, dt_store *store,
                             const dt_run *run, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    bool here;

    for (size_t i = 0; i < count && *met == NULL; i++) {
        DT_TRY(look(&here, &conditions[i], store, run, arena, err));
        if (here)
            *met = conditions[i].text;
    }
out:
    return st;
}

/* Waits until a condition is met, the run has ended, or the time is over. *run lives in `arena`. */
static dt_status follow(const char **met, dt_run *run, condition *conditions, size_t count,
                        dt_store *store, double seconds, dt_arena *arena, const dt_call *call,
                        dt_error *err)
{
    double now = dt_clock_monotonic_seconds(), end = now + seconds;
    dt_upkeep upkeep = {0};
    const char *news;
    const char *id = dt_arena_strdup(call->arena, run->id);
    dt_status st = DT_OK;

    for (;;) {
        bool ended = dt_run_state_is_terminal(run->state);

        DT_TRY(look_at_all(met, conditions, count, store, run, arena, err));
        if (*met != NULL || ended || now > end)
            break;
        DT_TRY(dt_upkeep_look(&news, &upkeep, run, err));
        if (news != NULL)
            dt_report_say("dtrun: run '%s': %s", id, news);
        (void)dt_store_wait(store, LOOK_SECONDS);
        now = dt_clock_monotonic_seconds();
        dt_arena_reset(arena);
        (void)dt_store_renew(store, id);
        DT_TRY(dt_store_run_find(store, run, id, arena, err));
    }
out:
    return st;
}

/* Sets the exit code and prints a message if no condition was met. */
static void judge(dt_call *call, const dt_run *run, const char *met, size_t conditions)
{
    if (met != NULL)
        return;
    if (!dt_run_state_is_terminal(run->state)) {
        call->exit_code = DT_EXIT_TIME_LIMIT;
        dt_report_note(call, "time limit reached: run '%s' is %s at step %lld", run->id,
                       dt_run_state_name(run->state), (long long)run->step);
    } else if (conditions > 0) {
        call->exit_code = DT_EXIT_FAILED;
        dt_report_note(call, "run '%s' ended before the condition was met: %s at step %lld",
                       run->id, dt_run_state_name(run->state), (long long)run->step);
    } else {
        call->exit_code = run->exit_code;
    }
}

static dt_status wait_run(dt_call *call, dt_error *err)
{
    const dt_value *until = dt_arguments_get(call->args, "until");
    const dt_value *limit = dt_arguments_get(call->args, "limit");
    condition *conditions =
        dt_arena_alloc_array(call->arena, until->items_count + 1, sizeof(conditions[0]));
    double seconds = limit->given ? limit->number : 1e15;
    const char *met = NULL;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    json_t *object;
    dt_arena arena;
    dt_run run;

    dt_arena_init(&arena, 0);
    for (size_t i = 0; i < until->items_count; i++)
        DT_TRY(read_condition(&conditions[i], until->items[i], call->arena, err));
    DT_TRY(dt_runs_open(&store, &run, call->args->operands[0], call, err));
    DT_TRY(follow(&met, &run, conditions, until->items_count, store, seconds, &arena, call, err));
    judge(call, &run, met, until->items_count);
    if (call->json) {
        object = dt_runs_to_json(&run);
        json_object_set_new(object, "met", met != NULL ? dt_json_text(met) : json_null());
        DT_TRY(dt_report_json(object, err));
    }
out:
    dt_store_close(store);
    dt_arena_release(&arena);
    return st;
}

static const dt_option options[] = {
    {.name = "until",
     .letter = 'u',
     .kind = DT_OPTION_LIST,
     .value = "CONDITION",
     .help =
         "condition, as in 'valid_loss<1.9', step=400 or running; the first one met ends the wait"},
    {.name = "limit",
     .kind = DT_OPTION_NUMBER,
     .value = "SECONDS",
     .low = 0,
     .high = 1e9,
     .help = "maximum time to wait; then the exit code is 124"},
    {0},
};

const dt_command dt_command_wait = {
    .name = "wait",
    .summary = "wait for a condition or for the end of a run",
    .operands = "RUN",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_REMOTE,
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =

        "A CONDITION is a state, or a filter as in 'dtrun list'. Any point of a metric can meet a\n"
        "condition; step=N is met from step N on. The exit code is 0 if a condition is met and 1\n"
        "if the run ends before. Without --until, waits for the end of the run and exits with the\n"
        "exit code of the run.\n",
    .run = wait_run,
};
