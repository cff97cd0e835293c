/* task_progress: tracks the progress of a task (recipes/plan/plan.h) from the parts that its ranks report.
 *
 * The step of such a run is the number of lines in finished parts. Each part counts once, whichever rank
 * reports it again; parts that are in the folder at the start (folder/task_folder.h) are counted too.
 */
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/metric_kinds.h"
#include "runner/supervisor/collect/collect_int.h"

#define RATE_SECONDS 20.0

/* Recent work of a rank and the time that it took; when the time gets too long, both are halved.
 * Several parts may finish at the same moment, because lines are processed in parallel. */
typedef struct rate {
    double lines, tokens, seconds;
} rate;

struct dt_task_progress {
    const dt_plan_task *task;
    bool *there; /* [parts] */
    int64_t lines;
    rate *rates; /* [world_size] */
};

dt_status dt_task_progress_open(dt_task_progress **out, dt_collector *collector, dt_error *err)
{
    const dt_plan_task *task = collector->setup.task;
    dt_plan_task now = *task;
    dt_task_progress *made;
    dt_arena *arena = &collector->arena;
    dt_status st = DT_OK;

    made = dt_arena_alloc_array(arena, 1, sizeof(*made));
    made->task = task;
    made->there = dt_arena_alloc_array(arena, (size_t)task->part_count, 1);
    made->rates =
        dt_arena_alloc_array(arena, (size_t)collector->setup.world_size, sizeof(*made->rates));
    /* Journals that are read again start where the attempt began, which its plan records. */
    if (collector->setup.rows.mode == DT_RUN_ROWS_FOLLOW)
        DT_TRY(dt_task_folder_look(&now, collector->setup.rows.folder, arena, err));
    for (int64_t i = 0; i < now.done_count; i++)
        for (int64_t part = now.done[2 * i]; part < now.done[2 * i + 1]; part++)
            made->there[part] = true;
    made->lines = dt_task_lines_done(&now);
    *out = made;
out:
    return st;
}

int64_t dt_task_progress_lines(const dt_task_progress *progress)
{
    return progress->lines;
}

/* Returns the sum of the rates of the running ranks, including the reporting one. */
static rate rate_of_all(const dt_collector *collector, int64_t teller)
{
    rate sum = {.seconds = 1};

    for (int64_t i = 0; i < collector->setup.world_size; i++) {
        const rate *rank_rate = &collector->task->rates[i];

        if (rank_rate->seconds <= 0 || (i != teller && collector->ranks[i].exited))
            continue;
        sum.lines += rank_rate->lines / rank_rate->seconds;
        sum.tokens += rank_rate->tokens / rank_rate->seconds;
    }
    return sum;
}

static void add_rate(rate *rank_rate, double lines, double tokens, double seconds)
{
    if (rank_rate->seconds > RATE_SECONDS)
        *rank_rate = (rate){rank_rate->lines / 2, rank_rate->tokens / 2, rank_rate->seconds / 2};
    rank_rate->lines += lines;
    rank_rate->tokens += tokens;
    rank_rate->seconds += seconds;
}

/* Adds a metric unless it is NaN. */
static dt_status add_metric(dt_collector *collector, const char *name, double value,
                            const dt_message *message, dt_error *err)
{
    if (isnan(value))
        return DT_OK;
    return dt_collector_metric(collector, message, collector->task->lines, name, value, err);
}

/* Records the metrics of a part that is now finished. */
static dt_status record_part(dt_collector *collector, const dt_message *message, int64_t part,
                             dt_error *err)
{
    dt_task_progress *progress = collector->task;
    double seconds = dt_message_number(message, "seconds");
    double tokens = (double)dt_message_int(message, "tokens", 0);
    double lines = (double)progress->task->parts[part].lines, loss = NAN;
    dt_status st = DT_OK;
    rate now;

    if (seconds > 0)
        add_rate(&progress->rates[message->rank], lines, tokens, seconds);
    now = rate_of_all(collector, message->rank);
    if (tokens > 0)
        loss = -dt_message_number(message, "log_likelihood") / tokens;
    DT_TRY(add_metric(collector, dt_metric_name(DT_METRIC_LOSS), loss, message, err));
    DT_TRY(
        add_metric(collector, dt_metric_name(DT_METRIC_LINES_PER_SECOND), now.lines, message, err));
    if (now.tokens > 0)
        DT_TRY(add_metric(collector, dt_metric_name(DT_METRIC_TOKENS_PER_SECOND), now.tokens,
                          message, err));
    collector->progressed = true;
    collector->progress.step = progress->lines;
    if (!isnan(loss))
        collector->progress.loss = loss;
    if (now.tokens > 0)
        collector->progress.tokens_per_second = now.tokens;
out:
    return st;
}

dt_status dt_collector_part(dt_collector *collector, const dt_message *message, dt_error *err)
{
    dt_task_progress *progress = collector->task;
    const char *text = dt_message_string(message, "text"), *hex = dt_message_string(message, "hex");
    const dt_row row = {.kind = DT_ROW_PART,
                        .piece = {.part = dt_message_int(message, "part", -1),
                                  .offset = dt_message_int(message, "offset", -1),
                                  .last = json_is_true(json_object_get(message->json, "last")),
                                  .hex = hex[0] != '\0',
                                  .text = hex[0] != '\0' ? hex : text}};
    int64_t part = row.piece.part;
    dt_status st = DT_OK;

    if (progress == NULL || row.piece.offset < 0 || part < 0 ||
        part >= progress->task->part_count) {
        dt_log_warn("rank %lld reported part %lld, which does not exist", (long long)message->rank,
                    (long long)part);
        return DT_OK;
    }
    DT_TRY(dt_run_rows_put(collector->rows, &row, err));
    if (!row.piece.last || progress->there[part])
        return DT_OK;
    progress->there[part] = true;
    progress->lines += progress->task->parts[part].lines;
    DT_TRY(record_part(collector, message, part, err));
out:
    return st;
}
