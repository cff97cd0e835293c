/* comparison: compares the recipes and the metrics of runs, and prints the comparison as text or JSON. */
#include "runner/view/compare/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/metric_kinds.h"
#include "runner/cli/report.h"
#include "runner/term/term.h"
#include "runner/view/runs/runs.h"
#include "store/activity.h"

enum { METRICS_MOST = 256 };

static dt_status add_metric(dt_comparison *io, const char *name, dt_error *err)
{
    for (size_t i = 0; i < io->metrics_count; i++)
        if (strcmp(io->metrics[i], name) == 0)
            return DT_OK;
    if (io->metrics_count == METRICS_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "more than %d metrics", METRICS_MOST);
    io->metrics[io->metrics_count++] = name;
    return DT_OK;
}

/* Collects the metrics that are asked for, or else all metrics of all runs. */
static dt_status find_metrics(dt_comparison *io, const char *const *asked, size_t asked_count,
                              dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    const char **names;
    int64_t count;

    io->metrics = dt_arena_alloc_array(arena, METRICS_MOST, sizeof(io->metrics[0]));
    for (size_t i = 0; i < asked_count; i++)
        DT_TRY(add_metric(io, asked[i], err));
    for (size_t r = 0; r < io->count && asked_count == 0; r++) {
        DT_TRY(dt_store_metric_names(io->store, &names, &count, io->runs[r].run->id, arena, err));
        for (int64_t i = 0; i < count; i++)
            DT_TRY(add_metric(io, names[i], err));
    }
out:
    return st;
}

/* Finds the first and last step of a metric over all runs. DT_ERR_USAGE if no run has it. */
static dt_status find_extent(dt_comparison *io, size_t metric, dt_arena *arena, dt_error *err)
{
    int64_t first, last;
    dt_status st = DT_OK;
    bool there, any = false;

    for (size_t r = 0; r < io->count; r++) {
        DT_TRY(dt_curve_extent(&there, &first, &last, io->store, io->runs[r].run->id,
                               io->metrics[metric], arena, err));
        if (!there)
            continue;
        io->first_step[metric] =
            any && io->first_step[metric] < first ? io->first_step[metric] : first;
        io->last_step[metric] = any && io->last_step[metric] > last ? io->last_step[metric] : last;
        any = true;
    }
    if (!any)
        DT_THROW(err, DT_ERR_USAGE, "none of these runs has a metric '%s'", io->metrics[metric]);
out:
    return st;
}

static dt_status find_results(dt_comparison *io, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    io->results = dt_arena_alloc_array(arena, io->count, sizeof(io->results[0]));
    for (size_t r = 0; r < io->count; r++)
        DT_TRY(dt_results_newest(&io->results[r], io->store, io->runs[r].run->id, arena, err));
out:
    return st;
}

dt_status dt_comparison_make(dt_comparison *io, const char *const *metrics, size_t metrics_count,
                             size_t buckets, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    dt_recipe_diff(&io->keys, &io->keys_count, io->runs, io->count, arena);
    DT_TRY(find_results(io, arena, err));
    DT_TRY(find_metrics(io, metrics, metrics_count, arena, err));
    io->curves =
        dt_arena_alloc_array(arena, io->metrics_count * io->count + 1, sizeof(io->curves[0]));
    io->first_step = dt_arena_alloc_array(arena, io->metrics_count + 1, sizeof(io->first_step[0]));
    io->last_step = dt_arena_alloc_array(arena, io->metrics_count + 1, sizeof(io->last_step[0]));
    for (size_t m = 0; m < io->metrics_count; m++) {
        DT_TRY(find_extent(io, m, arena, err));
        for (size_t r = 0; r < io->count; r++)
            DT_TRY(dt_curve_read(&io->curves[m * io->count + r], io->store, io->runs[r].run->id,
                                 io->metrics[m], io->first_step[m], io->last_step[m], buckets,
                                 arena, err));
    }
out:
    return st;
}

/* --- for programs */

static json_t *point_to_json(const dt_curve_point *point, const dt_curve_point *first)
{
    if (point->step < 0)
        return json_null();
    return json_pack("{s:o, s:I, s:o}", "value", dt_json_number(point->value), "step",
                     (json_int_t)point->step, "difference",
                     dt_json_number(point->value - first->value));
}

static json_t *metrics_to_json(const dt_comparison *all, size_t run)
{
    json_t *object = json_object();

    for (size_t m = 0; m < all->metrics_count; m++) {
        const dt_curve *first = &all->curves[m * all->count], *curve = first + run;
        const char *name = all->metrics[m];

        if (curve->count > 0)
            json_object_set_new(
                object, name,
                json_pack("{s:I, s:o, s:o}", "points", (json_int_t)curve->count, "best",
                          point_to_json(dt_curve_best(curve, name), dt_curve_best(first, name)),
                          "last", point_to_json(&curve->last, &first->last)));
    }
    return object;
}

json_t *dt_comparison_to_json(dt_comparison *all, dt_arena *arena)
{
    json_t *object = dt_report_object(), *runs = json_array(), *keys = json_array();

    for (size_t k = 0; k < all->keys_count; k++)
        json_array_append_new(keys, json_string(all->keys[k]));
    for (size_t r = 0; r < all->count; r++) {
        json_t *run = dt_runs_to_json(all->runs[r].run), *recipe = json_object();

        json_object_del(run, "version");
        for (size_t k = 0; k < all->keys_count; k++) {
            dt_run_value value = {.text = ""};

            (void)dt_run_value_get(&value, all->store, &all->runs[r], all->keys[k], arena, NULL);
            json_object_set_new(recipe, all->keys[k],
                                !value.there      ? json_null()
                                : value.is_number ? dt_json_number(value.number)
                                                  : dt_json_text(value.text));
        }
        json_object_set_new(run, "recipe", recipe);
        json_object_set_new(run, "metrics", metrics_to_json(all, r));
        json_object_set_new(run, "tasks", dt_evaluation_to_json(&all->results[r].results));
        json_array_append_new(runs, run);
    }
    json_object_set_new(object, "differ", keys);
    json_object_set_new(object, "runs", runs);
    return object;
}

/* As text: runs, recipes, metrics and curves. */

enum { KEYS_SHOWN = 40, CHART_ROWS = 12, CHART_COLUMNS = 100 };

static void add_mark(dt_table *table, const dt_term *term, size_t run, size_t count)
{
    const char *mark;
    dt_style style = dt_plot_style(&mark, term, run, count);

    dt_table_add(table, style, "%s", mark);
}

/* Explains a missing table of differences, and names the runs without a recipe. */
static void add_recipe_words(dt_strbuf *out, const dt_term *term, dt_comparison *all)
{
    static const char *const words[] = {
        [DT_RECIPES_MISSING] = "fewer than two runs have a recipe\n",
        [DT_RECIPES_APART] = "the recipes have no fields in common\n",
        [DT_RECIPES_PARTLY] = "the recipes are the same in the fields that they share\n",
        [DT_RECIPES_WHOLE] = "the recipes are the same\n"};
    size_t without = 0;

    if (all->keys_count == 0)
        dt_term_add(out, term, DT_STYLE_DIM, "%s",
                    words[dt_recipe_compare_fields(all->runs, all->count)]);
    for (size_t r = 0; r < all->count; r++)
        if (!dt_run_entry_has_recipe(&all->runs[r]))
            dt_term_add(out, term, DT_STYLE_DIM, "%s%s", without++ == 0 ? "no recipe: " : ", ",
                        all->runs[r].run->id);
    dt_strbuf_add_str(out, without > 0 ? " (imported, or not readable)\n" : "");
}

/* Adds a table of the differing recipe keys: one line a key, one column a run. */
static void add_recipes(dt_strbuf *out, const dt_term *term, dt_comparison *all, dt_arena *arena)
{
    dt_table_column *columns = dt_arena_alloc_array(arena, all->count + 1, sizeof(columns[0]));
    size_t keys = all->keys_count < KEYS_SHOWN ? all->keys_count : KEYS_SHOWN;
    dt_table table;

    add_recipe_words(out, term, all);
    if (keys == 0)
        return;
    columns[0] = (dt_table_column){"recipe", false};
    for (size_t r = 0; r < all->count; r++)
        columns[r + 1] = (dt_table_column){all->runs[r].run->id, true};
    dt_table_init(&table, columns, all->count + 1, arena);
    for (size_t k = 0; k < keys; k++) {
        dt_table_add(&table, DT_STYLE_BOLD, "%s", all->keys[k]);
        for (size_t r = 0; r < all->count; r++) {
            dt_run_value value = {.text = ""};

            (void)dt_run_value_get(&value, all->store, &all->runs[r], all->keys[k], arena, NULL);
            dt_table_add(&table, DT_STYLE_PLAIN, "%s", value.there ? value.text : "-");
        }
    }
    dt_table_write(out, &table, term, 2);
    if (keys < all->keys_count)
        dt_term_add(out, term, DT_STYLE_DIM, "  and %zu more keys (--json has all)\n",
                    all->keys_count - keys);
}

static void add_runs(dt_strbuf *out, const dt_term *term, const dt_comparison *all, dt_arena *arena)
{
    static const dt_table_column columns[] = {{"", false},      {"run", false}, {"name", false},
                                              {"state", false}, {"step", true}, {"tags", false}};
    static const int spare[] = {0, 0, 0, 1, 2, 3};
    char a[DT_FORMAT_SIZE];
    dt_table table;

    dt_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]), arena);
    table.spare = spare;
    for (size_t r = 0; r < all->count; r++) {
        const dt_run *run = all->runs[r].run;

        add_mark(&table, term, r, all->count);
        dt_table_add(&table, DT_STYLE_BOLD, "%s", run->id);
        dt_table_add(&table, DT_STYLE_PLAIN, "%s", run->name);
        dt_table_add(&table, dt_runs_run_style(run), "%s", dt_run_state_word(run));
        dt_table_add(&table, DT_STYLE_PLAIN, "%s", dt_runs_progress(a, sizeof(a), "/", run));
        dt_table_add(&table, DT_STYLE_PLAIN, "%s", run->tags);
    }
    dt_table_write(out, &table, term, 2);
}

static const char *show_value(char text[DT_FORMAT_SIZE], const dt_curve_point *point)
{
    if (isfinite(point->value))
        return dt_format_value(text, DT_FORMAT_SIZE, point->value);
    snprintf(text, DT_FORMAT_SIZE, "%s", point->step < 0 ? "-" : "nan");
    return text;
}

/* Three digits say enough of a difference. */
static const char *show_difference(char text[DT_FORMAT_SIZE], double difference)
{
    if (fabs(difference) < 10000)
        snprintf(text, DT_FORMAT_SIZE, "%.3g", difference);
    else
        dt_format_value(text, DT_FORMAT_SIZE, difference);
    return text;
}

/* Adds the difference to the first run, absolute and in percent. */
static void add_difference(dt_table *table, double value, double first, bool is_first,
                           bool more_is_better)
{
    double difference = value - first;
    char text[DT_FORMAT_SIZE];
    const char *sign = difference > 0 ? "+" : "";
    bool better = more_is_better ? difference > 0 : difference < 0;

    if (is_first || !isfinite(difference))
        dt_table_add(table, DT_STYLE_PLAIN, "%s", "");
    else if (first != 0)
        dt_table_add(table,
                     difference == 0 ? DT_STYLE_PLAIN
                     : better        ? DT_STYLE_GOOD
                                     : DT_STYLE_WARN,
                     "%s%s (%+.1f %%)", sign, show_difference(text, difference),
                     100 * difference / fabs(first));
    else
        dt_table_add(table, DT_STYLE_PLAIN, "%s%s", sign, show_difference(text, difference));
}

static void add_metric_text(dt_strbuf *out, const dt_term *term, const dt_comparison *all, size_t m,
                            dt_arena *arena)
{
    const char *name = all->metrics[m];
    const char *title =
        strcmp(name, dt_metric_name(DT_METRIC_VALID_LOSS)) == 0 ? "validation loss" : name;
    const dt_curve *first = &all->curves[m * all->count];
    dt_table_column columns[] = {{"", false},       {title, false},     {"best", true},
                                 {"at step", true}, {"vs first", true}, {"last", true},
                                 {"vs first", true}};
    static const int spare[] = {0, 0, 0, 2, 1, 0, 3};
    bool more = dt_metric_more_is_better(name);
    char text[DT_FORMAT_SIZE], step[DT_FORMAT_SIZE];
    dt_table table;

    dt_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]), arena);
    table.spare = spare;
    for (size_t r = 0; r < all->count; r++) {
        const dt_curve *curve = first + r;
        const dt_curve_point *best = dt_curve_best(curve, name);

        add_mark(&table, term, r, all->count);
        dt_table_add(&table, DT_STYLE_PLAIN, "%s", all->runs[r].run->id);
        dt_table_add(&table, DT_STYLE_BOLD, "%s", show_value(text, best));
        dt_table_add(&table, DT_STYLE_PLAIN, "%s",
                     best->step >= 0 ? dt_format_whole(step, sizeof(step), best->step) : "-");
        add_difference(&table, best->value, dt_curve_best(first, name)->value, r == 0, more);
        dt_table_add(&table, DT_STYLE_PLAIN, "%s", show_value(text, &curve->last));
        add_difference(&table, curve->last.value, first->last.value, r == 0, more);
    }
    dt_strbuf_add_char(out, '\n');
    dt_table_write(out, &table, term, 2);
}

static void add_chart(dt_strbuf *out, const dt_term *term, const dt_comparison *all, size_t m,
                      dt_arena *arena)
{
    const double **curves = dt_arena_alloc_array(arena, all->count, sizeof(curves[0]));
    int columns = term->seen && term->columns < CHART_COLUMNS ? term->columns : CHART_COLUMNS;

    for (size_t r = 0; r < all->count; r++)
        curves[r] = all->curves[m * all->count + r].means;
    dt_strbuf_add_char(out, '\n');
    dt_plot_add(out, term,
                &(dt_plot){.curves = curves,
                           .curves_count = all->count,
                           .buckets = all->curves[m * all->count].buckets,
                           .first_step = all->first_step[m],
                           .last_step = all->last_step[m],
                           .columns = columns - 1,
                           .rows = CHART_ROWS},
                arena);
}

/* Adds the newest results of evaluation tasks, one column a run. */
static void add_results(dt_strbuf *out, const dt_term *term, const dt_comparison *all,
                        dt_arena *arena)
{
    dt_results_column *columns = dt_arena_alloc_array(arena, all->count, sizeof(columns[0]));
    size_t before = out->length;

    for (size_t r = 0; r < all->count; r++)
        columns[r] = (dt_results_column){dt_arena_printf(arena, "%s@%lld", all->runs[r].run->id,
                                                         (long long)all->results[r].step),
                                         &all->results[r].results};
    dt_strbuf_add_char(out, '\n');
    dt_results_add(out, term, columns, all->count, 2, arena);
    if (out->length == before + 1)
        out->data[--out->length] = '\0';
}

void dt_comparison_add(dt_strbuf *out, const dt_term *term, dt_comparison *all, dt_arena *arena)
{
    add_runs(out, term, all, arena);
    dt_strbuf_add_char(out, '\n');
    add_recipes(out, term, all, arena);
    add_results(out, term, all, arena);
    for (size_t m = 0; m < all->metrics_count; m++) {
        add_metric_text(out, term, all, m, arena);
        add_chart(out, term, all, m, arena);
    }
}
