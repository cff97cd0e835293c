#include "runner/top/top.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner/queue/queue.h"
#include "runner/term/term.h"
#include "runner/view/runs/runs.h"

enum { ALL_MOST = 500, NAME_LEAST = 16, SPARK_LEAST = 10, COLUMNS_BESIDE_SPARK = 90 };

#define LATELY_MS (10 * 60 * 1000)

const char *const dt_top_sort_names[] = {"newest", "name",  "run",  "state",  "step",
                                         "loss",   "speed", "left", "metric", NULL};

/* --- the order */

static double share(const dt_run *run)
{
    return run->steps_total > 0 ? (double)run->step / (double)run->steps_total : 0;
}

/* What a column is sorted by: a text, or a number, NaN if it is not known. */
typedef struct key {
    const char *text; /* NULL: a number */
    double number;
} key;

static key key_of(const dt_top_row *row, dt_top_sort by)
{
    switch (by) {
    case DT_TOP_NAME:
        return (key){.text = row->run->name};
    case DT_TOP_RUN:
        return (key){.text = row->run->id};
    case DT_TOP_STATE:
        return (key){.number = row->run->state};
    case DT_TOP_STEP:
        return (key){.number = -share(row->run)};
    case DT_TOP_LOSS:
        return (key){.number = row->run->loss};
    case DT_TOP_SPEED:
        return (key){.number = -row->timing.tokens_per_second};
    case DT_TOP_LEFT:
        return (key){.number = row->timing.eta_seconds};
    case DT_TOP_METRIC:
        return (key){.number = row->curve.last.step >= 0 ? row->curve.last.value : NAN};
    default:
        return (key){.number = -(double)row->run->created_ms};
    }
}

/* Orders by the column; what is not known comes last, also in reverse. Equal rows: the newest first. */
static int compare(const void *left, const void *right, void *context)
{
    const dt_top_row *a = left, *b = right;
    const dt_top_wish *wish = context;
    key x = key_of(a, wish->sort), y = key_of(b, wish->sort);
    int order;

    if (x.text != NULL)
        order = strcmp(x.text, y.text);
    else if (isnan(x.number) || isnan(y.number))
        return isnan(x.number) != isnan(y.number) ? isnan(x.number) - isnan(y.number)
                                                  : strcmp(a->run->id, b->run->id);
    else
        order = x.number < y.number ? -1 : x.number > y.number;
    order = wish->reverse ? -order : order;
    if (order == 0 && a->run->created_ms != b->run->created_ms)
        order = a->run->created_ms > b->run->created_ms ? -1 : 1;
    return order != 0 ? order : strcmp(a->run->id, b->run->id);
}

/* --- the filter */

static bool has_word(const dt_top_row *row, const char *word)
{
    const dt_run *run = row->run;
    const char *const texts[] = {run->name,
                                 run->id,
                                 run->tags,
                                 run->group,
                                 dt_run_state_name(run->state),
                                 dt_runs_shown_state(run, &row->timing.activity)};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (strcasestr(texts[i], word) != NULL)
            return true;
    return false;
}

static bool passes(const dt_top_row *row, const char *filter)
{
    char word[128];

    while (*filter != '\0') {
        size_t length = strcspn(filter, " ");
        size_t kept = length < sizeof(word) ? length : sizeof(word) - 1;

        memcpy(word, filter, kept);
        word[kept] = '\0';
        if (kept > 0 && !has_word(row, word))
            return false;
        filter += length + (filter[length] == ' ');
    }
    return true;
}

void dt_top_rows_select(dt_top_rows *out, const dt_top_rows *all, const dt_top_wish *wish,
                        dt_arena *arena)
{
    dt_top_wish by = *wish;

    *out = *all;
    out->wish = by;
    out->count = 0;
    out->items = dt_arena_alloc_array(arena, (size_t)all->count + 1, sizeof(out->items[0]));
    for (int64_t i = 0; i < all->count; i++)
        if (passes(&all->items[i], by.filter))
            out->items[out->count++] = all->items[i];
    qsort_r(out->items, (size_t)out->count, sizeof(out->items[0]), compare, &by);
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

    *out = (dt_top_rows){.wish = *wish};
    DT_TRY(wish->all
               ? dt_store_run_list(store, &runs, &count, -1, ALL_MOST + 1, arena, err)
               : dt_store_run_list_since(store, &runs, &count, now_ms - LATELY_MS, arena, err));
    out->more = wish->all && count > ALL_MOST;
    count -= out->more;
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
    if (rows->more)
        dt_term_add(out, term, DT_STYLE_DIM, " (the newest %d)", ALL_MOST);
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

    dt_table_add(table, row->marked ? DT_STYLE_WARN : DT_STYLE_ACCENT, "%s%s", selected ? ">" : " ",
                 row->marked ? "*" : "");
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

enum { COLUMNS = 9, METRIC_AT = COLUMNS - 1 };

/* The columns; spare and least as in dt_table. */
static const struct {
    const char *title;
    bool right;
    int spare, least;
    dt_top_sort sort;
} layout[COLUMNS] = {
    {"", false, 0, 0, DT_TOP_NEWEST},
    {"name", false, 0, NAME_LEAST, DT_TOP_NAME},
    {"run", false, 3, 0, DT_TOP_RUN},
    {"state", false, 0, 0, DT_TOP_STATE},
    {"step", true, 2, 0, DT_TOP_STEP},
    {"loss", true, 1, 0, DT_TOP_LOSS},
    {"speed", true, 6, 0, DT_TOP_SPEED},
    {"left", true, 4, 0, DT_TOP_LEFT},
    {NULL, false, 5, SPARK_LEAST, DT_TOP_METRIC} /* the metric */
};

/* Marks the title of the column that the rows are sorted by: its values grow downwards, or fall. */
static const char *title_of(size_t column, const dt_term *term, const dt_top_wish *wish,
                            dt_arena *arena)
{
    const char *title = column == METRIC_AT ? wish->metric : layout[column].title;
    bool grows = (wish->sort == DT_TOP_STEP || wish->sort == DT_TOP_SPEED) == wish->reverse;

    if (column == 0 || layout[column].sort != wish->sort || !term->live)
        return title;
    if (!term->unicode)
        return dt_arena_printf(arena, "%s %c", title, grows ? '^' : 'v');
    return dt_arena_printf(arena, "%s %s", title, grows ? "\xe2\x86\x91" : "\xe2\x86\x93");
}

void dt_top_rows_add(dt_strbuf *out, const dt_term *term, const dt_top_rows *rows, int64_t first,
                     int64_t most, int64_t selected, int64_t now_ms, dt_arena *arena)
{
    dt_table_column columns[COLUMNS];
    int spare[COLUMNS], least[COLUMNS];
    dt_table table;

    for (size_t i = 0; i < COLUMNS; i++) {
        columns[i] = (dt_table_column){title_of(i, term, &rows->wish, arena), layout[i].right};
        spare[i] = layout[i].spare;
        least[i] = layout[i].least;
    }
    dt_table_init(&table, columns, COLUMNS, arena);
    table.spare = spare;
    table.least = least;
    table.clipped = true;
    for (int64_t i = first; i < rows->count && i < first + most; i++)
        add_row(&table, term, &rows->items[i], i == selected, now_ms);
    dt_table_write(out, &table, term, 0);
}
