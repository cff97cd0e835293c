#include "runner/gc/gc.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

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
