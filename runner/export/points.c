#include "runner/export/export.h"

#define BLOCK_POINTS 4096

typedef struct block {
    dt_metric *points;
    int64_t count;
} block;

static bool gather(void *context, const dt_metric *point)
{
    block *b = context;

    b->points[b->count++] = *point;
    return b->count < BLOCK_POINTS;
}

static dt_status give_curve(const dt_export_job *job, const dt_store_curves *curves, int64_t which,
                            int64_t last_step, block *b, dt_export_take take, void *context,
                            dt_error *err)
{
    int64_t after = -1;
    dt_status st = DT_OK;

    do {
        b->count = 0;
        DT_TRY(dt_store_curve_scan(job->store, curves, which, after, last_step, gather, b, err));
        for (int64_t i = 0; i < b->count; i++)
            DT_TRY(take(context, &b->points[i], err));
        if (b->count > 0)
            after = b->points[b->count - 1].step;
    } while (b->count == BLOCK_POINTS);
out:
    return st;
}

dt_status dt_export_points(const dt_export_job *job, const dt_run *run, dt_export_take take,
                           void *context, dt_error *err)
{
    int64_t last_step = dt_run_state_is_terminal(run->state) ? INT64_MAX : run->step;
    dt_store_curves curves;
    dt_status st = DT_OK;
    dt_arena arena;
    block b = {0};

    dt_arena_init(&arena, 0);
    b.points = dt_arena_alloc_array(&arena, BLOCK_POINTS, sizeof(b.points[0]));
    DT_TRY(dt_store_curves_find(job->store, &curves, run->id, job->metric, &arena, err));
    for (int64_t i = 0; i < curves.count; i++)
        DT_TRY(give_curve(job, &curves, i, last_step, &b, take, context, err));
out:
    dt_arena_release(&arena);
    return st;
}
