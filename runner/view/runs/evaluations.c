#include "runner/view/runs/evaluations.h"

#include <math.h>

#include "runner/term/format.h"

/* Returns the value at `step`, or NaN if there is none. */
static double at_step(const dt_metric *points, int64_t count, int64_t step)
{
    for (int64_t i = 0; i < count; i++)
        if (points[i].step == step)
            return points[i].value;
    return NAN;
}

dt_status dt_evaluations_read(dt_evaluation **out, int64_t *count, int64_t *after_step,
                              dt_store *store, const char *run, dt_arena *arena, dt_error *err)
{
    dt_metric *losses, *bleus;
    dt_status st = DT_OK;
    int64_t bleus_count;

    DT_TRY(dt_store_metric_list(store, &losses, count, run, DT_VALID_LOSS, *after_step, false,
                                arena, err));
    DT_TRY(dt_store_metric_list(store, &bleus, &bleus_count, run, DT_VALID_BLEU, *after_step, false,
                                arena, err));
    *out = dt_arena_alloc_array(arena, (size_t)*count + 1, sizeof((*out)[0]));
    for (int64_t i = 0; i < *count; i++) {
        const dt_metric *p = &losses[i];

        (*out)[i] = (dt_evaluation){p->attempt, p->step, p->time_ms, p->value,
                                    at_step(bleus, bleus_count, p->step)};
        *after_step = p->step;
    }
out:
    return st;
}

void dt_evaluation_add(dt_strbuf *out, const dt_evaluation *evaluation)
{
    char number[DT_FORMAT_SIZE];

    dt_strbuf_add_fmt(out, "validation loss %s",
                      isfinite(evaluation->loss)
                          ? dt_format_loss(number, sizeof(number), evaluation->loss)
                          : dt_format_exact(number, sizeof(number), evaluation->loss));
    if (!isnan(evaluation->bleu))
        dt_strbuf_add_fmt(out, "  BLEU %.2f", evaluation->bleu);
}
