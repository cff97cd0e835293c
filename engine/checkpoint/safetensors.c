/* safetensors: implements safetensors.h. */
#include "engine/checkpoint/safetensors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/progress.h"

/* --- a range of a file */

dt_status dt_checkpoint_read_at(void *out, size_t length, int fd, int64_t at_bytes,
                                const char *where, dt_error *err)
{
    char *put = out;

    while (length > 0) {
        ssize_t got = pread(fd, put, length, (off_t)at_bytes);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return DT_FAIL(err, DT_ERR_IO, "%s: cannot read: %s", where, strerror(errno));
        if (got == 0)
            return DT_FAIL(err, DT_ERR_CORRUPT, "%s: cut off at byte %lld", where,
                           (long long)at_bytes);
        dt_progress_made();
        put += got;
        at_bytes += got;
        length -= (size_t)got;
    }
    return DT_OK;
}

/* --- the format */

#define LENGTH_BYTES 8

/* The format's types that have whole bytes. */
static const struct {
    const char *name;
    int64_t bytes;
} types[] = {
    {"F32", 4},     {"BF16", 2}, {"F16", 2}, {"I64", 8},  {"I32", 4},
    {"I16", 2},     {"I8", 1},   {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1},
    {"F8_E5M2", 1}, {"F64", 8},  {"U16", 2}, {"U32", 4},  {"U64", 8},
};

/* Size of an element; 0: unknown type. */
static int64_t type_bytes(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].bytes;
    return 0;
}

/* --- writing */

dt_status dt_safetensors_writer_init(dt_safetensors_writer *out, dt_error *err)
{
    /* "pt": dimensions are in PyTorch's order; some readers require it */
    out->header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    out->bytes = 0;
    if (out->header == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a checkpoint's header");
    return DT_OK;
}

void dt_safetensors_writer_release(dt_safetensors_writer *writer)
{
    json_decref(writer->header);
    memset(writer, 0, sizeof(*writer));
}

void dt_safetensors_writer_add(dt_safetensors_writer *writer, const char *key, dt_dtype dtype,
                               const int64_t *dim, int ndim)
{
    json_t *shape = json_array();
    int64_t begin = writer->bytes, bytes = (int64_t)dt_dtype_bytes(dtype);

    DT_ASSERT(json_object_get(writer->header, key) == NULL);
    for (int i = 0; i < ndim; i++) {
        json_array_append_new(shape, json_integer(dim[i]));
        bytes *= dim[i];
    }
    writer->bytes += bytes;
    json_object_set_new(writer->header, key,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", dt_dtype_name(dtype), "shape",
                                  shape, "data_offsets", (json_int_t)begin,
                                  (json_int_t)writer->bytes));
}

void dt_safetensors_writer_end(dt_strbuf *out, const dt_safetensors_writer *writer)
{
    dt_strbuf text;
    uint64_t length;

    dt_strbuf_init(&text);
    dt_json_write(&text, writer->header);
    while (text.length % 8 != 0)
        dt_strbuf_add_char(&text, ' ');
    length = text.length;
    for (int i = 0; i < LENGTH_BYTES; i++)
        dt_strbuf_add_char(out, (char)(length >> (8 * i) & 0xff));
    dt_strbuf_add(out, text.data, text.length);
    dt_strbuf_release(&text);
}

/* --- reading */

typedef struct span {
    int64_t begin, end;
} span;

static dt_status entry_read(span *out, const char *key, const json_t *entry, int64_t data_bytes,
                            const char *where, dt_error *err)
{
    const json_t *shape = json_object_get(entry, "shape");
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    int64_t bytes = type_bytes(dtype);

    if (bytes == 0)
        return DT_FAIL(err, DT_ERR_CORRUPT, "%s: '%s' has an unsupported type", where, key);
    if (!json_is_array(shape) || json_array_size(offsets) != 2 ||
        !json_is_integer(json_array_get(offsets, 0)) ||
        !json_is_integer(json_array_get(offsets, 1)))
        return DT_FAIL(err, DT_ERR_CORRUPT, "%s: '%s' lacks a shape or its two offsets", where,
                       key);
    out->begin = json_integer_value(json_array_get(offsets, 0));
    out->end = json_integer_value(json_array_get(offsets, 1));
    for (size_t i = 0; i < json_array_size(shape); i++) {
        const json_t *dim = json_array_get(shape, i);

        if (!json_is_integer(dim) || json_integer_value(dim) < 0 ||
            __builtin_mul_overflow(bytes, (int64_t)json_integer_value(dim), &bytes))
            return DT_FAIL(err, DT_ERR_CORRUPT, "%s: '%s' has an impossible shape", where, key);
    }
    if (out->begin < 0 || out->end > data_bytes || out->begin > out->end ||
        out->end - out->begin != bytes)
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "%s: '%s' at bytes %lld to %lld does not fit its shape or the file's %lld",
                       where, key, (long long)out->begin, (long long)out->end,
                       (long long)data_bytes);
    return DT_OK;
}

static int by_begin(const void *a, const void *b)
{
    const span *left = a, *right = b;

    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    return (left->end > right->end) - (left->end < right->end);
}

/* Check that the tensors cover the data, each byte exactly once. */
static dt_status spans_cover(span *spans, size_t count, int64_t data_bytes, const char *where,
                             dt_error *err)
{
    int64_t at = 0;

    if (count > 0)
        qsort(spans, count, sizeof(*spans), by_begin);
    for (size_t i = 0; i < count; i++) {
        if (spans[i].begin != at)
            return DT_FAIL(err, DT_ERR_CORRUPT, "%s: tensors %s at byte %lld of the data", where,
                           spans[i].begin < at ? "overlap" : "leave a gap", (long long)at);
        at = spans[i].end;
    }
    if (at != data_bytes)
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "%s: tensors take %lld bytes, and the file has %lld for them", where,
                       (long long)at, (long long)data_bytes);
    return DT_OK;
}

/* `text` is the N bytes of the header; data_bytes follow them in the file. Checks every entry:
 * type, shape, offsets, no overlap and no gap. */
static dt_status safetensors_parse(dt_safetensors *out, const char *text, size_t length,
                                   int64_t data_bytes, const char *where, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *header = NULL, *entry;
    const char *key;
    span *spans = NULL;
    size_t count = 0;

    out->header = NULL;
    out->data_start = (int64_t)(LENGTH_BYTES + length);
    DT_TRY(dt_json_parse(&header, text, length, where, err));
    if (!json_is_object(header))
        DT_THROW(err, DT_ERR_CORRUPT, "%s: the header is not a JSON object", where);
    spans = calloc(json_object_size(header) + 1, sizeof(*spans));
    if (spans == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "%s: no memory for %zu tensors", where,
                 json_object_size(header));
    json_object_foreach(header, key, entry) {
        if (strcmp(key, "__metadata__") == 0)
            continue;
        DT_TRY(entry_read(&spans[count], key, entry, data_bytes, where, err));
        count++;
    }
    DT_TRY(spans_cover(spans, count, data_bytes, where, err));
    out->header = header; /* ownership passes to the caller */
    header = NULL;
out:
    json_decref(header);
    free(spans);
    return st;
}

dt_status dt_safetensors_read(dt_safetensors *out, int fd, int64_t bytes, const char *where,
                              dt_error *err)
{
    dt_status st = DT_OK;
    unsigned char prefix[LENGTH_BYTES];
    uint64_t length = 0;
    char *text = NULL;

    memset(out, 0, sizeof(*out));
    DT_TRY(dt_checkpoint_read_at(prefix, sizeof(prefix), fd, 0, where, err));
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        length = length << 8 | prefix[i];
    if (length > DT_SAFETENSORS_MAX_HEADER || (int64_t)length > bytes - LENGTH_BYTES)
        DT_THROW(err, DT_ERR_CORRUPT, "%s: a header of %llu bytes does not fit its %lld bytes",
                 where, (unsigned long long)length, (long long)bytes);
    text = malloc(length + 1);
    if (text == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "%s: no memory for its header", where);
    DT_TRY(dt_checkpoint_read_at(text, length, fd, LENGTH_BYTES, where, err));
    DT_TRY(
        safetensors_parse(out, text, length, bytes - LENGTH_BYTES - (int64_t)length, where, err));
out:
    free(text);
    return st;
}

void dt_safetensors_release(dt_safetensors *file)
{
    json_decref(file->header);
    memset(file, 0, sizeof(*file));
}

bool dt_safetensors_look(dt_safetensors_tensor *out, const dt_safetensors *file, const char *key)
{
    const json_t *entry = json_object_get(file->header, key);
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *shape = json_object_get(entry, "shape");
    int64_t begin, end;

    if (offsets == NULL || strcmp(key, "__metadata__") == 0)
        return false;
    begin = json_integer_value(json_array_get(offsets, 0));
    end = json_integer_value(json_array_get(offsets, 1));
    *out = (dt_safetensors_tensor){.type = json_string_value(json_object_get(entry, "dtype")),
                                   .dtype = DT_F32,
                                   .start_bytes = file->data_start + begin,
                                   .bytes = end - begin,
                                   .ndim = (int)json_array_size(shape)};
    out->elems = out->bytes / type_bytes(out->type);
    while (out->dtype < DT_DTYPE_COUNT && strcmp(dt_dtype_name(out->dtype), out->type) != 0)
        out->dtype++;
    for (int i = 0; i < out->ndim && i < DT_SAFETENSORS_DIMS; i++)
        out->dim[i] = json_integer_value(json_array_get(shape, (size_t)i));
    return true;
}

bool dt_safetensors_find(int64_t *start_bytes, int64_t *elems, const dt_safetensors *file,
                         const char *key)
{
    dt_safetensors_tensor tensor;

    if (!dt_safetensors_look(&tensor, file, key) || tensor.dtype != DT_F32)
        return false;
    *start_bytes = tensor.start_bytes;
    *elems = tensor.elems;
    return true;
}
