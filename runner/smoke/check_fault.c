/* check_fault: injects faults into runs and checks how they recover. */
#include <string.h>

#include "runner/smoke/smoke_int.h"
#include "store/event.h"

#define HANG_SECONDS 2 /* least time without a step; at least five steps long */

static dt_recipe harmed(const dt_smoke *smoke)
{
    dt_recipe out = smoke->recipe;

    out.failure.max_restarts = 3;
    out.failure.hang_seconds = HANG_SECONDS;
    return out;
}

/* Finds the first step of the second attempt; -1 if there is none. */
static dt_status resumed_from(int64_t *out, const dt_smoke *smoke, const dt_smoke_run *run,
                              dt_error *err)
{
    dt_attempt *attempts;
    int64_t count;
    dt_status st = DT_OK;

    *out = -1;
    DT_TRY(dt_store_attempt_list(smoke->place.store, &attempts, &count, run->row.id, smoke->arena,
                                 err));
    if (count > 1)
        *out = attempts[1].start_step;
out:
    return st;
}

dt_status dt_smoke_resumes(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    /* after the start of the third save, which requires the second to be complete */
    int64_t steps = smoke->recipe.schedule.steps, at = 3 * smoke->recipe.checkpoint.every + 1, from;
    int64_t rank = smoke->recipe.strategy.kind == DT_STRATEGY_DP ? 0 : smoke->ranks - 1;
    dt_recipe recipe = harmed(smoke);
    dt_smoke_run run;
    dt_status st = DT_OK;
    bool same;
    char *planted;

    if (at >= steps)
        at = steps - 1;
    planted =
        dt_arena_printf(smoke->arena, "DTRUN_FAULT=kill %lld@%lld", (long long)rank, (long long)at);
    DT_TRY(dt_smoke_train(&run, &smoke->place, "resumes", &recipe, planted, err));
    DT_TRY(dt_smoke_same_bits(&same, out, smoke, &smoke->trained, &run, err));
    DT_TRY(resumed_from(&from, smoke, &run, err));
    if (from <= 0)
        dt_smoke_fail(out, smoke,
                      from < 0 ? "rank %lld was not killed"
                               : "rank %lld was killed, and no checkpoint was complete",
                      (long long)rank);
    else if (same)
        dt_smoke_figure(
            out, smoke,
            "rank %lld killed after step %lld, continued from step %lld: %lld equal losses",
            (long long)rank, (long long)at, (long long)from, (long long)steps);
out:
    return st;
}

static dt_status count_events(int64_t *out, const dt_smoke *smoke, const dt_smoke_run *run,
                              const char *kind, dt_error *err)
{
    dt_store_event *events;
    dt_status st = DT_OK;
    int64_t count;

    *out = 0;
    DT_TRY(dt_store_event_list(smoke->place.store, &events, &count, run->row.id, 0, 0, smoke->arena,
                               err));
    for (int64_t i = 0; i < count; i++)
        *out += strcmp(events[i].kind, kind) == 0;
out:
    return st;
}

/* Checks that the fault happened: by its event, or by the reason with which the first attempt
 * ended. */
static dt_status check_it_was(dt_smoke_result *out, dt_smoke *smoke, const dt_smoke_fault *fault,
                              const dt_smoke_run *run, dt_error *err)
{
    const dt_smoke_fault_kind *kind = fault->kind;
    int64_t reported = 1, count;
    dt_attempt *attempts;
    dt_status st = DT_OK;

    if (kind->event_kind[0] != '\0')
        DT_TRY(count_events(&reported, smoke, run, kind->event_kind, err));
    DT_TRY(dt_store_attempt_list(smoke->place.store, &attempts, &count, run->row.id, smoke->arena,
                                 err));
    if (reported == 0)
        dt_smoke_fail(out, smoke, "the fault did not happen: no event reports it");
    else if (kind->restarts && count < 2)
        dt_smoke_fail(out, smoke, "the fault was not noticed: no restart");
    else if (!kind->restarts && kind->same_bits && count > 1)
        dt_smoke_fail(out, smoke, "unexpected restarts: %lld: %s", (long long)count - 1,
                      attempts[0].reason);
    else if (strstr(attempts[0].reason, kind->reason) == NULL)
        dt_smoke_fail(out, smoke, "restarted for another reason: %s", attempts[0].reason);
out:
    return st;
}

/* Checks a run that finished despite the fault. */
static dt_status judge(dt_smoke_result *out, dt_smoke *smoke, const dt_smoke_fault *fault,
                       const dt_smoke_run *undisturbed, const dt_smoke_run *run, dt_error *err)
{
    int64_t unsaved, attempts = run->row.attempt;
    bool same = true;
    dt_status st = DT_OK;

    DT_TRY(count_events(&unsaved, smoke, run, "checkpoint_failed", err));
    if (fault->kind->same_bits)
        DT_TRY(dt_smoke_same_bits(&same, out, smoke, undisturbed, run, err));
    if (same)
        DT_TRY(check_it_was(out, smoke, fault, run, err));
    if (out->verdict != DT_SMOKE_FAILED)
        dt_smoke_figure(out, smoke, "%lld %s, %lld saves failed, %.1f s%s", (long long)attempts,
                        attempts == 1 ? "attempt" : "attempts", (long long)unsaved, run->seconds,
                        fault->kind->same_bits ? ", equal losses" : "");
out:
    return st;
}

/* Gives the ranks several nodes, between which the network can be cut: with --here the recipe's
 * nodes, else each rank of this machine becomes a node. Sums over more than two ranks may then be
 * computed in another order, so a new undisturbed run is trained to compare with. */
static dt_status spread(dt_recipe *io, dt_smoke_run *undisturbed, dt_smoke *smoke, dt_error *err)
{
    dt_status st = DT_OK;

    if (smoke->wish->how.here)
        return DT_OK;
    dt_shrink_spread(io);
    if (io->nodes.count > 2)
        DT_TRY(dt_smoke_train(undisturbed, &smoke->place, "nodes", io, NULL, err));
out:
    return st;
}

/* Whether the fault can be tested; if not, `out` has the reason. */
static bool is_possible(dt_smoke_result *out, const dt_smoke *smoke, const dt_smoke_fault *fault,
                        const dt_recipe *recipe)
{
    int64_t world = smoke->recipe.strategy.kind == DT_STRATEGY_DP ? 1 : smoke->ranks;
    bool flips = strcmp(fault->kind->word, "flip") == 0;
    bool alone = dt_recipe_data_ranks(recipe, world) == 1; /* also of ranks that divide layers */

    if (fault->kind->of_node && fault->node >= (int64_t)recipe->nodes.count)
        dt_smoke_fail(out, smoke, "no node %lld (nodes are 1 to %lld)", (long long)fault->node + 1,
                      (long long)recipe->nodes.count);
    else if (!fault->kind->of_node && fault->rank >= world)
        dt_smoke_fail(out, smoke, "no rank %lld (ranks are 0 to %lld)", (long long)fault->rank,
                      (long long)world - 1);
    else if (fault->step >= recipe->schedule.steps)
        dt_smoke_fail(out, smoke, "step %lld is not before the last step %lld (use --steps)",
                      (long long)fault->step, (long long)recipe->schedule.steps);
    else if (flips && (recipe->strategy.kind != DT_STRATEGY_DDP || alone))
        dt_smoke_skip(out, smoke, "not applicable: no other rank has the same parameters (%s)",
                      world == 1 ? "one process"
                      : alone    ? "'tensor' divides them"
                                 : "fsdp shards them");
    else
        return true;
    return false;
}

dt_status dt_smoke_survives(dt_smoke_result *out, dt_smoke *smoke, const dt_smoke_fault *fault,
                            dt_error *err)
{
    dt_smoke_run run, undisturbed = smoke->trained;
    dt_recipe recipe = harmed(smoke);
    dt_status st = DT_OK;

    if (fault->kind->of_node)
        DT_TRY(spread(&recipe, &undisturbed, smoke, err));
    if (!is_possible(out, smoke, fault, &recipe))
        goto out;
    DT_TRY(dt_smoke_train(&run, &smoke->place, "fault", &recipe, fault->planted, err));
    DT_TRY(judge(out, smoke, fault, &undisturbed, &run, err));
out:
    return st;
}
