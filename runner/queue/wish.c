/* wish: options of a launch with --queue, and the first place of a run without nodes. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/names.h"
#include "recipes/fields/fields.h"
#include "recipes/fields/nodes.h"
#include "recipes/fields/values.h"
#include "runner/queue/queue.h"
#include "runner/view/runs/runs.h"
#include "store/store.h"

/* --- options */

static bool parse_clock(int64_t *out_ms, const char *text, int64_t now_ms)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
                                        "%Y-%m-%d %H:%M",    "%Y-%m-%d",          "%H:%M"};
    time_t now = (time_t)(now_ms / 1000);

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        bool day = forms[i][1] == 'Y';
        struct tm when;
        const char *end;

        localtime_r(&now, &when);
        when.tm_sec = 0;
        if (day)
            when.tm_hour = when.tm_min = 0;
        end = strptime(text, forms[i], &when);
        if (end == NULL || *end != '\0')
            continue;
        when.tm_isdst = -1;
        *out_ms = (int64_t)mktime(&when) * 1000;
        if (!day && *out_ms <= now_ms) { /* 08:00 in the evening is tomorrow */
            when.tm_mday++;
            when.tm_isdst = -1;
            *out_ms = (int64_t)mktime(&when) * 1000;
        }
        return *out_ms > 0;
    }
    return false;
}

static dt_status read_times(dt_queue_wish *out, const dt_call *call, dt_error *err)
{
    const char *text = dt_arguments_get(call->args, "not-before")->text;
    const char *lasts = dt_arguments_get(call->args, "lasts")->text;
    int64_t now_ms = dt_clock_wall_ms();
    double seconds;

    if (text != NULL && text[0] == '+' && dt_text_duration(&seconds, text + 1))
        out->not_before_ms = now_ms + (int64_t)(seconds * 1000);
    else if (text != NULL && !parse_clock(&out->not_before_ms, text, now_ms))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--not-before '%s' is not a time: write 18:30, 2026-12-24T18:30 or +2h",
                       text);
    if (lasts == NULL)
        return DT_OK;
    if (!dt_text_duration(&seconds, lasts) || seconds <= 0)
        return DT_FAIL(err, DT_ERR_USAGE, "--lasts '%s' is not a duration: write 90m, 2h or 1d",
                       lasts);
    out->lasts_ms = (int64_t)(seconds * 1000);
    return DT_OK;
}

static dt_status read_after(dt_queue_wish *out, dt_call *call, dt_error *err)
{
    const dt_value *after = dt_arguments_get(call->args, "after");
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_run run;

    out->after = "";
    for (size_t i = 0; i < after->items_count; i++) {
        if (i == 0)
            DT_TRY(dt_runs_open(&store, &run, after->items[i], call, err));
        else
            DT_TRY(dt_store_run_find(store, &run, after->items[i], call->arena, err));
        if (dt_run_state_is_terminal(run.state) && run.state != DT_RUN_FINISHED)
            DT_THROW(err, DT_ERR_USAGE,
                     "--after %s: run %s has %s, so nothing would start after it", after->items[i],
                     run.id, dt_run_state_name(run.state));
        out->after = dt_arena_printf(call->arena, "%s%s%s", out->after, i > 0 ? " " : "", run.id);
    }
out:
    dt_store_close(store);
    return st;
}

dt_status dt_queue_wish_read(dt_queue_wish *out, dt_call *call, dt_error *err)
{
    static const char *const others[] = {"priority", "after", "not-before", "lasts"};
    dt_status st = DT_OK;

    *out = (dt_queue_wish){.after = ""};
    if (!dt_arguments_flag(call->args, "queue")) {
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
            if (dt_arguments_get(call->args, others[i])->given)
                DT_THROW(err, DT_ERR_USAGE, "--%s needs --queue", others[i]);
        return DT_OK;
    }
    out->queues = true;
    out->priority = dt_arguments_get(call->args, "priority")->integer;
    DT_TRY(read_times(out, call, err));
    DT_TRY(read_after(out, call, err));
out:
    return st;
}

/* --- a run without nodes */

/* "4 GPUs" */
static const char *units_text(const dt_queue_wish *wish, dt_arena *arena)
{
    if (wish->unit_gpus > 0)
        return dt_arena_printf(arena, "%lld GPU%s", (long long)wish->units,
                               wish->units == 1 ? "" : "s");
    return dt_arena_printf(arena, "%lld rank%s of %lld processor%s", (long long)wish->units,
                           wish->units == 1 ? "" : "s", (long long)wish->unit_cores,
                           wish->unit_cores == 1 ? "" : "s");
}

const char *dt_queue_nodes_value(const dt_string_list *items, dt_arena *arena)
{
    const char *text = "nodes=[";

    for (int64_t i = 0; i < items->count; i++)
        text = dt_arena_printf(arena, "%s%s\"%s\"", text, i > 0 ? ", " : "", items->items[i]);
    return dt_arena_printf(arena, "%s]", text);
}

static dt_status place_units(const char **nodes, dt_queue_wish *io, const dt_recipe *recipe,
                             dt_call *call, dt_error *err)
{
    dt_order_machine *machines;
    dt_order order = {.run_count = 1, .now_ms = dt_clock_wall_ms()};
    dt_order_run run = {.id = "", .waits = true, .group = -1};
    dt_status st = DT_OK;
    dt_string_list items;
    dt_queue_file file;

    *nodes = NULL;
    DT_TRY(dt_queue_read(&file, call->arena, err));
    io->unit_gpus = recipe->gpus > 0;
    io->units = recipe->gpus > 0 ? recipe->gpus : recipe->ranks;
    io->unit_cores = recipe->gpus > 0 ? 0 : recipe->threads > 0 ? recipe->threads : 1;
    if (recipe->gpus <= 0 &&
        dt_recipe_processes(recipe) > 0) { /* of a program: all on one machine */
        io->units = 1;
        io->unit_cores *= dt_recipe_processes(recipe);
    }
    if (dt_queue_machines_text(&file, false, call->arena)[0] == '\0') {
        io->units = 0; /* no machine is shared: it runs on this one, as without a queue */
        return DT_OK;
    }
    machines = dt_arena_alloc_array(call->arena, (size_t)file.machine_count, sizeof(*machines));
    for (int64_t i = 0; i < file.machine_count; i++)
        machines[i] = (dt_order_machine){.name = file.machines[i].name,
                                         .gpus = file.machines[i].gpus,
                                         .cores = file.machines[i].cores,
                                         .shared = file.machines[i].shared};
    run.units = io->units;
    run.unit_gpus = io->unit_gpus;
    run.unit_cores = io->unit_cores;
    order.machines = machines;
    order.machine_count = file.machine_count;
    order.runs = &run;
    dt_order_decide(&order, call->arena);
    if (run.verdict != DT_ORDER_START)
        DT_THROW(
            err, DT_ERR_RECIPE,
            "the run needs %s, on one machine or the same number on each of several, and never "
            "gets them: %s",
            units_text(io, call->arena), dt_queue_machines_text(&file, false, call->arena));
    dt_queue_items(&items, &order, &run, &recipe->nodes, call->arena);
    *nodes = dt_queue_nodes_value(&items, call->arena);
out:
    return st;
}

dt_status dt_queue_take_recipe(const char **nodes, dt_queue_wish *io, const dt_recipe *recipe,
                               const dt_recipe_source *source, dt_call *call, dt_error *err)
{
    *nodes = NULL;
    if (dt_task_has_lines(recipe->task))
        return DT_FAIL(err, DT_ERR_USAGE, "--queue is for runs that train or run a command");
    if (dt_node_is_slurm(recipe->nodes.items[0]))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "Slurm has a queue of its own: launch 'nodes: slurm' without --queue");
    return dt_origins_has(source->origins, "nodes") || dt_origins_has(source->origins, "hostfile")
               ? DT_OK
               : place_units(nodes, io, recipe, call, err);
}
