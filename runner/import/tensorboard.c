/* tensorboard: imports event files of a folder and its subfolders; each folder with event files is a run.
 *
 * Framing and events are described in runner/export/tensorboard.c. In addition to simple_value, a
 * scalar may be a tensor (8) of dtype (1) float or double with one value, in float_val (5), double_val
 * (6) or tensor_content (4). A record truncated by the end of the file was still being written and is ignored. A record with a wrong checksum is an
 * error, because the next record cannot be found. Everything that is not a scalar is skipped.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "runner/import/import.h"

#include "base/banned.h"

#define FILE_BYTES_MOST ((size_t)4 << 30)
#define DEPTH_MOST      16

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

static dt_status read_value(dt_imported *out, dt_import_point *point, bytes value, dt_error *err)
{
    const char *tag = NULL;
    dt_status st = DT_OK;
    bool scalar = false;
    field f;

    while (read_field(&f, &value)) {
        if (f.number == 1 && f.wire == WIRE_BYTES)
            tag = dt_arena_strndup(out->arena, (const char *)f.inside.at,
                                   (size_t)(f.inside.end - f.inside.at));
        else if (f.number == 2 && f.wire == WIRE_32)
            point->value = float_of(f.integer), scalar = true;
        else if (f.number == 8 && f.wire == WIRE_BYTES)
            scalar = read_tensor(&point->value, f.inside);
    }
    out->skipped += !scalar;
    if (tag == NULL || tag[0] == '\0')
        return DT_OK;
    if (!scalar) {
        dt_import_name(&(int32_t){0}, &out->left_out, tag, out->arena);
        return DT_OK;
    }
    dt_import_name(&point->metric, &out->metrics, tag, out->arena);
    DT_TRY(dt_import_add(out, point, err));
out:
    return st;
}

static dt_status read_event(dt_imported *out, int32_t run, bytes event, dt_error *err)
{
    dt_import_point point = {.run = run};
    bytes summary = {0};
    dt_status st = DT_OK;
    double seconds;
    field f;

    while (read_field(&f, &event)) {
        if (f.number == 1 && f.wire == WIRE_64) {
            seconds = double_of(f.integer);
            point.time_ms = seconds > 0 && seconds < 1e11 ? (int64_t)(seconds * 1000 + 0.5) : 0;
        } else if (f.number == 2 && f.wire == WIRE_VARINT) {
            point.step = (int64_t)f.integer;
        } else if (f.number == 5 && f.wire == WIRE_BYTES) {
            summary = f.inside;
        }
    }
    if (point.step < 0)
        return DT_OK;
    while (read_field(&f, &summary))
        if (f.number == 1 && f.wire == WIRE_BYTES)
            DT_TRY(read_value(out, &point, f.inside, err));
out:
    return st;
}

static bool sum_is(const uint8_t *at, size_t length)
{
    uint32_t sum;

    memcpy(&sum, at + length, sizeof(sum));
    return dt_crc32c_masked(at, length) == sum;
}

static dt_status read_file(dt_imported *out, int32_t run, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    const uint8_t *begin;
    dt_strbuf text;
    uint64_t length;

    dt_strbuf_init(&text);
    DT_TRY(dt_file_read(&text, path, FILE_BYTES_MOST, err));
    begin = (const uint8_t *)text.data;
    for (size_t at = 0; text.length - at >= 16; at += 16 + (size_t)length) {
        memcpy(&length, begin + at, sizeof(length));
        if (!sum_is(begin + at, 8))
            DT_THROW(err, DT_ERR_CORRUPT, "'%s' is damaged at byte %zu, or not an event file", path,
                     at);
        if (length > text.length - at - 16)
            break; /* still being written */
        if (!sum_is(begin + at + 12, (size_t)length))
            DT_THROW(err, DT_ERR_CORRUPT, "'%s' is damaged at byte %zu", path, at + 12);
        DT_TRY(read_event(out, run, (bytes){begin + at + 12, begin + at + 12 + length}, err));
    }
out:
    dt_strbuf_release(&text);
    return st;
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Reads a folder. name: of its run; for subfolders the path below the first folder. Files are read
 * in the order of their names, which is the order of their times. */
static dt_status read_folder(dt_imported *out, const char *path, const char *name, int depth,
                             dt_error *err)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, not_hidden, alphasort);
    dt_status st = DT_OK;
    struct stat info;
    int32_t run;

    if (count < 0)
        return DT_FAIL(err, DT_ERR_NOT_FOUND, "cannot read the folder '%s'", path);
    for (int i = 0; i < count; i++) {
        const char *below = dt_arena_printf(out->arena, "%s/%s", path, entries[i]->d_name);
        const char *inner = depth == 0
                                ? dt_arena_strdup(out->arena, entries[i]->d_name)
                                : dt_arena_printf(out->arena, "%s/%s", name, entries[i]->d_name);

        if (lstat(below, &info) != 0)
            continue;
        if (S_ISDIR(info.st_mode) && depth < DEPTH_MOST) {
            DT_TRY(read_folder(out, below, inner, depth + 1, err));
        } else if (S_ISREG(info.st_mode) && strstr(entries[i]->d_name, "tfevents") != NULL) {
            dt_import_name(&run, &out->runs, name, out->arena);
            DT_TRY(read_file(out, run, below, err));
        }
    }
out:
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return st;
}

static dt_status read_board(dt_imported *out, const dt_import_source *source, dt_error *err)
{
    const char *path = source->path, *name;
    size_t length = strlen(path);
    struct stat info;
    int32_t run;
    dt_status st = DT_OK;

    while (length > 1 && path[length - 1] == '/')
        length--;
    path = dt_arena_strndup(out->arena, path, length);
    name = base_of(path);
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
        dt_import_name(&run, &out->runs, name, out->arena);
        DT_TRY(read_file(out, run, path, err));
    } else {
        DT_TRY(read_folder(out, path, name, 0, err));
    }
out:
    return st;
}

const dt_import_format dt_import_tensorboard = {.name = "tensorboard", .read = read_board};
