#include "runner/view/runs/results.h"

#include <math.h>
#include <string.h>

#include "store/event.h"

enum { FIRST_COLUMNS = 3 };

/* --- in the history */

/* Appends the result of a task, as the history has it. */
static dt_status add_result(dt_evaluation_results *io, const dt_store_evaluation *of,
                            dt_arena *arena, dt_error *err)
{
    dt_evaluation_results one;
    json_t *tasks = NULL, *result = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_json_parse(&result, of->result, strlen(of->result), "evaluation", err));
    tasks = json_pack("{s:O}", of->task, result);
    DT_TRY(dt_evaluation_from_json(&one, tasks, arena, err));
    io->items[io->count++] = one.items[0];
out:
    json_decref(tasks);
    json_decref(result);
    return st;
}

dt_status dt_results_list(dt_task_results **out, int64_t *count, dt_store *store, const char *run,
                          dt_arena *arena, dt_error *err)
{
    dt_store_evaluation *rows;
    dt_task_results *to = NULL;
    dt_evaluation_result *items;
    int64_t rows_count;
    dt_status st = DT_OK;

    *count = 0;
    DT_TRY(dt_store_evaluation_list(store, &rows, &rows_count, run, arena, err));
    *out = dt_arena_alloc_array(arena, (size_t)rows_count + 1, sizeof(**out));
    items = dt_arena_alloc_array(arena, (size_t)rows_count + 1, sizeof(*items));
    for (int64_t i = 0; i < rows_count; i++) {
        if (to == NULL || to->step != rows[i].step) {
            to = &(*out)[(*count)++];
            *to = (dt_task_results){.step = rows[i].step, .results.items = items + i};
        }
        to->attempt = rows[i].attempt;
        to->time_ms = rows[i].time_ms;
        DT_TRY(add_result(&to->results, &rows[i], arena, err));
    }
out:
    return st;
}

/* Puts newer results over older ones. */
static void merge(dt_evaluation_results *io, const dt_evaluation_results *newer, dt_arena *arena)
{
    dt_evaluation_result *items =
        dt_arena_alloc_array(arena, io->count + newer->count, sizeof(*items));
    size_t count = io->count;

    if (count > 0)
        memcpy(items, io->items, count * sizeof(*items));
    for (size_t i = 0; i < newer->count; i++) {
        size_t at = 0;

        while (at < count && strcmp(items[at].task, newer->items[i].task) != 0)
            at++;
        items[at] = newer->items[i];
        count += at == count;
    }
    *io = (dt_evaluation_results){items, count};
}

dt_status dt_results_newest(dt_task_results *out, dt_store *store, const char *run, dt_arena *arena,
                            dt_error *err)
{
    dt_task_results *list;
    dt_status st = DT_OK;
    int64_t count;

    *out = (dt_task_results){0};
    DT_TRY(dt_results_list(&list, &count, store, run, arena, err));
    for (int64_t i = 0; i < count; i++) {
        merge(&out->results, &list[i].results, arena);
        out->step = list[i].step;
    }
out:
    return st;
}

json_t *dt_results_to_json(const dt_task_results *list, int64_t count)
{
    json_t *out = json_array();

    for (int64_t i = 0; i < count; i++)
        json_array_append_new(
            out, json_pack("{s:I, s:I, s:I, s:o}", "attempt", (json_int_t)list[i].attempt, "step",
                           (json_int_t)list[i].step, "time_ms", (json_int_t)list[i].time_ms,
                           "tasks", dt_evaluation_to_json(&list[i].results)));
    return out;
}

/* --- as a table */

static const dt_evaluation_result *find_task(const dt_evaluation_results *results, const char *task)
{
    for (size_t i = 0; i < results->count; i++)
        if (strcmp(results->items[i].task, task) == 0)
            return &results->items[i];
    return NULL;
}

static void add_cell(dt_table *table, const dt_term *term, const dt_evaluation_metric *metric)
{
    if (metric == NULL)
        dt_table_add(table, DT_STYLE_DIM, "-");
    else if (isnan(metric->error))
        dt_table_add(table, DT_STYLE_PLAIN, "%.4f", metric->value);
    else
        dt_table_add(table, DT_STYLE_PLAIN, "%.4f %s %.4f", metric->value,
                     term->unicode ? "\xc2\xb1" : "+-", metric->error);
}

static void add_task(dt_table *table, const dt_term *term, const dt_results_column *columns,
                     size_t count, const dt_evaluation_result *task)
{
    for (size_t m = 0; m < task->count; m++) {
        dt_table_add(table, DT_STYLE_PLAIN, "%s", m == 0 ? task->task : "");
        dt_table_add(table, DT_STYLE_PLAIN, "%s", task->metrics[m].name);
        if (m == 0)
            dt_table_add(table, DT_STYLE_DIM, "%lld", (long long)task->rows);
        else
            dt_table_add(table, DT_STYLE_DIM, "%s", "");
        for (size_t c = 0; c < count; c++)
            add_cell(table, term,
                     dt_evaluation_find(columns[c].results, task->task, task->metrics[m].name));
    }
}

static bool is_shown(const dt_results_column *columns, size_t before, const char *task)
{
    for (size_t c = 0; c < before; c++)
        if (find_task(columns[c].results, task) != NULL)
            return true;
    return false;
}

void dt_results_add(dt_strbuf *out, const dt_term *term, const dt_results_column *columns,
                    size_t count, int indent, dt_arena *arena)
{
    dt_table_column *titles = dt_arena_alloc_array(arena, count + FIRST_COLUMNS, sizeof(titles[0]));
    bool any = false;
    dt_table table;

    titles[0] = (dt_table_column){"task", false};
    titles[1] = (dt_table_column){"metric", false};
    titles[2] = (dt_table_column){"rows", true};
    for (size_t c = 0; c < count; c++) {
        titles[c + FIRST_COLUMNS] = (dt_table_column){columns[c].title, true};
        any = any || columns[c].results->count > 0;
    }
    if (!any)
        return;
    dt_table_init(&table, titles, count + FIRST_COLUMNS, arena);
    for (size_t c = 0; c < count; c++)
        for (size_t i = 0; i < columns[c].results->count; i++)
            if (!is_shown(columns, c, columns[c].results->items[i].task))
                add_task(&table, term, columns, count, &columns[c].results->items[i]);
    dt_table_write(out, &table, term, indent);
}
