#include "runner/view/compare/wide.h"

#include <string.h>

#include "base/csv.h"
#include "runner/term/format.h"

enum { COLUMNS_MOST = 1024 };

typedef struct columns {
    const char **names;
    size_t count;
} columns;

static size_t find_name(const columns *all, const char *name)
{
    size_t i = 0;

    while (i < all->count && strcmp(all->names[i], name) != 0)
        i++;
    return i;
}

static dt_status find_columns(columns *out, const dt_run_points *runs, size_t count,
                              dt_arena *arena, dt_error *err)
{
    out->names = dt_arena_alloc_array(arena, COLUMNS_MOST, sizeof(out->names[0]));
    out->count = 0;
    for (size_t r = 0; r < count; r++)
        for (int64_t i = 0; i < runs[r].count; i++) {
            const char *name = runs[r].points[i].name;

            if (i > 0 && strcmp(runs[r].points[i - 1].name, name) == 0)
                continue;
            if (find_name(out, name) < out->count)
                continue;
            if (out->count == COLUMNS_MOST)
                return DT_FAIL(err, DT_ERR_USAGE, "more than %d metrics", COLUMNS_MOST);
            out->names[out->count++] = name;
        }
    return DT_OK;
}

/* Merges the points of the metrics, which are each ordered by step. */
static void add_run(dt_strbuf *out, const dt_run_points *run, const columns *all,
                    const dt_metric **next, const dt_metric **end, bool named)
{
    char value[DT_FORMAT_SIZE];

    for (int64_t i = 0; i < run->count; i++) {
        size_t at = find_name(all, run->points[i].name);

        if (next[at] == NULL)
            next[at] = &run->points[i];
        end[at] = &run->points[i] + 1;
    }
    for (;;) {
        int64_t step = INT64_MAX;

        for (size_t c = 0; c < all->count; c++)
            if (next[c] != end[c] && next[c]->step < step)
                step = next[c]->step;
        if (step == INT64_MAX)
            break;
        if (named)
            dt_strbuf_add_fmt(out, "%s,", run->run);
        dt_strbuf_add_fmt(out, "%lld", (long long)step);
        for (size_t c = 0; c < all->count; c++) {
            dt_strbuf_add_char(out, ',');
            if (next[c] == end[c] || next[c]->step != step)
                continue;
            dt_strbuf_add_str(out, dt_format_exact(value, sizeof(value), next[c]->value));
            next[c]++;
        }
        dt_strbuf_add_char(out, '\n');
    }
}

dt_status dt_wide_add(dt_strbuf *out, const dt_run_points *runs, size_t count, dt_arena *arena,
                      dt_error *err)
{
    const dt_metric **next, **end;
    dt_status st = DT_OK;
    columns all;

    DT_TRY(find_columns(&all, runs, count, arena, err));
    next = dt_arena_alloc_array(arena, all.count + 1, sizeof(next[0]));
    end = dt_arena_alloc_array(arena, all.count + 1, sizeof(end[0]));
    dt_strbuf_add_fmt(out, "%sstep", count > 1 ? "run," : "");
    for (size_t c = 0; c < all.count; c++) {
        dt_strbuf_add_char(out, ',');
        dt_csv_add_text(out, all.names[c]);
    }
    dt_strbuf_add_char(out, '\n');
    for (size_t r = 0; r < count; r++) {
        for (size_t c = 0; c < all.count; c++)
            next[c] = end[c] = NULL;
        add_run(out, &runs[r], &all, next, end, count > 1);
    }
out:
    return st;
}
