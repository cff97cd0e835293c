/* parquet: writes one flat table of all points, in row groups of at most ROWS_MOST rows.
 *
 *   run, run_name, name   text, with a complete dictionary in each row group
 *   attempt               int32
 *   step                  int64
 *   value                 double; NaN and infinities are kept
 *   time                  timestamp, milliseconds, UTC
 *
 * Every column is required, so that pages contain only values: "PAR1", for each row group and column
 * [page header][dictionary] and [page header][values], then the footer, its length, and "PAR1".
 * Not compressed; other tools can do that (for example duckdb's COPY).
 */
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "base/memory.h"
#include "runner/cli/report.h"
#include "runner/export/export.h"

#define ROWS_MOST 131072

enum { PLAIN = 0, RLE = 3, RLE_DICTIONARY = 8 };       /* encodings */
enum { INT32 = 1, INT64 = 2, DOUBLE = 5, BYTES = 6 };  /* types */
enum { NO_KIND = -1, UTF8 = 0, TIMESTAMP_MILLIS = 9 }; /* logical types */
enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2 };           /* pages */

typedef enum column { RUN, RUN_NAME, ATTEMPT, STEP, NAME, VALUE, TIME, COLUMN_COUNT } column;

static const struct {
    const char *name;
    int type, kind;
} columns[COLUMN_COUNT] = {
    [RUN] = {"run", BYTES, UTF8},
    [RUN_NAME] = {"run_name", BYTES, UTF8},
    [ATTEMPT] = {"attempt", INT32, NO_KIND},
    [STEP] = {"step", INT64, NO_KIND},
    [NAME] = {"name", BYTES, UTF8},
    [VALUE] = {"value", DOUBLE, NO_KIND},
    [TIME] = {"time", INT64, TIMESTAMP_MILLIS},
};

typedef struct row {
    dt_metric point;
    int32_t run, name; /* in the dictionaries */
} row;

typedef struct chunk {                       /* one column of a row group */
    int64_t dictionary_at, values_at, bytes; /* dictionary_at 0: no dictionary */
} chunk;

typedef struct group {
    int64_t rows;
    chunk chunks[COLUMN_COUNT];
} group;

typedef struct texts {
    const char **items;
    size_t count;
    int64_t capacity;
} texts;

typedef struct parquet {
    dt_output output;
    const dt_export_job *job;
    dt_strbuf page, text;
    texts names;
    row *rows;
    size_t rows_count;
    group *groups;
    size_t groups_count;
    int64_t groups_capacity;
    int32_t run;
} parquet;

/* --- the pages of a row group */

static void add_page(parquet *p, int kind, int64_t values, int encoding)
{
    dt_thrift header;

    dt_thrift_init(&header, &p->output.text);
    dt_thrift_add_i32(&header, 1, kind);
    dt_thrift_add_i32(&header, 2, (int32_t)p->page.length); /* uncompressed and compressed size */
    dt_thrift_add_i32(&header, 3, (int32_t)p->page.length);
    dt_thrift_begin(&header, kind == DATA_PAGE ? 5 : 7);
    dt_thrift_add_i32(&header, 1, (int32_t)values);
    dt_thrift_add_i32(&header, 2, encoding);
    if (kind == DATA_PAGE) { /* encodings of levels, which there are none of */
        dt_thrift_add_i32(&header, 3, RLE);
        dt_thrift_add_i32(&header, 4, RLE);
    }
    dt_thrift_end(&header);
    dt_thrift_end(&header);
    dt_strbuf_add(&p->output.text, p->page.data, p->page.length);
    dt_strbuf_reset(&p->page);
}

static void add_word(parquet *p, const char *word)
{
    uint32_t length;

    dt_strbuf_reset(&p->text);
    dt_utf8_add_valid(&p->text, word, strlen(word));
    length = (uint32_t)p->text.length;
    dt_strbuf_add(&p->page, &length, sizeof(length));
    dt_strbuf_add(&p->page, p->text.data, p->text.length);
}

static size_t add_dictionary(parquet *p, column which)
{
    size_t count = which == NAME ? p->names.count : p->job->count;

    for (size_t i = 0; i < count; i++)
        add_word(p, which == NAME       ? p->names.items[i]
                    : which == RUN_NAME ? p->job->runs[i].name
                                        : p->job->runs[i].id);
    add_page(p, DICTIONARY_PAGE, (int64_t)count, PLAIN);
    return count;
}

static int32_t word_of(const row *r, column which)
{
    return which == NAME ? r->name : r->run;
}

/* Adds run-length encoded dictionary indices: consecutive rows mostly have the same word. */
static void add_words(parquet *p, column which, size_t words_count)
{
    int bits = 1;

    while (words_count > (size_t)1 << bits)
        bits++;
    dt_strbuf_add_char(&p->page, (char)bits);
    for (size_t i = 0, next; i < p->rows_count; i = next) {
        int32_t word = word_of(&p->rows[i], which);

        for (next = i + 1; next < p->rows_count && word_of(&p->rows[next], which) == word;)
            next++;
        dt_varint_add(&p->page, (uint64_t)(next - i) << 1);
        dt_strbuf_add(&p->page, &word, (size_t)(bits + 7) / 8);
    }
}

static void add_value(parquet *p, column which, const dt_metric *point)
{
    int32_t attempt = (int32_t)point->attempt;

    if (which == ATTEMPT)
        dt_strbuf_add(&p->page, &attempt, sizeof(attempt));
    else if (which == STEP)
        dt_strbuf_add(&p->page, &point->step, sizeof(point->step));
    else if (which == VALUE)
        dt_strbuf_add(&p->page, &point->value, sizeof(point->value));
    else
        dt_strbuf_add(&p->page, &point->time_ms, sizeof(point->time_ms));
}

static void add_chunk(parquet *p, chunk *out, column which)
{
    size_t begun = dt_output_place(&p->output), words_count;

    *out = (chunk){.values_at = (int64_t)begun};
    if (columns[which].type == BYTES) {
        out->dictionary_at = (int64_t)begun;
        words_count = add_dictionary(p, which);
        out->values_at = (int64_t)dt_output_place(&p->output);
        add_words(p, which, words_count);
        add_page(p, DATA_PAGE, (int64_t)p->rows_count, RLE_DICTIONARY);
    } else {
        for (size_t i = 0; i < p->rows_count; i++)
            add_value(p, which, &p->rows[i].point);
        add_page(p, DATA_PAGE, (int64_t)p->rows_count, PLAIN);
    }
    out->bytes = (int64_t)(dt_output_place(&p->output) - begun);
}

static dt_status end_group(parquet *p, dt_error *err)
{
    dt_status st = DT_OK;

    if (p->rows_count == 0)
        return DT_OK;
    p->groups =
        dt_array_room(p->groups, p->groups_count + 1, &p->groups_capacity, sizeof(*p->groups));
    p->groups[p->groups_count].rows = (int64_t)p->rows_count;
    for (column which = 0; which < COLUMN_COUNT; which++) {
        add_chunk(p, &p->groups[p->groups_count].chunks[which], which);
        DT_TRY(dt_output_pass(&p->output, err));
    }
    p->groups_count++;
    p->rows_count = 0;
out:
    return st;
}

/* --- rows */

/* Finds the index of a name, trying the previous row first: points of a curve are consecutive. */
static void find_name(parquet *p, int32_t *out, const char *name)
{
    texts *all = &p->names;
    size_t at = p->rows_count > 0 ? (size_t)p->rows[p->rows_count - 1].name : 0;

    if (at < all->count && strcmp(all->items[at], name) == 0) {
        *out = (int32_t)at;
        return;
    }
    for (at = 0; at < all->count && strcmp(all->items[at], name) != 0;)
        at++;
    *out = (int32_t)at;
    if (at < all->count)
        return;
    all->items = dt_array_room(all->items, all->count + 1, &all->capacity, sizeof(all->items[0]));
    all->items[all->count] = dt_arena_strdup(p->job->call->arena, name);
    all->count++;
}

static dt_status add_row(void *context, const dt_metric *point, dt_error *err)
{
    parquet *p = context;
    dt_status st = DT_OK;
    int32_t name;

    if (p->rows_count == ROWS_MOST)
        DT_TRY(end_group(p, err));
    find_name(p, &name, point->name);
    p->rows[p->rows_count++] = (row){.point = *point, .run = p->run, .name = name};
out:
    return st;
}

/* --- the footer */

static void add_schema(dt_thrift *footer)
{
    dt_thrift_begin_list(footer, 2, DT_THRIFT_STRUCT, COLUMN_COUNT + 1);
    dt_thrift_begin(footer, 0);
    dt_thrift_add_text(footer, 4, "points");
    dt_thrift_add_i32(footer, 5, COLUMN_COUNT);
    dt_thrift_end(footer);
    for (column which = 0; which < COLUMN_COUNT; which++) {
        dt_thrift_begin(footer, 0);
        dt_thrift_add_i32(footer, 1, columns[which].type);
        dt_thrift_add_i32(footer, 3, 0); /* required */
        dt_thrift_add_text(footer, 4, columns[which].name);
        if (columns[which].kind != NO_KIND)
            dt_thrift_add_i32(footer, 6, columns[which].kind);
        dt_thrift_end(footer);
    }
}

static void add_chunk_data(dt_thrift *footer, const group *g, column which)
{
    const chunk *c = &g->chunks[which];
    bool words = columns[which].type == BYTES;

    dt_thrift_begin(footer, 0);
    dt_thrift_add_i64(footer, 2, words ? c->dictionary_at : c->values_at);
    dt_thrift_begin(footer, 3);
    dt_thrift_add_i32(footer, 1, columns[which].type);
    dt_thrift_begin_list(footer, 2, DT_THRIFT_I32, words ? 2 : 1);
    dt_thrift_item_i32(footer, PLAIN);
    if (words)
        dt_thrift_item_i32(footer, RLE_DICTIONARY);
    dt_thrift_begin_list(footer, 3, DT_THRIFT_TEXT, 1);
    dt_thrift_item_text(footer, columns[which].name);
    dt_thrift_add_i32(footer, 4, 0); /* not compressed */
    dt_thrift_add_i64(footer, 5, g->rows);
    dt_thrift_add_i64(footer, 6, c->bytes);
    dt_thrift_add_i64(footer, 7, c->bytes);
    dt_thrift_add_i64(footer, 9, c->values_at);
    if (words)
        dt_thrift_add_i64(footer, 11, c->dictionary_at);
    dt_thrift_end(footer);
    dt_thrift_end(footer);
}

static void add_groups(dt_thrift *footer, const parquet *p)
{
    dt_thrift_begin_list(footer, 4, DT_THRIFT_STRUCT, p->groups_count);
    for (size_t i = 0; i < p->groups_count; i++) {
        const group *g = &p->groups[i];
        int64_t bytes = 0;

        dt_thrift_begin(footer, 0);
        dt_thrift_begin_list(footer, 1, DT_THRIFT_STRUCT, COLUMN_COUNT);
        for (column which = 0; which < COLUMN_COUNT; which++) {
            add_chunk_data(footer, g, which);
            bytes += g->chunks[which].bytes;
        }
        dt_thrift_add_i64(footer, 2, bytes);
        dt_thrift_add_i64(footer, 3, g->rows);
        dt_thrift_end(footer);
    }
}

static void add_footer(parquet *p)
{
    size_t begun = dt_output_place(&p->output);
    uint32_t length;
    int64_t rows = 0;
    dt_thrift footer;

    for (size_t i = 0; i < p->groups_count; i++)
        rows += p->groups[i].rows;
    dt_thrift_init(&footer, &p->output.text);
    dt_thrift_add_i32(&footer, 1, 1); /* the format's version */
    add_schema(&footer);
    dt_thrift_add_i64(&footer, 3, rows);
    add_groups(&footer, p);
    dt_thrift_add_text(&footer, 6, "dtrun");
    dt_thrift_end(&footer);
    length = (uint32_t)(dt_output_place(&p->output) - begun);
    dt_strbuf_add(&p->output.text, &length, sizeof(length));
    dt_strbuf_add_str(&p->output.text, "PAR1");
}

static dt_status write_all(parquet *p, dt_error *err)
{
    dt_status st = DT_OK;

    p->rows = dt_malloc(ROWS_MOST * sizeof(p->rows[0]));
    dt_strbuf_add_str(&p->output.text, "PAR1");
    for (size_t i = 0; i < p->job->count; i++) {
        p->run = (int32_t)i;
        DT_TRY(dt_export_points(p->job, &p->job->runs[i], add_row, p, err));
    }
    DT_TRY(end_group(p, err));
    add_footer(p);
out:
    return st;
}

static dt_status write_parquet(const dt_export_job *job, dt_error *err)
{
    parquet p = {.job = job};
    dt_status st;

    DT_TRY(dt_output_open(&p.output, job->target, job->replace, job->call->arena, err));
    dt_strbuf_init(&p.page);
    dt_strbuf_init(&p.text);
    st = write_all(&p, err);
    st = dt_output_close(&p.output, st, err);
    dt_strbuf_release(&p.page);
    dt_strbuf_release(&p.text);
    free(p.names.items);
    free(p.groups);
    free(p.rows);
out:
    return st;
}

const dt_export_format dt_export_parquet = {
    .name = "parquet",
    .target = "FILE",
    .help = "one table of all points, for pyarrow, pandas, DuckDB",
    .write = write_parquet,
};
