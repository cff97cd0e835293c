#include "recipes/foreign/event_file.h"

#include <string.h>

#include "base/file.h"

#define FRAME_BYTES 16 /* length and two checksums of a record */

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum { DTYPE_FLOAT = 1, DTYPE_DOUBLE = 2 };

typedef struct bytes {
    const uint8_t *at, *end;
} bytes;

typedef struct field {
    int number, wire;
    uint64_t integer; /* value of a varint; bits of a fixed-size field */
    bytes inside;     /* content of a bytes field */
} field;

static bool read_varint(uint64_t *out, bytes *from)
{
    *out = 0;
    for (int shift = 0; shift < 64 && from->at < from->end; shift += 7) {
        uint8_t byte = *from->at++;

        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Reads the next field. False at the end, or if the data are malformed: then *from is not at its end. */
static bool read_field(field *out, bytes *from)
{
    size_t left, length;
    uint64_t key;

    if (from->at == from->end || !read_varint(&key, from))
        return false;
    *out = (field){.number = (int)(key >> 3), .wire = (int)(key & 7)};
    left = (size_t)(from->end - from->at);
    if (out->wire == WIRE_VARINT)
        return read_varint(&out->integer, from);
    if (out->wire == WIRE_BYTES) {
        if (!read_varint(&out->integer, from) || out->integer > (uint64_t)(from->end - from->at))
            return false;
        out->inside = (bytes){from->at, from->at + out->integer};
        from->at = out->inside.end;
        return true;
    }
    length = out->wire == WIRE_64 ? 8 : 4;
    if ((out->wire != WIRE_64 && out->wire != WIRE_32) || left < length)
        return false;
    memcpy(&out->integer, from->at, length);
    from->at += length;
    return true;
}

static double float_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;

    memcpy(&value, &low, sizeof(value));
    return value;
}

static double double_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Reads one value from bytes; false if there is not exactly one. */
static bool value_in(double *out, bytes inside, int64_t dtype)
{
    size_t length = (size_t)(inside.end - inside.at);
    uint64_t bits = 0;

    if (length != (dtype == DTYPE_FLOAT ? 4u : 8u))
        return false;
    memcpy(&bits, inside.at, length);
    *out = dtype == DTYPE_FLOAT ? float_of(bits) : double_of(bits);
    return true;
}

static bool read_tensor(double *out, bytes tensor)
{
    int64_t dtype = 0;
    bool found = false;
    field f;

    for (bytes from = tensor; read_field(&f, &from);)
        if (f.number == 1 && f.wire == WIRE_VARINT)
            dtype = (int64_t)f.integer;
    if (dtype != DTYPE_FLOAT && dtype != DTYPE_DOUBLE)
        return false;
    for (bytes from = tensor; read_field(&f, &from);) {
        if (f.wire == WIRE_BYTES && (f.number == 4 || f.number == (dtype == DTYPE_FLOAT ? 5 : 6)))
            found = value_in(out, f.inside, dtype);
        else if (f.number == 5 && f.wire == WIRE_32 && dtype == DTYPE_FLOAT)
            *out = float_of(f.integer), found = true;
        else if (f.number == 6 && f.wire == WIRE_64 && dtype == DTYPE_DOUBLE)
            *out = double_of(f.integer), found = true;
    }
    return found;
}

/* Reads one value of a summary. One without a tag is left out. */
static dt_status read_value(dt_event_value *out, bytes value, dt_event_take *take, void *context,
                            dt_error *err)
{
    field f;

    out->tag_length = 0;
    out->scalar = false;
    while (read_field(&f, &value)) {
        if (f.number == 1 && f.wire == WIRE_BYTES) {
            out->tag = (const char *)f.inside.at;
            out->tag_length = (size_t)(f.inside.end - f.inside.at);
        } else if (f.number == 2 && f.wire == WIRE_32) {
            out->value = float_of(f.integer);
            out->scalar = true;
        } else if (f.number == 8 && f.wire == WIRE_BYTES) {
            out->scalar = read_tensor(&out->value, f.inside);
        }
    }
    return out->tag_length > 0 ? take(context, out, err) : DT_OK;
}

static dt_status read_event(bytes event, dt_event_take *take, void *context, dt_error *err)
{
    dt_event_value value = {0};
    bytes summary = {0};
    dt_status st = DT_OK;
    double seconds;
    field f;

    while (read_field(&f, &event)) {
        if (f.number == 1 && f.wire == WIRE_64) {
            seconds = double_of(f.integer);
            value.time_ms = seconds > 0 && seconds < 1e11 ? (int64_t)(seconds * 1000 + 0.5) : 0;
        } else if (f.number == 2 && f.wire == WIRE_VARINT) {
            value.step = (int64_t)f.integer;
        } else if (f.number == 5 && f.wire == WIRE_BYTES) {
            summary = f.inside;
        }
    }
    if (value.step < 0)
        return DT_OK;
    while (st == DT_OK && read_field(&f, &summary))
        if (f.number == 1 && f.wire == WIRE_BYTES)
            st = read_value(&value, f.inside, take, context, err);
    return st;
}

static bool sum_is(const uint8_t *at, size_t length)
{
    uint32_t sum;

    memcpy(&sum, at + length, sizeof(sum));
    return dt_crc32c_masked(at, length) == sum;
}

dt_status dt_event_file_read(size_t *used, const void *data, size_t length, const char *path,
                             int64_t offset, dt_event_take *take, void *context, dt_error *err)
{
    const uint8_t *begin = data;
    dt_status st = DT_OK;
    uint64_t size;

    *used = 0;
    while (length - *used >= FRAME_BYTES) {
        const uint8_t *event = begin + *used + 12;

        memcpy(&size, begin + *used, sizeof(size));
        if (!sum_is(begin + *used, sizeof(size)))
            DT_THROW(err, DT_ERR_CORRUPT, "'%s' is damaged at byte %lld, or not an event file",
                     path, (long long)(offset + (int64_t)*used));
        if (size > length - *used - FRAME_BYTES)
            break;
        if (!sum_is(event, (size_t)size))
            DT_THROW(err, DT_ERR_CORRUPT, "'%s' is damaged at byte %lld", path,
                     (long long)(offset + (int64_t)*used + 12));
        DT_TRY(read_event((bytes){event, event + size}, take, context, err));
        *used += FRAME_BYTES + (size_t)size;
    }
out:
    return st;
}
