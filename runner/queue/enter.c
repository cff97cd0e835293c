/* enter: checks a run that will wait, and adds its entry. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/names.h"
#include "recipes/fields/fields.h"
#include "recipes/fields/nodes.h"
#include "runner/launch/attempt.h"
#include "runner/launch/nodes.h"
#include "runner/queue/queue.h"
#include "runner/supervisor/folder/launch_env.h"
#include "store/store.h"

/* The environment of the launch is kept with the run, but not the secrets in it. */
static dt_status check_secrets(const dt_recipe *recipe, dt_arena *arena, dt_error *err)
{
    const char *keep = getenv("DTRUN_KEEP_ENV"), *names;
    char *rest;

    dt_launch_env_references(
        &names, dt_launch_env_text(recipe->notify.webhook, &recipe->env, arena), arena);
    rest = dt_arena_strdup(arena, names);
    for (char *name; (name = strsep(&rest, ",")) != NULL;)
        if (name[0] != '\0' && !dt_launch_env_keeps(dt_arena_printf(arena, "%s=", name), keep))
            return DT_FAIL(err, DT_ERR_USAGE,
                           "the recipe takes '%s' from the environment, and a run that waits keeps "
                           "no secrets: set DTRUN_KEEP_ENV=%s to keep it in the run's folder",
                           name, name);
    return DT_OK;
}

static dt_status prepare(const dt_queue_wish *wish, const dt_preflight *flight, dt_call *call,
                         dt_error *err)
{
    dt_queue_file file = {.lock = -1};
    const char *needs;
    dt_status st = DT_OK;
    bool fits;

    DT_TRY(check_secrets(&flight->recipe, call->arena, err));
    DT_TRY(dt_queue_machines_learn(flight, call->arena, err));
    DT_TRY(dt_queue_read(&file, call->arena, err));
    DT_TRY(dt_queue_would_fit(&fits, &needs, &file, wish, &flight->plan, call->arena, err));
    if (!fits)
        DT_THROW(err, DT_ERR_RECIPE, "the run needs %s, more than there is: %s", needs,
                 dt_queue_machines_text(&file, true, call->arena));
out:
    return st;
}

static dt_status enter(const char *run, const dt_queue_wish *wish, const dt_recipe *recipe,
                       double seconds, dt_call *call, dt_error *err)
{
    dt_queue_file file = {.lock = -1};
    dt_queue_entry *entry;
    dt_status st;

    DT_TRY(dt_queue_open(&file, call->arena, err));
    entry = dt_queue_entry_add(&file, run);
    entry->priority = wish->priority;
    entry->place = dt_clock_wall_ms();
    for (int64_t i = 0; i < file.entry_count;
         i++) /* launches within a millisecond, and a clock that was set back */
        if (&file.entries[i] != entry && file.entries[i].place >= entry->place)
            entry->place = file.entries[i].place + 1;
    entry->not_before_ms = wish->not_before_ms;
    entry->after = wish->after;
    for (int64_t i = 0; i < recipe->nodes.count && wish->units == 0; i++)
        entry->nodes = dt_arena_printf(call->arena, "%s%s%s", entry->nodes, i > 0 ? "\n" : "",
                                       recipe->nodes.items[i]);
    entry->units = wish->units;
    entry->unit_gpus = wish->unit_gpus;
    entry->unit_cores = wish->unit_cores;
    entry->lasts_ms = wish->lasts_ms > 0                ? wish->lasts_ms
                      : seconds > 0 && seconds < 3650e5 ? (int64_t)(seconds * 1000)
                                                        : 0;
    DT_TRY(dt_queue_write(&file, err));
    dt_queue_close(&file);
    DT_TRY(dt_arbiter_ensure(err));
out:
    dt_queue_close(&file);
    return st;
}

dt_status dt_queue_launch(const char **run, dt_store *store, const dt_recipe_source *source,
                          const dt_labels *labels, const dt_queue_wish *wish, double seconds,
                          dt_preflight *flight, dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;

    if (wish->queues)
        DT_TRY(prepare(wish, flight, call, err));
    flight->waits = wish->queues;
    DT_TRY(dt_attempt_launch(run, store, source, labels, NULL, flight, call->arena, err));
    if (wish->queues)
        DT_TRY(enter(*run, wish, &flight->recipe, seconds, call, err));
out:
    return st;
}

dt_status dt_queue_resume(dt_store *store, const dt_run *run, const char *checkpoint,
                          const dt_budget_place *at, const dt_queue_wish *wish,
                          dt_preflight *flight, dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;

    if (wish->queues)
        DT_TRY(prepare(wish, flight, call, err));
    flight->waits = wish->queues;
    DT_TRY(dt_attempt_resume(store, run, checkpoint, at, flight, call->arena, err));
    if (wish->queues)
        DT_TRY(enter(run->id, wish, &flight->recipe, NAN, call, err));
out:
    return st;
}
