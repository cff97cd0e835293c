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
#include "recipes/fields/fields.h"
#include "recipes/fields/values.h"

/* export_files: writes the files of an export that are not tensors. The tokens at which dtrun ends a text become the
 * end tokens of all files, so that generate() of transformers ends where dtrun ends; other fields are carried along
 * from the files that the run started from.
 */

#define ORIGIN_MOST ((size_t)256 << 20) /* a tokenizer.json of a large vocabulary has 30 MB */

typedef struct ends {
    json_t *ids;   /* array: model.end_ids, or the token that ends documents; can be empty */
    int64_t begin; /* token that the tokenizer puts before a text; -1: none, or several */
} ends;

static void find_ends(ends *out, const dt_weights_exporter *e)
{
    const dt_string_list *ids = &e->recipe.model.end_ids;
    int32_t end = dt_tokenizer_end_of_text(e->tokenizer);
    dt_bpe_around around = dt_tokenizer_around(e->tokenizer);
    double id;

    *out = (ends){.ids = json_array(), .begin = -1};
    for (int64_t i = 0; i < ids->count; i++)
        if (dt_text_number(&id, ids->items[i]) && (int64_t)id < e->vocab)
            json_array_append_new(out->ids, json_integer((json_int_t)id));
    if (ids->count == 0 && end >= 0)
        json_array_append_new(out->ids, json_integer(end));
    if (around.before_count == 1)
        out->begin = around.before[0];
}

/* Sets eos_token_id as one id or a list, and bos_token_id if the file has none. */
static void put_ids(json_t *file, const ends *ends_of_text)
{
    size_t count = json_array_size(ends_of_text->ids);
    const json_t *begin = json_object_get(file, "bos_token_id");

    if (count > 0)
        json_object_set(file, "eos_token_id",
                        count == 1 ? json_array_get(ends_of_text->ids, 0) : ends_of_text->ids);
    if (ends_of_text->begin >= 0 && (begin == NULL || json_is_null(begin)))
        json_object_set_new(file, "bos_token_id", json_integer(ends_of_text->begin));
}

/* --- the files that the run started from */

/* Reads a JSON file of a folder; *out is NULL if the folder (NULL: none) lacks it. */
static dt_status read_json(json_t **out, dt_weights_exporter *e, const char *folder,
                           const char *name, dt_error *err)
{
    const char *path;

    *out = NULL;
    if (folder == NULL)
        return DT_OK;
    path = dt_arena_printf(&e->arena, "%s/%s", folder, name);
    return dt_file_exists(path) ? dt_json_read_foreign(out, path, ORIGIN_MOST, err) : DT_OK;
}

static dt_status weights_export_put(dt_weights_exporter *e, const char *name, const char *bytes,
                                    size_t length, dt_error *err);

/* Copies a file from a folder (NULL: none), if it has it: *found. */
static dt_status copy_from(bool *found, dt_weights_exporter *e, const char *folder,
                           const char *name, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf path, text;

    *found = false;
    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    if (folder == NULL)
        goto out;
    dt_strbuf_add_fmt(&path, "%s/%s", folder, name);
    if (!dt_file_exists(path.data))
        goto out;
    DT_TRY(dt_file_read(&text, path.data, ORIGIN_MOST, err));
    DT_TRY(weights_export_put(e, name, text.data, text.length, err));
    *found = true;
out:
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

/* --- config.json and generation_config.json */

static dt_status weights_export_put_json(dt_weights_exporter *e, const char *name,
                                         const json_t *json, dt_error *err);

static dt_status write_configs(dt_weights_exporter *e, const ends *ends_of_text, dt_error *err)
{
    static const char *const types[] = {
        [DT_F32] = "float32", [DT_BF16] = "bfloat16", [DT_F16] = "float16"};
    static const char *const carried[] = {"bos_token_id", "eos_token_id", "pad_token_id"};
    json_t *like = NULL, *config = NULL, *generation = NULL;
    dt_status st = DT_OK;

    DT_TRY(read_json(&like, e, e->options->origin, DT_HUGGINGFACE_CONFIG, err));
    DT_TRY(dt_huggingface_write(&config, &e->recipe, e->vocab, like, err));
    put_ids(config, ends_of_text);
    /* newer versions write "dtype"; all versions read "torch_dtype" */
    json_object_del(config, "dtype");
    json_object_set_new(config, "torch_dtype", json_string(types[e->options->dtype]));
    DT_TRY(weights_export_put_json(e, DT_HUGGINGFACE_CONFIG, config, err));
    DT_TRY(read_json(&generation, e, e->options->origin, DT_HUGGINGFACE_GENERATION, err));
    if (generation ==
        NULL) { /* this file, once there, is all that transformers reads for generation */
        generation = json_pack("{s:b}", "_from_model_config", 1);
        for (size_t i = 0; i < sizeof(carried) / sizeof(carried[0]); i++)
            if (json_is_integer(json_object_get(config, carried[i])))
                json_object_set(generation, carried[i], json_object_get(config, carried[i]));
    }
    put_ids(generation, ends_of_text);
    DT_TRY(weights_export_put_json(e, DT_HUGGINGFACE_GENERATION, generation, err));
out:
    json_decref(like);
    json_decref(config);
    json_decref(generation);
    return st;
}

/* --- the tokenizer */

/* Returns the text of a token; NULL: it is not UTF-8, so that no file can name it. */
static json_t *text_of(const dt_weights_exporter *e, int64_t id)
{
    dt_strbuf text;
    json_t *out;

    dt_strbuf_init(&text);
    dt_tokenizer_decode(&text, e->tokenizer, (int32_t)id);
    out = json_stringn(text.data, text.length);
    dt_strbuf_release(&text);
    return out;
}

/* Whether a token of a file, "</s>" or {"content": "</s>"}, is an end. */
static bool names_end(const dt_weights_exporter *e, const json_t *token, const json_t *ids)
{
    bool same = false;

    token = json_is_object(token) ? json_object_get(token, "content") : token;
    for (size_t i = 0; i < json_array_size(ids) && !same; i++) {
        json_t *text = text_of(e, json_integer_value(json_array_get(ids, i)));

        same = text != NULL && json_equal(text, token);
        json_decref(text);
    }
    return same;
}

/* Sets eos_token unless it is an end already: *changed. */
static void put_end(json_t *file, bool *changed, const dt_weights_exporter *e,
                    const ends *ends_of_text)
{
    json_t *text;

    *changed = json_array_size(ends_of_text->ids) > 0 &&
               !names_end(e, json_object_get(file, "eos_token"), ends_of_text->ids);
    if (!*changed)
        return;
    text = text_of(e, json_integer_value(json_array_get(ends_of_text->ids, 0)));
    *changed = text != NULL;
    if (text != NULL)
        json_object_set_new(file, "eos_token", text);
}

/* Writes tokenizer_config.json or special_tokens_map.json of the origin, with the run's end token. */
static dt_status write_special(bool *found, dt_weights_exporter *e, const char *name,
                               const ends *ends_of_text, dt_error *err)
{
    json_t *file = NULL;
    dt_status st = DT_OK;
    bool changed = false;

    *found = false;
    if (dt_tokenizer_bpe(e->tokenizer) != NULL) {
        DT_TRY(read_json(&file, e, e->options->origin, name, err));
        if (json_is_object(file))
            put_end(file, &changed, e, ends_of_text);
    }
    if (changed) {
        DT_TRY(weights_export_put_json(e, name, file, err));
        *found = true;
    } else {
        DT_TRY(copy_from(found, e, e->options->origin, name, err));
    }
out:
    json_decref(file);
    return st;
}

/* Writes a tokenizer_config.json for a tokenizer.json without one: AutoTokenizer would take the class from the model's
 * type, which replaces parts of the tokenizer. */
static dt_status write_tokenizer_config(dt_weights_exporter *e, const ends *ends_of_text,
                                        dt_error *err)
{
    json_t *config = json_pack("{s:s, s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
                               "clean_up_tokenization_spaces", 0);
    bool changed;
    dt_status st;

    if (dt_tokenizer_bpe(e->tokenizer) != NULL) {
        put_end(config, &changed, e, ends_of_text);
        if (ends_of_text->begin >= 0)
            json_object_set_new(config, "bos_token", text_of(e, ends_of_text->begin));
    }
    st = weights_export_put_json(e, "tokenizer_config.json", config, err);
    json_decref(config);
    return st;
}

/* Writes a tokenizer of characters or bytes, for which there is no file to copy: *made. */
static dt_status write_plain_words(bool *made, dt_weights_exporter *e, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    *made = dt_tokenizer_to_huggingface(&text, e->tokenizer);
    if (*made)
        DT_TRY(weights_export_put(e, "tokenizer.json", text.data, text.length, err));
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status write_words(dt_weights_exporter *e, const ends *ends_of_text, dt_error *err)
{
    static const char *const others[] = {"tokenizer.model",     "vocab.json",
                                         "merges.txt",          "added_tokens.json",
                                         "chat_template.jinja", "chat_template.json"};
    bool found, has_words, has_config;
    dt_status st = DT_OK;

    DT_TRY(copy_from(&has_words, e, e->options->checkpoint, "tokenizer.json", err));
    if (!has_words)
        DT_TRY(copy_from(&has_words, e, e->options->origin, "tokenizer.json", err));
    if (!has_words)
        DT_TRY(write_plain_words(&has_words, e, err));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        DT_TRY(copy_from(&found, e, e->options->origin, others[i], err));
    DT_TRY(dt_weights_export_templates(e, err));
    DT_TRY(write_special(&found, e, "special_tokens_map.json", ends_of_text, err));
    DT_TRY(write_special(&has_config, e, "tokenizer_config.json", ends_of_text, err));
    if (has_words && !has_config)
        DT_TRY(write_tokenizer_config(e, ends_of_text, err));
out:
    return st;
}

static dt_status write_adapter_config(dt_weights_exporter *e, dt_error *err)
{
    json_t *config = dt_weights_adapter_config(e);
    dt_status st;

    if (config == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for '%s'", DT_PEFT_CONFIG);
    st = weights_export_put_json(e, DT_PEFT_CONFIG, config, err);
    json_decref(config);
    return st;
}

/* Write the configs and the tokenizer's files. */
static dt_status weights_export_files(dt_weights_exporter *e, dt_error *err)
{
    dt_status st = DT_OK;
    ends ends_of_text;

    find_ends(&ends_of_text, e);
    DT_TRY(e->options->peft ? write_adapter_config(e, err) : write_configs(e, &ends_of_text, err));
    DT_TRY(write_words(e, &ends_of_text, err));
out:
    json_decref(ends_of_text.ids);
    return st;
}

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
    dt_checkpoint_shape shape; /* shape of the parameter in dtrun's layout */
    int64_t dim[DT_PARAM_DIMS];
    int64_t bytes;
    int64_t file; /* number of the file, from 0 */
} tensor;

static dt_status describe(tensor *out, dt_weights_exporter *e, const dt_param *param, dt_error *err)
{
    out->name = dt_weights_export_name(&out->row, e, param->name);
    if (out->name == NULL)
        return DT_FAIL(err, DT_ERR_RECIPE, "a model of type '%s' has no '%s'",
                       e->family->model_type, param->name);
    out->shape = dt_checkpoint_shape_of(param);
    for (int i = 0; i < out->shape.ndim; i++)
        out->dim[i] = out->shape.dim[out->row->transposed ? out->shape.ndim - 1 - i : i];
    out->bytes = out->shape.elems * (int64_t)dt_dtype_bytes(e->options->dtype);
    return DT_OK;
}

/* Assign tensors to files: start a new file when the current one would become too large. */
static dt_status lay_out(tensor *tensors, dt_weights_exporter *e, dt_error *err)
{
    int64_t in_file = 0, file = 0;
    dt_status st = DT_OK;

    for (int i = 0; i < e->model->param_count; i++) {
        tensors[i].file = -1;
        if (!is_written(e, &e->model->params[i]))
            continue;
        DT_TRY(describe(&tensors[i], e, &e->model->params[i], err));
        if (in_file > 0 && !e->options->peft &&
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
    narrow(out, e->options->dtype, target->shape.elems);
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
        if (tensors[i].file == file)
            dt_safetensors_writer_add(&writer, tensors[i].name, e->options->dtype, tensors[i].dim,
                                      tensors[i].shape.ndim);
    dt_safetensors_writer_end(&header, &writer);
    DT_TRY(dt_file_write_all(fd, header.data, header.length, err));
out:
    dt_safetensors_writer_release(&writer);
    dt_strbuf_release(&header);
    return st;
}

static dt_status weights_export_open(int *fd, dt_weights_exporter *e, const char *name,
                                     dt_error *err);

static dt_status weights_export_close(int fd, const dt_weights_exporter *e, dt_error *err);

static dt_status write_file(dt_weights_exporter *e, const tensor *tensors, int64_t file,
                            float *values, float *turned, dt_error *err)
{
    const char *name = file_name(e, file);
    int fd = -1;
    dt_status st = DT_OK, closed;

    if (name == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a name");
    DT_TRY(weights_export_open(&fd, e, name, err));
    DT_TRY(write_header(fd, e, tensors, file, err));
    for (int i = 0; i < e->model->param_count; i++)
        if (tensors[i].file == file)
            DT_TRY(write_tensor(fd, e, i, &tensors[i], values, turned, err));
out:
    if (fd >= 0) {
        closed = weights_export_close(fd, e, st == DT_OK ? err : NULL);
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
    st = weights_export_put_json(e, DT_HUGGINGFACE_INDEX, index, err);
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
    turned = malloc((size_t)largest * sizeof(*turned));
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

/* Create a file in the folder; the caller owns fd until weights_export_close. */
static dt_status weights_export_open(int *fd, dt_weights_exporter *e, const char *name,
                                     dt_error *err)
{
    dt_strbuf_reset(&e->path);
    dt_strbuf_add_fmt(&e->path, "%s/%s", e->folder.data, name);
    *fd = open(e->path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot make '%s': %s", e->path.data, strerror(errno));
    return DT_OK;
}

static dt_status weights_export_close(int fd, const dt_weights_exporter *e, dt_error *err)
{
    int failed = fsync(fd);

    if (close(fd) != 0 || failed != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", e->path.data, strerror(errno));
    return DT_OK;
}

static dt_status weights_export_put(dt_weights_exporter *e, const char *name, const char *bytes,
                                    size_t length, dt_error *err)
{
    int fd = -1;
    dt_status st = DT_OK, closed;

    DT_TRY(weights_export_open(&fd, e, name, err));
    st = dt_file_write_all(fd, bytes, length, err);
    closed = weights_export_close(fd, e, st == DT_OK ? err : NULL);
    st = st == DT_OK ? closed : st;
out:
    return st;
}

static dt_status weights_export_put_json(dt_weights_exporter *e, const char *name,
                                         const json_t *json, dt_error *err)
{
    dt_strbuf whole, text;
    dt_status st;

    dt_strbuf_init(&whole);
    dt_strbuf_init(&text);
    dt_json_write_pretty(&whole, json);
    dt_json_shorten(&text, whole.data);
    dt_strbuf_add_char(&text, '\n');
    st = weights_export_put(e, name, text.data, text.length, err);
    dt_strbuf_release(&whole);
    dt_strbuf_release(&text);
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
    DT_TRY(weights_export_files(&e, err));
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
