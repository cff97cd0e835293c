/* result: sets the verdict and the figure of a check. */
#include <stdarg.h>
#include <stdio.h>

#include "runner/smoke/smoke_int.h"

static void say(dt_smoke_result *out, const dt_smoke *smoke, dt_smoke_verdict verdict,
                const char *fmt, va_list args)
{
    char line[sizeof(((dt_error *)0)->message)];

    vsnprintf(line, sizeof(line), fmt, args);
    out->verdict = verdict;
    out->figure = dt_arena_strdup(smoke->arena, line);
}

#define SAY(verdict)                           \
    do {                                       \
        va_list args;                          \
        va_start(args, fmt);                   \
        say(out, smoke, (verdict), fmt, args); \
        va_end(args);                          \
    } while (0)

void dt_smoke_figure(dt_smoke_result *out, const dt_smoke *smoke, const char *fmt, ...)
{
    SAY(DT_SMOKE_GOOD);
}

void dt_smoke_fail(dt_smoke_result *out, const dt_smoke *smoke, const char *fmt, ...)
{
    SAY(DT_SMOKE_FAILED);
}

void dt_smoke_skip(dt_smoke_result *out, const dt_smoke *smoke, const char *fmt, ...)
{
    SAY(DT_SMOKE_SKIPPED);
}
