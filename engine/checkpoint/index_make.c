#include "engine/checkpoint/index.h"

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
        json_object_set_new(tensors, model->params[i].name, tensor_make(&model->params[i]));
    for (int64_t r = 0; r < fragment_count; r++) {
        json_array_extend(files, json_object_get(fragments[r], "files"));
        merge(tensors, fragments[r]);
    }
    json_object_set_new(out, "files", files);
    json_object_set_new(out, "tensors", tensors);
    return out;
}
