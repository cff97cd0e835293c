#include "engine/data/npy.h"

#include <string.h>

#include "recipes/architecture/architecture.h"

#define MAGIC       "\x93NUMPY"
#define MAGIC_BYTES 6
#define WORD_SIZE   32 /* buffer size of a header string, with its NUL */
#define MORE_DIM    3  /* dimensions stored, one more than is supported */

bool dt_npy_has_magic(const unsigned char *bytes, size_t length)
{
    return length >= MAGIC_BYTES && memcmp(bytes, MAGIC, MAGIC_BYTES) == 0;
}

/* --- parsing the header, a Python literal */

/* Parser position in the header. */
typedef struct cursor {
    const char *path, *begin, *at, *end; /* begin: start of the file */
} cursor;

/* The header's values; each must occur once. */
typedef struct header {
    bool has_descr, has_order, has_shape;
    char descr[WORD_SIZE];
    bool fortran_order;
    int dims;
    int64_t dim[MORE_DIM];
} header;

static dt_status expect(const cursor *in, const char *what, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "'%s', byte %lld: expected %s in the header of a .npy file; the file is damaged "
                   "or not a plain table: write it again with numpy.save",
                   in->path, (long long)(in->at - in->begin), what);
}

static void skip_spaces(cursor *in)
{
    while (in->at < in->end && *in->at == ' ')
        in->at++;
}

/* Skip spaces; if `text` follows, skip it and return true. */
static bool take(cursor *in, const char *text)
{
    size_t length = strlen(text);

    skip_spaces(in);
    if ((size_t)(in->end - in->at) < length || memcmp(in->at, text, length) != 0)
        return false;
    in->at += length;
    return true;
}

/* Parse 'word' or "word", of printable ASCII. */
static dt_status take_string(char out[WORD_SIZE], cursor *in, const char *what, dt_error *err)
{
    char quote = take(in, "'") ? '\'' : take(in, "\"") ? '"' : '\0';
    size_t length = 0;

    if (quote == '\0')
        return expect(in, what, err);
    for (; in->at < in->end && *in->at != quote; in->at++) {
        if (length == WORD_SIZE - 1 || *in->at < ' ' || *in->at > '~' || *in->at == '\\')
            return expect(in, what, err);
        out[length++] = *in->at;
    }
    if (in->at == in->end)
        return expect(in, what, err);
    in->at++;
    out[length] = '\0';
    return DT_OK;
}

static dt_status take_size(int64_t *out, cursor *in, dt_error *err)
{
    const char *start;

    skip_spaces(in);
    start = in->at;
    for (*out = 0; in->at < in->end && *in->at >= '0' && *in->at <= '9'; in->at++)
        *out = dt_size_plus(dt_size_times(*out, 10), *in->at - '0');
    if (in->at == start || *out == INT64_MAX)
        return expect(in, "a size", err);
    return DT_OK;
}

/* Parse (), (3,), (3, 4), as Python writes them. */
static dt_status take_shape(header *out, cursor *in, dt_error *err)
{
    dt_status st = DT_OK;
    bool comma = true;

    if (!take(in, "("))
        return expect(in, "the shape, as (rows, columns)", err);
    for (out->dims = 0; !take(in, ")"); comma = take(in, ",")) {
        int64_t size;

        if (!comma)
            return expect(in, "',' or ')'", err);
        DT_TRY(take_size(&size, in, err));
        if (out->dims < MORE_DIM)
            out->dim[out->dims++] = size;
    }
out:
    return st;
}

static dt_status take_value(header *out, const char *key, cursor *in, dt_error *err)
{
    static const char *const once = "'descr', 'fortran_order' and 'shape', each once";
    bool *const there = strcmp(key, "descr") == 0           ? &out->has_descr
                        : strcmp(key, "fortran_order") == 0 ? &out->has_order
                        : strcmp(key, "shape") == 0         ? &out->has_shape
                                                            : NULL;

    if (there == NULL || *there)
        return expect(in, once, err);
    *there = true;
    if (there == &out->has_descr)
        return take_string(out->descr, in, "one type of number, as '<f4'", err);
    if (there == &out->has_shape)
        return take_shape(out, in, err);
    out->fortran_order = take(in, "True");
    if (!out->fortran_order && !take(in, "False"))
        return expect(in, "True or False", err);
    return DT_OK;
}

static dt_status take_header(header *out, cursor *in, dt_error *err)
{
    char key[WORD_SIZE];
    bool comma = true;
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    if (!take(in, "{"))
        DT_TRY(expect(in, "'{'", err));
    for (; !take(in, "}"); comma = take(in, ",")) {
        if (!comma)
            DT_TRY(expect(in, "',' or '}'", err));
        DT_TRY(take_string(key, in, "a key", err));
        if (!take(in, ":"))
            DT_TRY(expect(in, "':'", err));
        DT_TRY(take_value(out, key, in, err));
    }
    if (!out->has_descr || !out->has_order || !out->has_shape)
        DT_TRY(expect(in, "'descr', 'fortran_order' and 'shape' before its end", err));
    if (!take(in, "\n") || in->at != in->end)
        DT_TRY(expect(in, "spaces and a line break at the end", err));
out:
    return st;
}

/* --- checking the header */

/* Find the header's text, from the magic, version and length before it. */
static dt_status find_header(cursor *out, const char *path, const unsigned char *bytes,
                             size_t length, dt_error *err)
{
    size_t sizes = MAGIC_BYTES + 2, text = 0, start;
    dt_status st = DT_OK;

    if (!dt_npy_has_magic(bytes, length))
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' is not a .npy file: its first bytes differ from those of the format; write "
                 "it with numpy.save, or name a text table .csv",
                 path);
    if (length >= sizes && (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0))
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s': unsupported .npy version %d.%d (expected 1.0, 2.0 or 3.0); write it with "
                 "numpy.save",
                 path, bytes[6], bytes[7]);
    start = sizes + (length >= sizes && bytes[6] > 1 ? 4 : 2);
    for (size_t i = start; length >= start && i > sizes; i--)
        text = text << 8 | bytes[i - 1];
    if (length < start || length - start < text)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' ends within its header, at byte %zu: it is cut off; copy or write it again",
                 path, length);
    *out = (cursor){.path = path, .begin = (const char *)bytes};
    out->at = out->begin + start;
    out->end = out->at + text;
out:
    return st;
}

static dt_status read_type(dt_npy *out, const header *found, const char *path, dt_error *err)
{
    static const char *const types[] = {"<f4", "<f8", "|i1", "<i2", "<i4",
                                        "<i8", "|u1", "<u2", "<u4", "<u8"};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(found->descr, types[i]) == 0) {
            out->kind = found->descr[1];
            out->width_bytes = found->descr[2] - '0';
            return DT_OK;
        }
    }
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "'%s': unsupported number type '%s' ('descr' in the header; expected "
                   "little-endian float32, float64 or integers): save array.astype('<f4')",
                   path, found->descr);
}

static dt_status read_shape(dt_npy *out, const header *found, const char *path, dt_error *err)
{
    if (found->fortran_order)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s' is in column-major order ('fortran_order' in the header); save "
                       "numpy.ascontiguousarray(array)",
                       path);
    if (found->dims != 2)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s' has %s%d dimension%s ('shape' in the header); expected two, rows and "
                       "columns: save array.reshape(rows, columns)",
                       path, found->dims == MORE_DIM ? "at least " : "", found->dims,
                       found->dims == 1 ? "" : "s");
    out->rows = found->dim[0];
    out->columns = found->dim[1];
    return DT_OK;
}

dt_status dt_npy_read(dt_npy *out, const char *path, const unsigned char *bytes, size_t length,
                      dt_error *err)
{
    header found;
    cursor in;
    dt_status st = DT_OK;

    memset(out, 0, sizeof(*out));
    DT_TRY(find_header(&in, path, bytes, length, err));
    DT_TRY(take_header(&found, &in, err));
    DT_TRY(read_type(out, &found, path, err));
    DT_TRY(read_shape(out, &found, path, err));
    out->start = (size_t)(in.end - in.begin);
    if (dt_size_times(dt_size_times(out->rows, out->columns), out->width_bytes) !=
        (int64_t)(length - out->start))
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s': its header says %lld x %lld numbers of %d bytes, and %zu bytes follow; the "
                 "file is cut off or damaged: copy or write it again",
                 path, (long long)out->rows, (long long)out->columns, out->width_bytes,
                 length - out->start);
out:
    return st;
}

/* --- numbers */

double dt_npy_number(const dt_npy *npy, const unsigned char *bytes, int64_t index)
{
    const unsigned char *at = bytes + npy->start + index * npy->width_bytes;
    uint64_t whole = 0;
    double f8;
    float f4;

    if (npy->kind == 'f' && npy->width_bytes == 4) {
        memcpy(&f4, at, sizeof(f4));
        return f4;
    }
    if (npy->kind == 'f') {
        memcpy(&f8, at, sizeof(f8));
        return f8;
    }
    for (int i = npy->width_bytes - 1; i >= 0; i--)
        whole = whole << 8 | at[i];
    if (npy->kind == 'u')
        return (double)whole;
    return (double)((int64_t)(whole << (64 - 8 * npy->width_bytes)) >> (64 - 8 * npy->width_bytes));
}
