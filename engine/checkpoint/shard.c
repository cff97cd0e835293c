#include "engine/checkpoint/shard.h"

#include <stdio.h>

#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/sink.h"

#include "base/banned.h"

#define KEY_SIZE 128 /* a parameter's name, ".m", and two numbers */

/* One file in the making; everything is borrowed. */
typedef struct shard {
    const dt_model *model;
    const dt_state_chunk *chunks;
    int count;
    dt_checkpoint_kind first, last; /* the kinds that go into this file */
    const char *name;
    json_t *files, *tensors; /* of the fragment */
} shard;

static const float *data_of(const dt_state_chunk *chunk, dt_checkpoint_kind kind)
{
    const float *const data[] = {chunk->value, chunk->m, chunk->v};

    return data[kind];
}

/* Elements of a chunk that are stored: none of the padding. */
static int64_t stored_elems(const dt_model *model, const dt_state_chunk *chunk)
{
    int64_t left =
        dt_checkpoint_shape_of(model, &model->params[chunk->param]).elems - chunk->start_elems;

    return left <= 0 ? 0 : chunk->elems < left ? chunk->elems : left;
}

static void add_piece(const shard *file, dt_safetensors_writer *writer, const dt_state_chunk *chunk,
                      dt_checkpoint_kind kind, int64_t elems)
{
    const dt_param *param = &file->model->params[chunk->param];
    dt_checkpoint_shape shape = dt_checkpoint_shape_of(file->model, param);
    const char *kind_name = dt_checkpoint_kind_name(kind);
    json_t *tensor = json_object_get(file->tensors, param->name), *list;
    char key[KEY_SIZE], slice[48] = "";
    bool whole = elems == shape.elems;

    if (!whole)
        snprintf(slice, sizeof(slice), "[%lld:%lld]", (long long)chunk->start_elems,
                 (long long)(chunk->start_elems + elems));
    snprintf(key, sizeof(key), "%s%s%s%s", param->name, kind == DT_CHECKPOINT_VALUE ? "" : ".",
             kind == DT_CHECKPOINT_VALUE ? "" : kind_name, slice);
    dt_safetensors_writer_add(writer, key, whole ? shape.dim : &elems, whole ? shape.ndim : 1);
    if (tensor == NULL) {
        tensor = json_object();
        json_object_set_new(file->tensors, param->name, tensor);
    }
    list = json_object_get(tensor, kind_name);
    if (list == NULL) {
        list = json_array();
        json_object_set_new(tensor, kind_name, list);
    }
    json_array_append_new(list,
                          json_pack("{s:s, s:s, s:I, s:I}", "file", file->name, "key", key, "start",
                                    (json_int_t)chunk->start_elems, "elems", (json_int_t)elems));
}

/* Header first, then the data in the same order. */
static dt_status write_data(const shard *file, dt_checkpoint_sink *sink, dt_error *err)
{
    dt_status st = DT_OK;

    for (int i = 0; i < file->count; i++) {
        const dt_state_chunk *chunk = &file->chunks[i];
        int64_t elems = stored_elems(file->model, chunk);

        for (dt_checkpoint_kind kind = file->first; kind <= file->last; kind++)
            if (elems > 0 && data_of(chunk, kind) != NULL)
                DT_TRY(dt_checkpoint_sink_write(sink, data_of(chunk, kind),
                                                (size_t)elems * sizeof(float), err));
    }
out:
    return st;
}

static dt_status write_file(const shard *file, const dt_checkpoint_io *io, const char *directory,
                            dt_error *err)
{
    dt_status st = DT_OK;
    dt_safetensors_writer writer = {0};
    dt_checkpoint_sink sink = {0};
    dt_strbuf path, header;
    char digest[DT_DIGEST_SIZE];

    dt_strbuf_init(&path);
    dt_strbuf_init(&header);
    DT_TRY(dt_safetensors_writer_init(&writer, err));
    for (int i = 0; i < file->count; i++) {
        int64_t elems = stored_elems(file->model, &file->chunks[i]);

        for (dt_checkpoint_kind kind = file->first; kind <= file->last; kind++)
            if (elems > 0 && data_of(&file->chunks[i], kind) != NULL)
                add_piece(file, &writer, &file->chunks[i], kind, elems);
    }
    if (writer.bytes == 0)
        goto out;
    dt_safetensors_writer_end(&header, &writer);
    dt_strbuf_add_fmt(&path, "%s/%s", directory, file->name);
    DT_TRY(dt_checkpoint_sink_open(&sink, io, path.data, err));
    DT_TRY(dt_checkpoint_sink_write(&sink, header.data, header.length, err));
    DT_TRY(write_data(file, &sink, err));
    DT_TRY(dt_checkpoint_sink_finish(&sink, digest, err));
    json_array_append_new(file->files, json_pack("{s:s, s:I, s:s}", "name", file->name, "bytes",
                                                 (json_int_t)sink.bytes, "xxh3_128", digest));
out:
    dt_checkpoint_sink_release(&sink);
    dt_safetensors_writer_release(&writer);
    dt_strbuf_release(&path);
    dt_strbuf_release(&header);
    return st;
}

dt_status dt_checkpoint_shard_write(json_t **fragment, const dt_checkpoint_io *io,
                                    const char *directory, dt_strategy_state *state, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *files = json_array(), *tensors = json_object();
    shard file = {.model = state->model, .files = files, .tensors = tensors};
    char name[64];

    *fragment = json_pack("{s:o, s:o}", "files", files, "tensors", tensors);
    if (*fragment == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a checkpoint's index");
    DT_TRY(state->strategy->export_state(state, &file.chunks, &file.count, err));
    file.name = name;
    snprintf(name, sizeof(name), "model-%lld.safetensors", (long long)state->comm->rank);
    file.first = file.last = DT_CHECKPOINT_VALUE;
    DT_TRY(write_file(&file, io, directory, err));
    snprintf(name, sizeof(name), "optimizer-%lld.safetensors", (long long)state->comm->rank);
    file.first = DT_CHECKPOINT_M;
    file.last = DT_CHECKPOINT_V;
    DT_TRY(write_file(&file, io, directory, err));
out:
    return st;
}
