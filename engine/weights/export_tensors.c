/* export_tensors: writes the files of tensors: every parameter once, in the order of the model's
 * table, without its padding. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/shape.h"
#include "engine/ops/cpu/half_int.h"
#include "engine/weights/export_int.h"
#include "engine/weights/weights_int.h"

/* A parameter as it will be written. */
typedef struct tensor {
    const char *name;
    const dt_published_tensor *row;
    dt_checkpoint_shape shape; /* shape of the parameter in dtrun's layout */
    int64_t dim[DT_PARAM_DIMS];
    int64_t bytes;
    int64_t file; /* number of the file, from 0 */
} tensor;

static dt_status describe(tensor *out, dt_weights_exporter *e, const dt_param *param, dt_error *err)
{
    const char *theirs = dt_weights_name(&out->row, e->family, param->name, &e->arena);

    if (theirs == NULL)
        return DT_FAIL(err, DT_ERR_RECIPE, "a model of type '%s' has no '%s'",
                       e->family->model_type, param->name);
    out->name = dt_weights_full_name(e->family, theirs, &e->arena);
    if (out->name == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a name");
    out->shape = dt_checkpoint_shape_of(param);
    for (int i = 0; i < out->shape.ndim; i++)
        out->dim[i] = out->shape.dim[out->row->transposed ? out->shape.ndim - 1 - i : i];
    out->bytes = out->shape.elems * (int64_t)dt_dtype_bytes(e->options->dtype);
    return DT_OK;
}

/* Assign tensors to files: start a new file when the current one would become too large. */
static dt_status lay_out(tensor *all, dt_weights_exporter *e, dt_error *err)
{
    int64_t in_file = 0, file = 0;
    dt_status st = DT_OK;

    for (int i = 0; i < e->model->param_count; i++) {
        DT_TRY(describe(&all[i], e, &e->model->params[i], err));
        if (in_file > 0 && in_file + all[i].bytes > e->options->file_bytes) {
            in_file = 0;
            file++;
        }
        in_file += all[i].bytes;
        all[i].file = file;
        e->result->bytes += all[i].bytes;
        e->result->parameters += all[i].shape.elems;
    }
    e->result->files = file + 1;
out:
    return st;
}

static const char *file_name(dt_weights_exporter *e, int64_t file)
{
    return e->result->files == 1
               ? DT_HUGGINGFACE_MODEL
               : dt_arena_printf(&e->arena, "model-%05lld-of-%05lld.safetensors",
                                 (long long)file + 1, (long long)e->result->files);
}

/* --- values */

/* Transpose (R, C) to (C, R). */
static void turn(float *out, const float *in, int64_t rows, int64_t columns)
{
    enum { BAND = 16 };

    for (int64_t r0 = 0; r0 < rows; r0 += BAND)
        for (int64_t c = 0; c < columns; c++)
            for (int64_t r = r0; r < rows && r < r0 + BAND; r++)
                out[c * rows + r] = in[r * columns + c];
}

/* Convert in place: a narrower value never overwrites one that is still to be converted. */
static void narrow(float *values, dt_dtype dtype, int64_t elems)
{
    uint16_t *out = (uint16_t *)(void *)values;

    for (int64_t i = 0; dtype == DT_BF16 && i < elems; i++) {
        uint16_t half = dt_bf16_narrow(values[i]);

        memcpy(&out[i], &half, sizeof(half));
    }
    for (int64_t i = 0; dtype == DT_F16 && i < elems; i++) {
        uint16_t half = dt_f16_narrow(values[i]);

        memcpy(&out[i], &half, sizeof(half));
    }
}

static dt_status check_range(const dt_weights_exporter *e, const tensor *of, const float *values,
                             dt_error *err)
{
    for (int64_t i = 0; i < of->shape.elems; i++) {
        if (!isfinite(values[i]))
            return DT_FAIL(err, DT_ERR_CORRUPT, "'%s': '%s' contains %s: the run diverged",
                           e->options->checkpoint, of->name,
                           isnan(values[i]) ? "NaN" : "an infinity");
        if (e->options->dtype == DT_F16 && fabsf(values[i]) >= 65520.0F)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "'%s' contains %g, which fp16 cannot represent: export as bf16 or fp32",
                           of->name, (double)values[i]);
    }
    return DT_OK;
}

static dt_status write_tensor(int fd, dt_weights_exporter *e, int param, const tensor *of,
                              float *values, float *turned, dt_error *err)
{
    float *out = values;
    dt_status st = DT_OK;

    DT_TRY(dt_checkpoint_load_param(e->checkpoint, &e->model->params[param], values, err));
    DT_TRY(check_range(e, of, values, err));
    if (of->row->transposed) {
        turn(turned, values, of->shape.dim[0], of->shape.dim[1]);
        out = turned;
    }
    narrow(out, e->options->dtype, of->shape.elems);
    DT_TRY(dt_file_write_all(fd, out, (size_t)of->bytes, err));
out:
    return st;
}

/* --- files */

static dt_status write_header(int fd, const dt_weights_exporter *e, const tensor *all, int64_t file,
                              dt_error *err)
{
    dt_safetensors_writer writer = {0};
    dt_status st = DT_OK;
    dt_strbuf header;

    dt_strbuf_init(&header);
    DT_TRY(dt_safetensors_writer_init(&writer, err));
    for (int i = 0; i < e->model->param_count; i++)
        if (all[i].file == file)
            dt_safetensors_writer_add(&writer, all[i].name, e->options->dtype, all[i].dim,
                                      all[i].shape.ndim);
    dt_safetensors_writer_end(&header, &writer);
    DT_TRY(dt_file_write_all(fd, header.data, header.length, err));
out:
    dt_safetensors_writer_release(&writer);
    dt_strbuf_release(&header);
    return st;
}

static dt_status write_file(dt_weights_exporter *e, const tensor *all, int64_t file, float *values,
                            float *turned, dt_error *err)
{
    const char *name = file_name(e, file);
    int fd = -1;
    dt_status st = DT_OK, closed;

    if (name == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a name");
    DT_TRY(dt_weights_export_open(&fd, e, name, err));
    DT_TRY(write_header(fd, e, all, file, err));
    for (int i = 0; i < e->model->param_count; i++)
        if (all[i].file == file)
            DT_TRY(write_tensor(fd, e, i, &all[i], values, turned, err));
out:
    if (fd >= 0) {
        closed = dt_weights_export_close(fd, e, st == DT_OK ? err : NULL);
        st = st == DT_OK ? closed : st;
    }
    return st;
}

static dt_status write_index(dt_weights_exporter *e, const tensor *all, dt_error *err)
{
    json_t *map = json_object(), *index;
    dt_status st;

    for (int i = 0; i < e->model->param_count; i++)
        json_object_set_new(map, all[i].name, json_string(file_name(e, all[i].file)));
    index = json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)e->result->bytes,
                      "weight_map", map);
    st = dt_weights_export_put_json(e, DT_HUGGINGFACE_INDEX, index, err);
    json_decref(index);
    return st;
}

dt_status dt_weights_export_tensors(dt_weights_exporter *e, dt_error *err)
{
    tensor *all = dt_arena_alloc_array(&e->arena, (size_t)e->model->param_count, sizeof(*all));
    float *values = NULL, *turned = NULL;
    int64_t largest = 0;
    dt_status st = DT_OK;

    DT_TRY(lay_out(all, e, err));
    for (int i = 0; i < e->model->param_count; i++)
        largest = e->model->params[i].elems > largest ? e->model->params[i].elems : largest;
    values = malloc((size_t)largest * sizeof(*values));
    turned = malloc((size_t)largest * sizeof(*turned));
    if (values == NULL || turned == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a parameter of %lld elements",
                 (long long)largest);
    for (int64_t file = 0; file < e->result->files; file++)
        DT_TRY(write_file(e, all, file, values, turned, err));
    if (e->result->files > 1)
        DT_TRY(write_index(e, all, err));
out:
    free(values);
    free(turned);
    return st;
}
