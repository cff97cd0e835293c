#include "runner/view/runs/results.h"

#include <string.h>

typedef struct square {
    int64_t classes;
    json_t *rows;
} square;

static json_int_t at(const square *s, int64_t class, int64_t predicted)
{
    return json_integer_value(
        json_array_get(json_array_get(s->rows, (size_t) class), (size_t)predicted));
}

static json_int_t rows_of(const square *s, int64_t class)
{
    json_int_t sum = 0;

    for (int64_t i = 0; i < s->classes; i++)
        sum += at(s, class, i);
    return sum;
}

static dt_status read_square(square *out, const dt_store_confusion *of, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_json_parse(&out->rows, of->counts, strlen(of->counts), "confusion", err));
    out->classes = (int64_t)json_array_size(out->rows);
    for (int64_t i = 0; i < out->classes; i++)
        if ((int64_t)json_array_size(json_array_get(out->rows, (size_t)i)) != out->classes)
            DT_THROW(err, DT_ERR_CORRUPT, "the counts of step %lld are not a square table",
                     (long long)of->step);
out:
    return st;
}

static void add_share(dt_table *table, json_int_t part, json_int_t all)
{
    if (all == 0)
        dt_table_add(table, DT_STYLE_DIM, "-");
    else
        dt_table_add(table, DT_STYLE_PLAIN, "%.1f %%", 100.0 * (double)part / (double)all);
}

static void add_number(dt_table *table, json_int_t number, bool marked)
{
    dt_table_add(table,
                 number == 0 ? DT_STYLE_DIM
                 : marked    ? DT_STYLE_BOLD
                             : DT_STYLE_PLAIN,
                 "%lld", (long long)number);
}

/* The class, other than itself, that most rows of a class are taken for; -1: none. */
static int64_t most_wrong(const square *s, int64_t class)
{
    int64_t best = -1;

    for (int64_t i = 0; i < s->classes; i++)
        if (i != class && at(s, class, i) > (best < 0 ? 0 : at(s, class, best)))
            best = i;
    return best;
}

static void add_class(dt_table *table, const square *s, int64_t class, bool wide)
{
    json_int_t rows = rows_of(s, class);
    int64_t wrong = most_wrong(s, class);

    dt_table_add(table, DT_STYLE_PLAIN, "%lld", (long long)class);
    for (int64_t i = 0; wide && i < s->classes; i++)
        add_number(table, at(s, class, i), i == class);
    add_number(table, rows, false);
    add_share(table, at(s, class, class), rows);
    if (wide)
        return;
    if (wrong < 0)
        dt_table_add(table, DT_STYLE_DIM, "-");
    else
        dt_table_add(table, DT_STYLE_PLAIN, "%lld (%lld)", (long long)wrong,
                     (long long)at(s, class, wrong));
}

static void add_table(dt_strbuf *out, const dt_term *term, const square *s, dt_arena *arena)
{
    bool wide = s->classes <= DT_CONFUSION_COLUMNS;
    dt_table_column *columns =
        dt_arena_alloc_array(arena, (size_t)s->classes + 4, sizeof(columns[0]));
    size_t count = 0;
    dt_table table;

    columns[count++] = (dt_table_column){"class", false};
    for (int64_t i = 0; wide && i < s->classes; i++)
        columns[count++] = (dt_table_column){dt_arena_printf(arena, "%lld", (long long)i), true};
    columns[count++] = (dt_table_column){"rows", true};
    columns[count++] = (dt_table_column){"right", true};
    if (!wide)
        columns[count++] = (dt_table_column){"most often taken for", true};
    dt_table_init(&table, columns, count, arena);
    for (int64_t i = 0; i < s->classes; i++)
        add_class(&table, s, i, wide);
    dt_table_write(out, &table, term, 2);
}

dt_status dt_confusion_add(dt_strbuf *out, const dt_term *term, const dt_store_confusion *of,
                           dt_arena *arena, dt_error *err)
{
    json_int_t rows = 0, right = 0;
    square s = {0};
    dt_status st = DT_OK;

    DT_TRY(read_square(&s, of, err));
    for (int64_t i = 0; i < s.classes; i++) {
        rows += rows_of(&s, i);
        right += at(&s, i, i);
    }
    dt_term_add(out, term, DT_STYLE_BOLD, "step %lld", (long long)of->step);
    dt_term_add(out, term, DT_STYLE_PLAIN, "  %lld rows, %.1f %% right\n\n", (long long)rows,
                rows > 0 ? 100.0 * (double)right / (double)rows : 0.0);
    add_table(out, term, &s, arena);
out:
    json_decref(s.rows);
    return st;
}

json_t *dt_confusions_to_json(const dt_store_confusion *list, int64_t count)
{
    json_t *out = json_array(), *counts;

    for (int64_t i = 0; i < count; i++) {
        if (dt_json_parse(&counts, list[i].counts, strlen(list[i].counts), "confusion", NULL) !=
            DT_OK)
            counts = json_null();
        json_array_append_new(out, json_pack("{s:I, s:I, s:I, s:o}", "attempt",
                                             (json_int_t)list[i].attempt, "step",
                                             (json_int_t)list[i].step, "time_ms",
                                             (json_int_t)list[i].time_ms, "counts", counts));
    }
    return out;
}
