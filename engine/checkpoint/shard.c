#include "engine/checkpoint/checkpoint_int.h"
#include "engine/checkpoint/name.h"

#include <stdio.h>

#include "engine/checkpoint/safetensors.h"

/* A file being written; everything is borrowed. */
typedef struct shard {
    const dt_model *model;
    const dt_state_chunk *chunks;
    int count;
    int first, last; /* range of the tensor kinds in this file */
    const char *name;
    json_t *files, *tensors; /* "files" and "tensors" of the fragment */
} shard;

static dt_checkpoint_shape shape_of(const shard *file, const dt_state_chunk *chunk)
{
    return dt_checkpoint_shape_of(&file->model->params[chunk->param]);
}

static dt_slice stored_slice(const shard *file, const dt_state_chunk *chunk)
{
    dt_checkpoint_shape shape = shape_of(file, chunk);

    return dt_checkpoint_shape_clip(&shape, &chunk->slice);
}

/* Append the key of a slice: "wte.weight.m[0:512,64:128][100:200]": the box along each dimension,
 * and the range within it; each is omitted if it covers everything. */
static void add_key(dt_strbuf *out, const char *name, int kind, const dt_slice *slice,
                    const dt_box *whole)
{
    dt_strbuf_add_str(out, name);
    if (kind != DT_CHECKPOINT_VALUE)
        dt_strbuf_add_fmt(out, ".%s", dt_checkpoint_kind_name(kind));
    for (int d = 0; d < whole->ndim && !dt_box_equal(&slice->box, whole); d++)
        dt_strbuf_add_fmt(out, "%s%lld:%lld%s", d == 0 ? "[" : ",", (long long)slice->box.start[d],
                          (long long)(slice->box.start[d] + slice->box.size[d]),
                          d == whole->ndim - 1 ? "]" : "");
    if (slice->elems != dt_box_elems(&slice->box))
        dt_strbuf_add_fmt(out, "[%lld:%lld]", (long long)slice->start_elems,
                          (long long)(slice->start_elems + slice->elems));
}

/* The list in the fragment that a piece is added to. */
static json_t *list_of(const shard *file, const char *name, const char *kind_name)
{
    json_t *tensor = json_object_get(file->tensors, name), *list;

    if (tensor == NULL) {
        tensor = json_object();
        json_object_set_new(file->tensors, name, tensor);
    }
    list = json_object_get(tensor, kind_name);
    if (list == NULL) {
        list = json_array();
        json_object_set_new(tensor, kind_name, list);
    }
    return list;
}

static void add_piece(const shard *file, dt_safetensors_writer *writer, const dt_state_chunk *chunk,
                      int kind, const dt_slice *slice)
{
    const char *name = file->model->params[chunk->param].name;
    dt_checkpoint_shape shape = shape_of(file, chunk);
    dt_box whole = dt_checkpoint_shape_box(&shape);
    bool all = slice->elems == dt_box_elems(&slice->box);
    dt_strbuf key;

    dt_strbuf_init(&key);
    add_key(&key, name, kind, slice, &whole);
    dt_safetensors_writer_add(writer, key.data, DT_F32, all ? slice->box.size : &slice->elems,
                              all ? slice->box.ndim : 1);
    json_array_append_new(list_of(file, name, dt_checkpoint_kind_name(kind)),
                          dt_checkpoint_piece_make(file->name, key.data, slice, &whole));
    dt_strbuf_release(&key);
}

/* Write the data, in the order of the header. */
static dt_status write_data(const shard *file, dt_checkpoint_sink *sink, dt_error *err)
{
    dt_status st = DT_OK;

    for (int i = 0; i < file->count; i++) {
        const dt_state_chunk *chunk = &file->chunks[i];
        int64_t elems = stored_slice(file, chunk).elems;

        for (int kind = file->first; kind <= file->last; kind++)
            if (elems > 0 && dt_state_chunk_data(chunk, kind) != NULL)
                DT_TRY(dt_checkpoint_sink_write(sink, dt_state_chunk_data(chunk, kind),
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
        dt_slice slice = stored_slice(file, &file->chunks[i]);

        for (int kind = file->first; kind <= file->last; kind++)
            if (slice.elems > 0 && dt_state_chunk_data(&file->chunks[i], kind) != NULL)
                add_piece(file, &writer, &file->chunks[i], kind, &slice);
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
    snprintf(name, sizeof(name), DT_CHECKPOINT_OPTIMIZER "%lld.safetensors",
             (long long)state->comm->rank);
    file.first = DT_CHECKPOINT_STATE;
    file.last = DT_CHECKPOINT_KINDS - 1;
    DT_TRY(write_file(&file, io, directory, err));
out:
    return st;
}

dt_status dt_checkpoint_beside_write(json_t *fragment, const dt_checkpoint_io *io,
                                     const char *directory, const dt_checkpoint_beside *file,
                                     dt_error *err)
{
    dt_status st = DT_OK;
    char digest[DT_DIGEST_SIZE];
    dt_strbuf path;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", directory, file->name);
    DT_TRY(dt_checkpoint_sink_put(io, path.data, file->bytes, file->length, err));
    dt_digest_of(digest, file->bytes, file->length);
    json_array_append_new(json_object_get(fragment, "files"),
                          json_pack("{s:s, s:I, s:s}", "name", file->name, "bytes",
                                    (json_int_t)file->length, "xxh3_128", digest));
out:
    dt_strbuf_release(&path);
    return st;
}
