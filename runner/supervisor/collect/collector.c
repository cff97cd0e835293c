#include "runner/supervisor/collect/collector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner/supervisor/collect/collector_int.h"

#include "base/alloc.h"

/* --- open and close */

static void lay_out(dt_collector *collector)
{
    size_t ranks = (size_t)collector->setup.world_size, nodes = (size_t)collector->setup.node_count;
    dt_straggler_rank *waits =
        dt_arena_alloc_array(&collector->arena, ranks, sizeof(dt_straggler_rank));

    collector->ranks = dt_arena_alloc_array(&collector->arena, ranks, sizeof(collector->ranks[0]));
    collector->nodes = dt_arena_alloc_array(&collector->arena, nodes, sizeof(collector->nodes[0]));
    for (size_t i = 0; i < ranks; i++)
        collector->ranks[i].log.fd = -1;
    dt_straggler_init(&collector->straggler, waits, collector->setup.world_size);
}

dt_status dt_collector_open(dt_collector **out, const dt_collector_setup *setup,
                            const dt_collector_calls *calls, void *context, dt_error *err)
{
    dt_collector *collector = dt_calloc(1, sizeof(*collector));

    *out = collector;
    collector->setup = *setup;
    collector->calls = *calls;
    collector->context = context;
    collector->acks_last = &collector->acks;
    collector->progress = (dt_progress){0, NAN, NAN, NAN};
    collector->rows = dt_run_rows_open(&setup->rows);
    dt_arena_init(&collector->arena, 0);
    if (setup->task != NULL && dt_task_progress_open(&collector->task, collector, err) != DT_OK)
        return err != NULL ? err->code : DT_ERR_IO;
    lay_out(collector);
    return DT_OK;
}

/* --- rows */

const dt_collected_rank *dt_collector_rank(const dt_collector *collector, int64_t rank)
{
    return &collector->ranks[rank];
}

const dt_collected_node *dt_collector_node(const dt_collector *collector, int64_t node)
{
    return &collector->nodes[node];
}

void dt_collector_set_rank(dt_collector *collector, const dt_rank *row)
{
    collector->ranks[row->rank].row = *row;
}

void dt_collector_set_node(dt_collector *collector, int64_t node, const dt_node *row)
{
    collector->nodes[node].row = *row;
}

void dt_collector_set_log(dt_collector *collector, int64_t rank, int64_t bytes)
{
    dt_rank_log *log = &collector->ranks[rank].log;

    log->bytes = log->stored_bytes = bytes;
}

dt_status dt_collector_open_logs(dt_collector *collector, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < collector->setup.world_size && st == DT_OK; i++)
        st = dt_rank_log_open(&collector->ranks[i].log, collector->setup.rows.folder, i, err);
    return st;
}

void dt_collector_show_node(dt_collector *collector, int64_t node, const char *state)
{
    collector->nodes[node].row.state = state;
    collector->nodes[node].changed = true;
}

void dt_collector_name_node(dt_collector *collector, int64_t node, const char *name)
{
    collector->nodes[node].row.name = name;
}

void dt_collector_boot_node(dt_collector *collector, int64_t node, const char *boot_id)
{
    collector->nodes[node].row.boot_id = boot_id;
}

void dt_collector_release_node(dt_collector *collector, int64_t node)
{
    collector->nodes[node].released = true;
}

dt_status dt_collector_put(dt_collector *collector, const dt_row *row, dt_error *err)
{
    return dt_run_rows_put(collector->rows, row, err);
}

/* --- progress */

int64_t dt_collector_submit(dt_collector *collector)
{
    return dt_store_writer_submit(dt_run_rows_writer(collector->rows));
}

bool dt_collector_is_durable(const dt_collector *collector, int64_t batch)
{
    return dt_store_writer_is_durable(dt_run_rows_writer(collector->rows), batch);
}

void dt_collector_request_sync(dt_collector *collector)
{
    dt_store_writer *writer = dt_run_rows_writer(collector->rows);

    if (writer != NULL)
        dt_store_writer_request_sync(writer);
}

bool dt_collector_is_stalled(const dt_collector *collector, dt_strbuf *why)
{
    return dt_store_writer_is_stalled(dt_run_rows_writer(collector->rows), why);
}

bool dt_collector_is_idle(const dt_collector *collector)
{
    return dt_store_writer_is_idle(dt_run_rows_writer(collector->rows));
}

bool dt_collector_is_paused(const dt_collector *collector)
{
    return collector->paused;
}

bool dt_collector_has_gaps(const dt_collector *collector)
{
    return collector->gaps;
}

void dt_collector_remember_gap(dt_collector *collector)
{
    collector->gaps = true;
}

int64_t dt_collector_lines_done(const dt_collector *collector)
{
    return collector->task != NULL ? dt_task_progress_lines(collector->task) : 0;
}

void dt_collector_set_step(dt_collector *collector, int64_t step)
{
    collector->progress.step = step;
}

const dt_progress *dt_collector_progress(const dt_collector *collector)
{
    return &collector->progress;
}

int64_t dt_collector_steps_total(const dt_collector *collector)
{
    return collector->steps_total;
}
