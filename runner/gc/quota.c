#include "runner/gc/quota.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"

static const char *const variables[DT_GC_KINDS] = {
    [DT_GC_LOGS] = "DTRUN_LOG_QUOTA",
    [DT_GC_CACHE] = "DTRUN_CACHE_QUOTA",
};

dt_status dt_quota_parse(int64_t *out, const char *of, const char *text, dt_error *err)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double value, scale = 1;
    char *end;

    value = strtod(text, &end);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++, scale *= 1000)
        if (end > text && strcasecmp(end + strspn(end, " "), units[i]) == 0 && value >= 0 &&
            value * scale < 9e18) {
            *out = (int64_t)(value * scale);
            return DT_OK;
        }
    return DT_FAIL(err, DT_ERR_USAGE, "%s '%s': expected a size, as in 20GB", of, text);
}

dt_status dt_quotas_read(int64_t quota[DT_GC_KINDS], dt_error *err)
{
    dt_status st = DT_OK;

    for (int kind = 0; kind < DT_GC_KINDS; kind++) {
        const char *text = variables[kind] != NULL ? getenv(variables[kind]) : NULL;

        quota[kind] = -1;
        if (text != NULL && text[0] != '\0')
            DT_TRY(dt_quota_parse(&quota[kind], variables[kind], text, err));
    }
out:
    return st;
}

dt_status dt_quotas_check(dt_error *err)
{
    int64_t quota[DT_GC_KINDS];

    return dt_quotas_read(quota, err);
}

static void warn(const char *message)
{
    dt_log_warn("quota: %s", message);
}

static void tell(const dt_gc *gc)
{
    for (int64_t i = 0; i < gc->count; i++)
        if (gc->items[i].removed)
            dt_log_info("removed '%s', %lld bytes, to stay within %s", gc->items[i].path,
                        (long long)gc->items[i].bytes, variables[gc->items[i].kind]);
}

dt_status dt_quotas_keep(const char *run, dt_error *err)
{
    dt_gc gc = {.spared = run, .keep = 1, .before_ms = INT64_MIN, .now_ms = dt_clock_wall_ms()};
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    gc.arena = &arena;
    DT_TRY(dt_quotas_read(gc.quota, err));
    for (int kind = 0; kind < DT_GC_KINDS; kind++)
        gc.kinds |= gc.quota[kind] >= 0 ? 1u << kind : 0;
    if (gc.kinds == 0)
        goto out;
    DT_TRY(dt_store_open_to_read(&gc.store, NULL, err));
    DT_TRY(dt_gc_scan(&gc, err));
    st = dt_gc_remove(&gc, warn, err);
    tell(&gc); /* also reports what was removed before an error */
out:
    json_decref(gc.contents);
    dt_store_close(gc.store);
    dt_arena_release(&arena);
    return st;
}
