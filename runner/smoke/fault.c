#include "runner/smoke/fault.h"

#include <stdio.h>
#include <string.h>

#include "base/banned.h"

const dt_smoke_fault_kind dt_smoke_fault_kinds[DT_SMOKE_FAULT_KINDS] = {
    {"kill", "kill", "a rank that dies costs no bit: it is started again from the last checkpoint",
     true, true, false},
    {"hang", "hang", "a rank that stands still is noticed, and started again to the same bits",
     true, true, false},
    {"slow", "slow", "a slow rank is waited for, to the same bits", false, true, true},
    {"disk-full", "full", "a full disk harms no checkpoint, and the run goes on", false, false,
     false},
};

static bool read_place(dt_smoke_fault *out, const char *text)
{
    const char *at = strncmp(text, "rank=", strlen("rank=")) == 0 ? text + strlen("rank=") : text;
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

dt_status dt_smoke_fault_read(dt_smoke_fault *out, const dt_smoke_fault_kind *kind,
                              const char *text, dt_arena *arena, dt_error *err)
{
    *out = (dt_smoke_fault){.kind = kind};
    if (!read_place(out, text))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--%s '%s': expected a rank and a step, as in 'rank=1@3%s'", kind->option,
                       text, kind->has_times ? "x4" : "");
    out->name = dt_arena_printf(arena, "%s rank=%lld@%lld", kind->option, (long long)out->rank,
                                (long long)out->step);
    out->planted = kind->has_times
                       ? dt_arena_printf(arena, "%s %lld@%lldx%g", kind->word, (long long)out->rank,
                                         (long long)out->step, out->times)
                       : dt_arena_printf(arena, "%s %lld@%lld", kind->word, (long long)out->rank,
                                         (long long)out->step);
    return out->name != NULL && out->planted != NULL ? DT_OK
                                                     : DT_FAIL(err, DT_ERR_NOMEM, "no memory");
}
