/* index: parses a checkpoint's index.json, and makes it from the ranks' fragments. */
#include "engine/checkpoint/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/digest.h"

/* --- parsing */

const char *dt_checkpoint_kind_name(int kind)
{
    return kind == DT_CHECKPOINT_VALUE ? "value"
                                       : dt_optimizer_state_name(kind - DT_CHECKPOINT_STATE);
}

const dt_checkpoint_tensor *dt_checkpoint_index_find(const dt_checkpoint_index *index,
                                                     const char *name)
{
    for (int64_t i = 0; i < index->tensor_count; i++)
        if (strcmp(index->tensors[i].name, name) == 0)
            return &index->tensors[i];
    return NULL;
}

/* State of parsing one document. */
typedef struct parser {
    dt_checkpoint_index *out;
    const char *where;
    dt_arena *arena;
    json_t *file_numbers; /* name → number; avoids a quadratic search in a malicious document */
} parser;

bool dt_checkpoint_name_ends(const char *name, const char *tail)
{
    size_t length = strlen(name), tail_length = strlen(tail);

    return length > tail_length && strcmp(name + length - tail_length, tail) == 0;
}

/* Whether `name` is a valid file name: it stays in the directory, and is neither the index nor the
 * marker. */
static bool is_file_name(const char *name)
{
    return strlen(name) < 128 && name[0] != '.' && strchr(name, '/') == NULL &&
           (dt_checkpoint_name_ends(name, DT_CHECKPOINT_TENSORS) ||
            dt_checkpoint_name_ends(name, ".tiktoken") || strcmp(name, "tokenizer.json") == 0 ||
            strcmp(name, "translation.json") == 0);
}

static dt_status file_parse(dt_checkpoint_file *out, const json_t *json, const char *where,
                            dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_json_get_string(&out->name, json, "name", where, err));
    DT_TRY(dt_checkpoint_get_count(&out->bytes, json, "bytes", where, err));
    DT_TRY(dt_json_get_string(&out->digest, json, "xxh3_128", where, err));
    if (!is_file_name(out->name) || strlen(out->digest) != DT_DIGEST_SIZE - 1)
        DT_THROW(err, DT_ERR_CORRUPT, "%s: the name or digest of file '%.80s' is malformed", where,
                 out->name);
out:
    return st;
}

static dt_status files_parse(const parser *in, const json_t *json, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *files, *item;
    void *room;
    size_t i;

    DT_TRY(dt_json_get_array(&files, json, "files", in->where, err));
    room = dt_arena_alloc_array(in->arena, json_array_size(files), sizeof(*in->out->files));
    in->out->files = room;
    json_array_foreach(files, i, item) {
        dt_checkpoint_file *file = &in->out->files[i];

        DT_TRY(file_parse(file, item, in->where, err));
        if (json_object_get(in->file_numbers, file->name) != NULL)
            DT_THROW(err, DT_ERR_CORRUPT, "%s: '%s' is listed twice", in->where, file->name);
        json_object_set_new(in->file_numbers, file->name, json_integer((json_int_t)i));
    }
    in->out->file_count = (int64_t)json_array_size(files);
out:
    return st;
}

static dt_status piece_parse(dt_checkpoint_piece *out, const json_t *json, const parser *in,
                             const dt_box *whole, const char *where, dt_error *err)
{
    dt_status st = DT_OK;
    const char *file;
    const json_t *number;

    DT_TRY(dt_json_get_string(&file, json, "file", where, err));
    DT_TRY(dt_json_get_string(&out->key, json, "key", where, err));
    DT_TRY(dt_checkpoint_slice_parse(&out->slice, json, whole, where, err));
    number = json_object_get(in->file_numbers, file);
    if (number == NULL)
        DT_THROW(err, DT_ERR_CORRUPT, "%s: its file '%.80s' is not listed", where, file);
    out->file = json_integer_value(number);
out:
    return st;
}

static dt_status pieces_parse(dt_checkpoint_tensor *tensor, int kind, const json_t *json,
                              const parser *in, dt_error *err)
{
    dt_status st = DT_OK;
    dt_checkpoint_pieces *pieces = &tensor->pieces[kind];
    dt_box whole = dt_checkpoint_shape_box(&tensor->shape);
    const char *name = dt_checkpoint_kind_name(kind);
    char where[256];
    json_t *list, *item;
    void *room;
    size_t i;

    snprintf(where, sizeof(where), "%.120s: '%.80s' (%s)", in->where, tensor->name, name);
    DT_TRY(dt_json_get_array(&list, json, name, where, err));
    room = dt_arena_alloc_array(in->arena, json_array_size(list), sizeof(*pieces->items));
    pieces->items = room;
    pieces->count = (int64_t)json_array_size(list);
    json_array_foreach(list, i, item)
        DT_TRY(piece_parse(&pieces->items[i], item, in, &whole, where, err));
    if (pieces->count > 0 || kind == DT_CHECKPOINT_VALUE)
        DT_TRY(dt_checkpoint_pieces_cover(pieces, &whole, where, err));
out:
    return st;
}

static dt_status shape_parse(dt_checkpoint_shape *out, const json_t *json, const char *name,
                             const char *where, dt_error *err)
{
    dt_status st = DT_OK;
    const char *dtype;
    json_t *shape, *dim;
    size_t i;

    DT_TRY(dt_json_get_string(&dtype, json, "dtype", where, err));
    DT_TRY(dt_json_get_array(&shape, json, "shape", where, err));
    if (strcmp(dtype, "F32") != 0 || json_array_size(shape) < 1 ||
        json_array_size(shape) > DT_PARAM_DIMS)
        DT_THROW(err, DT_ERR_CORRUPT, "%s: '%s' is not of type F32 with one to %d dimensions",
                 where, name, DT_PARAM_DIMS);
    out->elems = 1;
    for (int d = 0; d < DT_PARAM_DIMS; d++)
        out->dim[d] = 1;
    json_array_foreach(shape, i, dim) {
        out->dim[i] = json_integer_value(dim);
        /* the size in bytes must not overflow either */
        if (out->dim[i] < 1 || __builtin_mul_overflow(out->elems, out->dim[i], &out->elems) ||
            out->elems > INT64_MAX / 8)
            DT_THROW(err, DT_ERR_CORRUPT, "%s: '%s' has an impossible shape", where, name);
    }
    out->ndim = (int)json_array_size(shape);
out:
    return st;
}

static dt_status tensors_parse(const parser *in, const json_t *json, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *tensors, *item;
    const char *name;
    void *room;

    DT_TRY(dt_json_get_object(&tensors, json, "tensors", in->where, err));
    room = dt_arena_alloc_array(in->arena, json_object_size(tensors), sizeof(*in->out->tensors));
    in->out->tensors = room;
    json_object_foreach(tensors, name, item) {
        dt_checkpoint_tensor *tensor = &in->out->tensors[in->out->tensor_count++];

        tensor->name = name;
        DT_TRY(shape_parse(&tensor->shape, item, name, in->where, err));
        for (int kind = 0; kind < DT_CHECKPOINT_KINDS; kind++)
            DT_TRY(pieces_parse(tensor, kind, item, in, err));
    }
out:
    return st;
}

dt_status dt_checkpoint_index_parse(dt_checkpoint_index *out, json_t *json, const char *where,
                                    dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    parser in = {.out = out, .where = where, .arena = arena, .file_numbers = json_object()};

    memset(out, 0, sizeof(*out));
    if (in.file_numbers == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "%s: no memory to read it", where);
    DT_TRY(dt_checkpoint_info_parse(&out->info, json, where, err));
    DT_TRY(files_parse(&in, json, err));
    DT_TRY(tensors_parse(&in, json, err));
out:
    json_decref(in.file_numbers);
    return st;
}

/* --- making */

static json_t *tensor_make(const dt_param *param)
{
    dt_checkpoint_shape shape = dt_checkpoint_shape_of(param);
    json_t *dims = json_array(), *out;

    for (int i = 0; i < shape.ndim; i++)
        json_array_append_new(dims, json_integer(shape.dim[i]));
    out = json_pack("{s:s, s:o}", "dtype", "F32", "shape", dims);
    for (int kind = 0; kind < DT_CHECKPOINT_KINDS; kind++)
        json_object_set_new(out, dt_checkpoint_kind_name(kind), json_array());
    return out;
}

/* Add the pieces of one rank to the tensors. */
static void merge(json_t *tensors, const json_t *fragment)
{
    json_t *pieces = json_object_get(fragment, "tensors"), *of_tensor, *list;
    const char *name, *kind;

    json_object_foreach(pieces, name, of_tensor) {
        json_object_foreach(of_tensor, kind, list)
            json_array_extend(json_object_get(json_object_get(tensors, name), kind), list);
    }
}

json_t *dt_checkpoint_index_make(const dt_checkpoint_info *info, const dt_model *model,
                                 json_t *const *fragments, int64_t fragment_count)
{
    json_t *out = dt_checkpoint_info_make(info), *files = json_array(), *tensors = json_object();

    if (out == NULL || files == NULL || tensors == NULL) {
        json_decref(out);
        json_decref(files);
        json_decref(tensors);
        return NULL;
    }
    for (int i = 0; i < model->param_count; i++)
        if (!model->params[i].in_base)
            json_object_set_new(tensors, model->params[i].name, tensor_make(&model->params[i]));
    for (int64_t r = 0; r < fragment_count; r++) {
        json_array_extend(files, json_object_get(fragments[r], "files"));
        merge(tensors, fragments[r]);
    }
    json_object_set_new(out, "files", files);
    json_object_set_new(out, "tensors", tensors);
    return out;
}
