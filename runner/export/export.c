/* export: lists the export formats, and has what several of them use: the points of a run, and Thrift's
 * compact protocol. */
#include "runner/export/export.h"

#include <stddef.h>
#include <string.h>

/* The points of a run. */

#define BLOCK_POINTS 4096

typedef struct block {
    dt_metric *points;
    int64_t count;
} block;

static bool gather(void *context, const dt_metric *point)
{
    block *b = context;

    b->points[b->count++] = *point;
    return b->count < BLOCK_POINTS;
}

static dt_status give_curve(const dt_export_job *job, const dt_store_curves *curves, int64_t which,
                            int64_t last_step, block *b, dt_export_take take, void *context,
                            dt_error *err)
{
    int64_t after = -1;
    dt_status st = DT_OK;

    do {
        b->count = 0;
        DT_TRY(dt_store_curve_scan(job->store, curves, which, after, last_step, gather, b, err));
        for (int64_t i = 0; i < b->count; i++)
            DT_TRY(take(context, &b->points[i], err));
        if (b->count > 0)
            after = b->points[b->count - 1].step;
    } while (b->count == BLOCK_POINTS);
out:
    return st;
}

dt_status dt_export_points(const dt_export_job *job, const dt_run *run, dt_export_take take,
                           void *context, dt_error *err)
{
    int64_t last_step = dt_run_state_is_terminal(run->state) ? INT64_MAX : run->step;
    dt_store_curves curves;
    dt_status st = DT_OK;
    dt_arena arena;
    block b = {0};

    dt_arena_init(&arena, 0);
    b.points = dt_arena_alloc_array(&arena, BLOCK_POINTS, sizeof(b.points[0]));
    DT_TRY(dt_store_curves_find(job->store, &curves, run->id, job->metric, &arena, err));
    for (int64_t i = 0; i < curves.count; i++)
        DT_TRY(give_curve(job, &curves, i, last_step, &b, take, context, err));
out:
    dt_arena_release(&arena);
    return st;
}

/* Thrift's compact protocol. */

enum { TYPE_I64 = 6, TYPE_LIST = 9 };

void dt_varint_add(dt_strbuf *out, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        dt_strbuf_add_char(out, (char)(value | 0x80));
    dt_strbuf_add_char(out, (char)value);
}

static void add_zigzag(dt_strbuf *out, int64_t value)
{
    dt_varint_add(out, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static void add_bytes(dt_strbuf *out, const char *text)
{
    dt_varint_add(out, strlen(text));
    dt_strbuf_add_str(out, text);
}

/* Adds a field header in its short form, for fields at most 15 apart. */
static void add_field(dt_thrift *thrift, int field, int type)
{
    int step = field - thrift->last[thrift->depth];

    DT_ASSERT(step > 0 && step < 16);
    dt_strbuf_add_char(thrift->out, (char)(step << 4 | type));
    thrift->last[thrift->depth] = field;
}

void dt_thrift_init(dt_thrift *thrift, dt_strbuf *out)
{
    *thrift = (dt_thrift){.out = out};
}

void dt_thrift_add_i32(dt_thrift *thrift, int field, int32_t value)
{
    add_field(thrift, field, DT_THRIFT_I32);
    add_zigzag(thrift->out, value);
}

void dt_thrift_add_i64(dt_thrift *thrift, int field, int64_t value)
{
    add_field(thrift, field, TYPE_I64);
    add_zigzag(thrift->out, value);
}

void dt_thrift_add_text(dt_thrift *thrift, int field, const char *text)
{
    add_field(thrift, field, DT_THRIFT_TEXT);
    add_bytes(thrift->out, text);
}

void dt_thrift_begin(dt_thrift *thrift, int field)
{
    if (field > 0)
        add_field(thrift, field, DT_THRIFT_STRUCT);
    DT_ASSERT(thrift->depth + 1 < DT_THRIFT_DEPTH);
    thrift->last[++thrift->depth] = 0;
}

void dt_thrift_end(dt_thrift *thrift)
{
    dt_strbuf_add_char(thrift->out, 0);
    thrift->depth--;
}

void dt_thrift_begin_list(dt_thrift *thrift, int field, dt_thrift_type type, size_t count)
{
    add_field(thrift, field, TYPE_LIST);
    if (count < 15) {
        dt_strbuf_add_char(thrift->out, (char)(count << 4 | type));
    } else {
        dt_strbuf_add_char(thrift->out, (char)(0xf0 | type));
        dt_varint_add(thrift->out, count);
    }
}

void dt_thrift_item_i32(dt_thrift *thrift, int32_t value)
{
    add_zigzag(thrift->out, value);
}

void dt_thrift_item_text(dt_thrift *thrift, const char *text)
{
    add_bytes(thrift->out, text);
}

/* The table of formats. */

#define ADDRESS(name) &dt_export_##name,
const dt_export_format *const dt_export_formats[] = {DT_EXPORT_FORMATS(ADDRESS) NULL};

#define NAME(name) #name,
const char *const dt_export_names[] = {DT_EXPORT_FORMATS(NAME) NULL};
