/* gc: finds and removes what is no longer needed, and what exceeds the quotas of cache and logs when a run
 * ends. */
#include "runner/gc/gc.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

const char *const dt_gc_kind_names[] = {
    [DT_GC_CHECKPOINTS] = "checkpoints",
    [DT_GC_LOGS] = "logs",
    [DT_GC_JOURNALS] = "journals",
    [DT_GC_CACHE] = "cache",
    [DT_GC_SWEEPS] = "sweeps",
    [DT_GC_LEFTOVERS] = "leftovers",
    [DT_GC_KINDS] = NULL,
};

static int by_age(const void *a, const void *b)
{
    const dt_gc_item *left = a, *right = b;

    if (left->time_ms != right->time_ms)
        return left->time_ms < right->time_ms ? -1 : 1;
    return strcmp(left->path, right->path);
}

/* Marks the oldest items beyond the quota. */
static void heed_quota(dt_gc *gc, dt_gc_kind kind)
{
    int64_t stays = 0;

    for (int64_t i = 0; i < gc->count; i++)
        if (gc->items[i].kind == kind && !gc->items[i].wanted)
            stays += gc->items[i].bytes;
    for (int64_t i = 0; i < gc->count && gc->quota[kind] >= 0 && stays > gc->quota[kind]; i++)
        if (gc->items[i].kind == kind && !gc->items[i].wanted) {
            gc->items[i].wanted = true;
            stays -= gc->items[i].bytes;
        }
}

dt_status dt_gc_scan(dt_gc *gc, dt_error *err)
{
    dt_status st;

    DT_TRY(dt_gc_scan_runs(gc, err));
    DT_TRY(dt_gc_scan_cache(gc, err));
    DT_TRY(dt_gc_scan_sweeps(gc, err));
    if (gc->count > 1)
        qsort(gc->items, (size_t)gc->count, sizeof(gc->items[0]), by_age);
    for (int64_t i = 0; i < gc->count; i++)
        gc->items[i].wanted =
            gc->items[i].kind == DT_GC_LEFTOVERS || gc->items[i].time_ms < gc->before_ms;
    for (dt_gc_kind kind = 0; kind < DT_GC_KINDS; kind++)
        heed_quota(gc, kind);
out:
    return st;
}

dt_status dt_gc_remove(dt_gc *gc, void (*problem)(const char *message), dt_error *err)
{
    for (int64_t i = 0; i < gc->count; i++) {
        dt_error one = DT_ERROR_INIT;
        dt_gc_item *item = &gc->items[i];
        dt_status st = DT_OK;

        if (!item->wanted)
            continue;
        if (item->kind == DT_GC_LEFTOVERS) {
            st = dt_file_remove_tree(item->path, &one);
            item->removed = st == DT_OK;
        } else if (item->kind == DT_GC_SWEEPS) {
            st = dt_gc_remove_sweep(gc, item, &item->removed, &one);
        } else if (item->run != NULL) {
            st = dt_gc_remove_run_item(gc, item, &item->removed, &one);
        } else {
            st = dt_gc_remove_cached(gc, item, &item->removed, &one);
        }
        if (st == DT_ERR_NOMEM)
            return DT_FAIL(err, st, "%s", one.message);
        if (st != DT_OK) {
            problem(one.message);
            gc->problems += st != DT_ERR_BUSY; /* busy items are kept for now */
        }
    }
    return DT_OK;
}

/* Quotas. */

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
