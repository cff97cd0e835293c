/* export: writes a checkpoint as a folder that Hugging Face transformers or PEFT can load. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/checkpoint/index.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/config.h"
#include "engine/data/data.h"
#include "engine/ops/cpu/half_int.h"
#include "engine/weights/weights.h"
#include "engine/weights/weights_int.h"
#include "recipes/architecture/decoder.h"
#include "recipes/fields/fields.h"
#include "recipes/fields/values.h"

/* export_tensors: writes the files of tensors: every parameter once, in the order of the model's
 * table, without its padding. */

/* Whether a parameter is written: an adapter for PEFT, its base if it is merged, all of another model. */
static bool is_written(const dt_weights_exporter *e, const dt_param *param)
{
    return e->options->peft ? !param->in_base : !e->options->merge || param->in_base;
}

/* A parameter as it will be written. */
typedef struct tensor {
    const char *name;
    const dt_published_tensor *row;
    int part;                  /* above 0: follows part 0 of the same tensor */
    dt_weights_joined joined;  /* of A or B */
    dt_checkpoint_shape shape; /* shape of the parameter in dtrun's layout */
    int64_t dim[DT_PARAM_DIMS];
    int64_t bytes;
    int64_t file; /* number of the file, from 0 */
} tensor;

/* A and B of a part of one of theirs: A are below each other, B is a block on a diagonal. */
static dt_status describe_joined(tensor *out, dt_weights_exporter *e, const dt_param *param,
                                 dt_error *err)
{
    dt_published_tensor all;
    dt_status st = DT_OK;

    DT_TRY(dt_weights_join_adapter(&out->joined, e, param, err));
    if (out->joined.parts == 1)
        return DT_OK;
    all = (dt_published_tensor){.part = out->joined.part, .parts = out->joined.parts};
    out->part = out->joined.part;
    out->dim[0] = dt_weights_part_rows(param, &all, all.parts);
    if (out->joined.diagonal) {
        out->dim[1] *= out->joined.parts;
        out->bytes *= out->joined.parts;
    }
out:
    return st;
}

static dt_status describe(tensor *out, dt_weights_exporter *e, const dt_param *param, dt_error *err)
{
    out->name = dt_weights_export_name(&out->row, e, param->name);
    if (out->name == NULL)
        return DT_FAIL(err, DT_ERR_RECIPE, "a model of type '%s' has no '%s'",
                       e->family->model_type, param->name);
    out->shape = dt_checkpoint_shape_of(param);
    for (int i = 0; i < out->shape.ndim; i++)
        out->dim[i] = out->shape.dim[out->row->transposed ? out->shape.ndim - 1 - i : i];
    out->part = out->row->part;
    if (out->row->parts > 0)
        out->dim[0] = dt_weights_part_rows(param, out->row, out->row->parts);
    out->bytes = out->shape.elems * (int64_t)dt_dtype_bytes(e->options->dtype);
    return describe_joined(out, e, param, err);
}

/* Assign tensors to files: start a new file when the current one would become too large. The parts of one tensor are in
 * one file, in their order. */
static dt_status lay_out(tensor *tensors, dt_weights_exporter *e, dt_error *err)
{
    int64_t in_file = 0, file = 0;
    dt_status st = DT_OK;

    for (int i = 0; i < e->model->param_count; i++) {
        tensors[i].file = -1;
        if (!is_written(e, &e->model->params[i]))
            continue;
        DT_TRY(describe(&tensors[i], e, &e->model->params[i], err));
        if (in_file > 0 && !e->options->peft && tensors[i].part == 0 &&
            in_file + tensors[i].bytes > e->options->file_bytes) {
            in_file = 0;
            file++;
        }
        in_file += tensors[i].bytes;
        tensors[i].file = file;
        e->result->bytes += tensors[i].bytes;
        e->result->parameters += tensors[i].shape.elems;
    }
    e->result->files = file + 1;
out:
    return st;
}

static const char *file_name(dt_weights_exporter *e, int64_t file)
{
    if (e->options->peft)
        return DT_PEFT_MODEL;
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

/* Rows of B as its block of the diagonal: zeros before and after them. */
static void spread(float *out, const float *in, const tensor *target)
{
    int64_t columns = target->shape.dim[1], wide = columns * target->joined.parts;

    memset(out, 0, (size_t)(target->shape.dim[0] * wide) * sizeof(*out));
    for (int64_t r = 0; r < target->shape.dim[0]; r++)
        memcpy(out + r * wide + target->joined.part * columns, in + r * columns,
               (size_t)columns * sizeof(*out));
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

static dt_status check_range(const dt_weights_exporter *e, const tensor *target,
                             const float *values, dt_error *err)
{
    for (int64_t i = 0; i < target->shape.elems; i++) {
        if (!isfinite(values[i]))
            return DT_FAIL(err, DT_ERR_CORRUPT, "'%s': '%s' contains %s: the run diverged",
                           e->options->checkpoint, target->name,
                           isnan(values[i]) ? "NaN" : "an infinity");
        if (e->options->dtype == DT_F16 && fabsf(values[i]) >= 65520.0F)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "'%s' contains %g, which fp16 cannot represent: export as bf16 or fp32",
                           target->name, (double)values[i]);
    }
    return DT_OK;
}

static dt_status write_tensor(int fd, dt_weights_exporter *e, int param, const tensor *target,
                              float *values, float *turned, dt_error *err)
{
    int64_t elems = target->shape.elems;
    float *out = values;
    dt_status st = DT_OK;

    DT_TRY(e->base != NULL
               ? dt_weights_read_merged(values, e, param, err)
               : dt_checkpoint_load_param(e->checkpoint, &e->model->params[param], values, err));
    DT_TRY(check_range(e, target, values, err));
    if (target->row->transposed) {
        turn(turned, values, target->shape.dim[0], target->shape.dim[1]);
        out = turned;
    }
    if (target->joined.diagonal) {
        spread(turned, values, target);
        out = turned;
        elems *= target->joined.parts;
    }
    narrow(out, e->options->dtype, elems);
    DT_TRY(dt_file_write_all(fd, out, (size_t)target->bytes, err));
out:
    return st;
}

/* --- files */

static dt_status write_header(int fd, const dt_weights_exporter *e, const tensor *tensors,
                              int64_t file, dt_error *err)
{
    dt_safetensors_writer writer = {0};
    dt_status st = DT_OK;
    dt_strbuf header;

    dt_strbuf_init(&header);
    DT_TRY(dt_safetensors_writer_init(&writer, err));
    for (int i = 0; i < e->model->param_count; i++)
        if (tensors[i].file == file && tensors[i].part == 0)
            dt_safetensors_writer_add(&writer, tensors[i].name, e->options->dtype, tensors[i].dim,
                                      tensors[i].shape.ndim);
    dt_safetensors_writer_end(&header, &writer);
    DT_TRY(dt_file_write_all(fd, header.data, header.length, err));
out:
    dt_safetensors_writer_release(&writer);
    dt_strbuf_release(&header);
    return st;
}

static dt_status write_file(dt_weights_exporter *e, const tensor *tensors, int64_t file,
                            float *values, float *turned, dt_error *err)
{
    const char *name = file_name(e, file);
    int fd = -1;
    dt_status st = DT_OK, closed;

    if (name == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a name");
    DT_TRY(dt_weights_export_open(&fd, e, name, err));
    DT_TRY(write_header(fd, e, tensors, file, err));
    for (int i = 0; i < e->model->param_count; i++)
        if (tensors[i].file == file)
            DT_TRY(write_tensor(fd, e, i, &tensors[i], values, turned, err));
out:
    if (fd >= 0) {
        closed = dt_weights_export_close(fd, e, st == DT_OK ? err : NULL);
        st = st == DT_OK ? closed : st;
    }
    return st;
}

static dt_status write_index(dt_weights_exporter *e, const tensor *tensors, dt_error *err)
{
    json_t *map = json_object(), *index;
    dt_status st;

    for (int i = 0; i < e->model->param_count; i++)
        if (tensors[i].file >= 0)
            json_object_set_new(map, tensors[i].name, json_string(file_name(e, tensors[i].file)));
    index = json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)e->result->bytes,
                      "weight_map", map);
    st = dt_weights_export_put_json(e, DT_HUGGINGFACE_INDEX, index, err);
    json_decref(index);
    return st;
}

/* Write the files of tensors, and their index if there are several. */
static dt_status weights_export_tensors(dt_weights_exporter *e, dt_error *err)
{
    tensor *tensors =
        dt_arena_alloc_array(&e->arena, (size_t)e->model->param_count, sizeof(*tensors));
    float *values = NULL, *turned = NULL;
    int64_t largest = 0;
    dt_status st = DT_OK;

    DT_TRY(lay_out(tensors, e, err));
    for (int i = 0; i < e->model->param_count; i++)
        largest = e->model->params[i].elems > largest ? e->model->params[i].elems : largest;
    values = malloc((size_t)largest * sizeof(*values));
    turned = malloc((size_t)largest * DT_LORA_JOINED_MOST * sizeof(*turned));
    if (values == NULL || turned == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a parameter of %lld elements",
                 (long long)largest);
    for (int64_t file = 0; file < e->result->files; file++)
        DT_TRY(write_file(e, tensors, file, values, turned, err));
    if (e->result->files > 1)
        DT_TRY(write_index(e, tensors, err));
out:
    free(values);
    free(turned);
    return st;
}

/* --- the checkpoint and its model */

/* Lock the checkpoint, so that the run does not prune it meanwhile. */
static dt_status hold(int *held, const char *path, dt_error *err)
{
    *held = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*held < 0 || flock(*held, LOCK_SH) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    return DT_OK;
}

static dt_status open_model(dt_weights_exporter *e, dt_error *err)
{
    const char *path = e->options->checkpoint;
    const dt_checkpoint_info *info;
    dt_model_config config;
    dt_status st = DT_OK;

    DT_TRY(hold(&e->held, path, err));
    DT_TRY(dt_checkpoint_open(&e->checkpoint, path, err));
    info = dt_checkpoint_get_info(e->checkpoint);
    DT_TRY(dt_recipe_from_json(&e->recipe, info->recipe, &e->arena, err));
    DT_TRY(dt_huggingface_family(&e->family, &e->recipe, err));
    DT_TRY(dt_tokenizer_from_json(&e->tokenizer, info->tokenizer, err));
    DT_TRY(dt_tokenizer_load(e->tokenizer, path, err));
    (void)dt_tokenizer_set_end_of_text(e->tokenizer, &e->recipe);
    e->vocab = e->recipe.model.vocab > 0 ? e->recipe.model.vocab : dt_tokenizer_vocab(e->tokenizer);
    DT_TRY(dt_config_train(&config, &e->recipe, e->vocab, err));
    DT_TRY(dt_model_describe(&e->model, &config, err));
    DT_TRY(dt_weights_open_base(e, info, err));
    e->result->step = info->step;
    snprintf(e->result->model_type, sizeof(e->result->model_type), "%s", e->family->model_type);
out:
    return st;
}

/* --- the folder */

static bool is_empty(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    bool empty = folder != NULL;

    while (empty && (entry = readdir(folder)) != NULL)
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    if (folder != NULL)
        closedir(folder);
    return empty;
}

static dt_status begin(dt_weights_exporter *e, dt_error *err)
{
    const char *output = e->options->output;
    size_t length = strlen(output);
    dt_status st = DT_OK;

    while (length > 1 && output[length - 1] == '/')
        length--;
    if (dt_file_exists(output) && !is_empty(output))
        DT_THROW(err, DT_ERR_USAGE, "'%s' already exists and is not empty: name another folder",
                 output);
    dt_strbuf_add(&e->final, output, length);
    dt_strbuf_add_fmt(&e->folder, "%s.partial-%d", e->final.data, (int)getpid());
    if (mkdir(e->folder.data, 0777) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot make '%s': %s", e->folder.data, strerror(errno));
    e->begun = true;
out:
    return st;
}

static dt_status finish(const dt_weights_exporter *e, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_file_sync_dir(e->folder.data, err));
    DT_TRY(dt_file_name(e->folder.data, e->final.data, true, err));
out:
    return st;
}

dt_status dt_weights_export(dt_weights_export_result *out, const dt_weights_export_options *options,
                            dt_error *err)
{
    dt_weights_exporter e = {.options = options, .result = out, .held = -1};
    dt_status st = DT_OK;

    *out = (dt_weights_export_result){0};
    dt_arena_init(&e.arena, 0);
    dt_strbuf_init(&e.final);
    dt_strbuf_init(&e.folder);
    dt_strbuf_init(&e.path);
    DT_TRY(open_model(&e, err));
    DT_TRY(begin(&e, err));
    DT_TRY(dt_weights_export_files(&e, err));
    if (options->accept != NULL)
        DT_TRY(options->accept(e.folder.data, err));
    DT_TRY(weights_export_tensors(&e, err));
    if (options->merge && options->check != NULL)
        DT_TRY(options->check(options->self, e.folder.data, err));
    DT_TRY(finish(&e, err));
    e.begun = false;
out:
    if (e.begun)
        (void)dt_file_remove_tree(e.folder.data, NULL);
    dt_model_description_free(e.model);
    dt_tokenizer_free(e.tokenizer);
    dt_weights_close(e.base);
    dt_checkpoint_close(e.checkpoint);
    if (e.held >= 0)
        close(e.held);
    dt_strbuf_release(&e.final);
    dt_strbuf_release(&e.folder);
    dt_strbuf_release(&e.path);
    dt_arena_release(&e.arena);
    return st;
}
