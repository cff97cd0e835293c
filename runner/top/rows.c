#include "runner/top/top.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner/queue/queue.h"
#include "runner/term/term.h"
#include "runner/view/runs/runs.h"

enum { ALL_MOST = 200, SPARK_LEAST = 10, COLUMNS_BESIDE_SPARK = 90 };

#define LATELY_MS (10 * 60 * 1000)

const char *const dt_top_sort_names[] = {"newest", "name",  "state", "step",
                                         "loss",   "speed", "left",  NULL};

/* --- the order */

static double share(const dt_run *run)
{
    return run->steps_total > 0 ? (double)run->step / (double)run->steps_total : 0;
}

/* Orders numbers; NaN comes last. */
static int by_number(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return a < b ? -1 : a > b;
}

static int by_newest(const void *a, const void *b)
{
    const dt_run *left = ((const dt_top_row *)a)->run, *right = ((const dt_top_row *)b)->run;

    if (left->created_ms != right->created_ms)
        return left->created_ms > right->created_ms ? -1 : 1;
    return strcmp(left->id, right->id);
}

#define COMPARE(name, expression)                           \
    static int name(const void *left, const void *right)    \
    {                                                       \
        const dt_top_row *a = left, *b = right;             \
        int order = (expression);                           \
        return order != 0 ? order : by_newest(left, right); \
    }
COMPARE(by_name, strcmp(a->run->name, b->run->name))
COMPARE(by_state, (int)a->run->state - (int)b->run->state)
COMPARE(by_step, by_number(-share(a->run), -share(b->run)))
COMPARE(by_loss, by_number(a->run->loss, b->run->loss))
COMPARE(by_speed, by_number(-a->timing.tokens_per_second, -b->timing.tokens_per_second))
COMPARE(by_left, by_number(a->timing.eta_seconds, b->timing.eta_seconds))

static void sort(dt_top_rows *rows, dt_top_sort by)
{
    static int (*const orders[DT_TOP_SORTS])(const void *, const void *) = {
        by_newest, by_name, by_state, by_step, by_loss, by_speed, by_left};

    if (rows->count > 1)
        qsort(rows->items, (size_t)rows->count, sizeof(rows->items[0]), orders[by]);
}

/* --- reading */

static dt_status read_row(dt_top_row *out, dt_store *store, const dt_run *run, const char *metric,
                          int64_t now_ms, dt_arena *arena, dt_error *err)
{
    dt_status st;

    *out = (dt_top_row){.run = run};
    st = dt_timing_read(&out->timing, store, run, now_ms, arena, err);
    if (st != DT_OK)
        return st;
    if (dt_run_state_is_terminal(run->state))
        out->timing.eta_seconds = NAN;
    return dt_curve_sketch(&out->curve, store, run->id, metric, DT_CURVE_SPARK_MOST, arena, err);
}

/* Says of each run in the queue why it waits. */
static void read_waits(dt_top_rows *io, dt_store *store, dt_arena *arena)
{
    dt_queue_facts facts;
    int64_t *order, count;
    bool any = false;

    for (int64_t i = 0; i < io->count; i++)
        any = any || io->items[i].run->state == DT_RUN_WAITING;
    if (!any || dt_queue_look(&facts, store, NULL, NULL, arena, NULL) != DT_OK)
        return;
    dt_queue_sorted(&order, &count, &facts, arena);
    for (int64_t at = 0; at < count; at++)
        for (int64_t i = 0; i < io->count; i++)
            if (strcmp(io->items[i].run->id, facts.runs[order[at]].id) == 0)
                io->items[i].wait = dt_arena_printf(arena, "#%lld: %s", (long long)at + 1,
                                                    dt_queue_reason(&facts, order[at], arena));
}

dt_status dt_top_rows_read(dt_top_rows *out, dt_store *store, const dt_top_wish *wish,
                           int64_t now_ms, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t count;
    dt_run *runs;

    *out = (dt_top_rows){.metric = wish->metric};
    DT_TRY(wish->all
               ? dt_store_run_list(store, &runs, &count, -1, ALL_MOST, arena, err)
               : dt_store_run_list_since(store, &runs, &count, now_ms - LATELY_MS, arena, err));
    out->items = dt_arena_alloc_array(arena, (size_t)count + 1, sizeof(out->items[0]));
    for (; out->count < count; out->count++) {
        const dt_run *run = &runs[out->count];

        DT_TRY(read_row(&out->items[out->count], store, run, wish->metric, now_ms, arena, err));
        if (dt_run_state_is_terminal(run->state))
            out->ended++;
        else if (out->items[out->count].timing.activity.missing == 0 &&
                 (run->state == DT_RUN_RUNNING || run->state == DT_RUN_STOPPING))
            out->running++;
        else
            out->waiting++;
    }
    read_waits(out, store, arena);
    sort(out, wish->sort);
out:
    return st;
}

/* --- drawing */

void dt_top_rows_count(dt_strbuf *out, const dt_term *term, const dt_top_rows *rows)
{
    dt_term_add(out, term, DT_STYLE_PLAIN, "%lld running", (long long)rows->running);
    if (rows->waiting > 0)
        dt_term_add(out, term, DT_STYLE_PLAIN, ", %lld waiting", (long long)rows->waiting);
    if (rows->ended > 0)
        dt_term_add(out, term, DT_STYLE_DIM, ", %lld ended", (long long)rows->ended);
}

static size_t spark_columns(const dt_term *term)
{
    int columns = term->columns - COLUMNS_BESIDE_SPARK;

    if (!term->live || columns > DT_CURVE_SPARK_MOST)
        return DT_CURVE_SPARK_MOST;
    return columns < SPARK_LEAST ? SPARK_LEAST : (size_t)columns;
}

static void add_spark(dt_table *table, const dt_term *term, const dt_curve *curve)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_curve_add_spark(&text, term, curve, spark_columns(term));
    dt_table_add(table, DT_STYLE_ACCENT, "%s", text.data);
    dt_strbuf_release(&text);
}

static void add_row(dt_table *table, const dt_term *term, const dt_top_row *row, bool selected,
                    int64_t now_ms)
{
    char a[DT_FORMAT_SIZE];
    const dt_run *run = row->run;
    bool ended = dt_run_state_is_terminal(run->state);

    dt_table_add(table, DT_STYLE_ACCENT, "%s", selected ? ">" : " ");
    dt_table_add(table, selected ? DT_STYLE_BOLD : DT_STYLE_PLAIN, "%s", run->name);
    dt_table_add(table, DT_STYLE_PLAIN, "%s", run->id);
    dt_table_add(table, dt_runs_activity_style(run, &row->timing.activity), "%s",
                 dt_runs_shown_state(run, &row->timing.activity));
    dt_table_add(table, DT_STYLE_PLAIN, "%s", dt_runs_progress(a, sizeof(a), "/", run));
    dt_table_add(table, DT_STYLE_PLAIN, "%s", dt_format_loss(a, sizeof(a), run->loss));
    dt_table_add(table, DT_STYLE_PLAIN, "%s %s",
                 dt_format_count(a, sizeof(a), row->timing.tokens_per_second),
                 dt_runs_timed_speed(run));
    if (ended)
        dt_table_add(table, DT_STYLE_DIM, "%s", dt_format_ago(a, sizeof(a), run->ended_ms, now_ms));
    else if (isnan(row->timing.eta_seconds))
        dt_table_add(table, DT_STYLE_DIM, "-");
    else
        dt_table_add(table, DT_STYLE_PLAIN, "%s",
                     dt_format_seconds(a, sizeof(a), ceil(row->timing.eta_seconds)));
    if (row->wait != NULL)
        dt_table_add(table, DT_STYLE_DIM, "%s", row->wait);
    else
        add_spark(table, term, &row->curve);
}

void dt_top_rows_add(dt_strbuf *out, const dt_term *term, const dt_top_rows *rows, int64_t first,
                     int64_t most, int64_t selected, int64_t now_ms, dt_arena *arena)
{
    const dt_table_column columns[] = {{"", false},      {"name", false}, {"run", false},
                                       {"state", false}, {"step", true},  {"loss", true},
                                       {"speed", true},  {"left", true},  {rows->metric, false}};
    static const int spare[] = {0, 0, 3, 0, 2, 1, 6, 4, 5};
    dt_table table;

    dt_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]), arena);
    table.spare = spare;
    table.clipped = true;
    for (int64_t i = first; i < rows->count && i < first + most; i++)
        add_row(&table, term, &rows->items[i], i == selected, now_ms);
    dt_table_write(out, &table, term, 0);
}
