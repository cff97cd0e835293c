#include "runner/smoke/smoke.h"

#include <stdio.h>
#include <string.h>

enum { CUT_SECONDS = 10, CUT_MOST_SECONDS = 600 };

const dt_smoke_fault_kind dt_smoke_fault_kinds[DT_SMOKE_FAULT_KINDS] = {
    {.option = "kill",
     .word = "kill",
     .promise =
         "after a rank dies, the run restarts from the last checkpoint and reaches the same bits",
     .restarts = true,
     .same_bits = true,
     .event_kind = "",
     .reason = "signal 9"},
    {.option = "hang",
     .word = "hang",
     .promise = "a hung rank is noticed; the run restarts and reaches the same bits",
     .restarts = true,
     .same_bits = true,
     .event_kind = "hung",
     .reason = ""},
    {.option = "slow",
     .word = "slow",
     .promise = "a slow rank is waited for; the run reaches the same bits",
     .same_bits = true,
     .has_times = true,
     .event_kind = "",
     .reason = ""},
    {.option = "disk-full",
     .word = "full",
     .promise = "a full disk damages no checkpoint, and the run continues",
     .event_kind = "",
     .reason = ""},
    {.option = "bitflip",
     .word = "flip",
     .promise =
         "a bit flip in the parameters of a rank is noticed before it is saved; the run restarts "
         "and reaches the same bits",
     .restarts = true,
     .same_bits = true,
     .event_kind = "",
     .reason = "a bit was flipped"}, /* of engine/train/replicas.c */
    {.option = "cut",
     .word = "",
     .promise = "after a connection is cut and returns, the run continues without a restart, to "
                "the same bits",
     .same_bits = true,
     .of_node = true,
     .event_kind = "cut",
     .reason = ""},
};

static const char *skip(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0 ? text + strlen(word) : text;
}

static bool read_rank(dt_smoke_fault *out, const char *text)
{
    const char *at = skip(text, "rank=");
    long long rank = 0, step = 0;
    char end;

    out->times = 2;
    if (at[0] == '@')
        return sscanf(at, "@%lld%c", &step, &end) == 1 && (out->step = step) >= 1;
    if (sscanf(at, "%lld@%lld%c", &rank, &step, &end) != 2 &&
        (!out->kind->has_times ||
         sscanf(at, "%lld@%lldx%lf%c", &rank, &step, &out->times, &end) != 3))
        return false;
    out->rank = rank;
    out->step = step;
    return rank >= 0 && step >= 1 && out->times >= 1 && out->times <= 1000;
}

static bool read_node(dt_smoke_fault *out, const char *text)
{
    long long node, step;
    char unit, end;
    int got;

    out->seconds = CUT_SECONDS;
    got = sscanf(skip(text, "node="), "%lld@%lld%c%lf%c%c", &node, &step, &unit, &out->seconds,
                 &end, &end);
    if (got != 2 && !(got == 4 && unit == ':') && !(got == 5 && unit == ':' && end == 's'))
        return false;
    out->node = node - 1;
    out->step = step;
    return node >= 1 && step >= 1 && out->seconds > 0 && out->seconds <= CUT_MOST_SECONDS;
}

static void name_it(dt_smoke_fault *out, dt_arena *arena)
{
    const char *option = out->kind->option, *word = out->kind->word;
    long long rank = out->rank, node = out->node, step = out->step;

    if (out->kind->of_node) {
        out->name =
            dt_arena_printf(arena, "%s node=%lld@%lld:%gs", option, node + 1, step, out->seconds);
        out->planted = dt_arena_printf(arena, "DTRUN_CUT=%lld@%lld:%g", node, step, out->seconds);
    } else {
        out->name = dt_arena_printf(arena, "%s rank=%lld@%lld", option, rank, step);
        out->planted = out->kind->has_times
                           ? dt_arena_printf(arena, "DTRUN_FAULT=%s %lld@%lldx%g", word, rank, step,
                                             out->times)
                           : dt_arena_printf(arena, "DTRUN_FAULT=%s %lld@%lld", word, rank, step);
    }
}

dt_status dt_smoke_fault_read(dt_smoke_fault *out, const dt_smoke_fault_kind *kind,
                              const char *text, dt_arena *arena, dt_error *err)
{
    *out = (dt_smoke_fault){.kind = kind};
    if (kind->of_node ? !read_node(out, text) : !read_rank(out, text))
        return DT_FAIL(err, DT_ERR_USAGE, "--%s '%s': expected a %s and a step, as in '%s'",
                       kind->option, text, kind->of_node ? "node" : "rank",
                       kind->of_node     ? "node=2@4:10s"
                       : kind->has_times ? "rank=1@3x4"
                                         : "rank=1@3");
    name_it(out, arena);
    return DT_OK;
}
