#include "runner/export/thrift.h"

#include <string.h>

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
