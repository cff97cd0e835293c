/* find: finds a parameter in published files, by the names that dtrun's have there. */
#include <string.h>

#include "engine/weights/weights_int.h"

/* --- names */

/* Match a name with a pattern, whose '*' stands for digits; returns them. False if it does not
 * match. */
static bool match(const char **number, int *length, const char *pattern, const char *name)
{
    size_t before = strcspn(pattern, "*");

    *number = "";
    *length = 0;
    if (pattern[before] == '\0')
        return strcmp(pattern, name) == 0;
    if (strncmp(pattern, name, before) != 0)
        return false;
    *number = name + before;
    *length = (int)strspn(*number, "0123456789");
    return *length > 0 && strcmp(pattern + before + 1, *number + *length) == 0;
}

bool dt_weights_matches(const char *pattern, const char *name)
{
    const char *number;
    int length;

    return match(&number, &length, pattern, name);
}

const char *dt_weights_name(const dt_published_tensor **row, const dt_published *family,
                            const char *ours, dt_arena *arena)
{
    const char *number;
    int length;

    for (*row = family->tensors; (*row)->ours != NULL; ++*row) {
        int before = (int)strcspn((*row)->theirs, "*");
        const char *after = (*row)->theirs + before;

        if (match(&number, &length, (*row)->ours, ours))
            return dt_arena_printf(arena, "%.*s%.*s%s", before, (*row)->theirs, length, number,
                                   *after == '*' ? after + 1 : after);
    }
    return NULL;
}

const char *dt_weights_full_name(const dt_published *family, const char *theirs, dt_arena *arena)
{
    return theirs[0] == '/' ? theirs + 1 : dt_arena_printf(arena, "%s%s", family->prefix, theirs);
}

/* Returns the length of "model.layers.0.self_attn.q_proj" in "....lora_A.weight"; 0: the name is none of an adapter. */
static size_t stem_length(const char *name)
{
    const char *end = strstr(name, ".lora_");

    return end != NULL ? (size_t)(end - name) : 0;
}

const char *dt_weights_adapter_name(const dt_published *family, const char *ours, dt_arena *arena)
{
    size_t length = stem_length(ours);
    const dt_published_tensor *row;
    const char *theirs;

    if (length == 0)
        return NULL;
    theirs = dt_weights_name(&row, family, dt_arena_printf(arena, "%.*s.weight", (int)length, ours),
                             arena);
    if (theirs == NULL)
        return NULL;
    theirs = dt_weights_full_name(family, theirs, arena);
    return dt_arena_printf(arena, "/base_model.model.%.*s%s",
                           (int)(strlen(theirs) - strlen(".weight")), theirs, ours + length);
}

/* --- tensors */

/* Find a tensor by its exact name. It is an error if two files have it. */
static dt_status look_as(const dt_checkpoint_part **part, dt_safetensors_tensor *tensor,
                         const dt_weights *weights, const char *key, dt_error *err)
{
    dt_safetensors_tensor found;

    *part = NULL;
    for (int64_t i = 0; i < weights->files->files.count; i++) {
        if (!dt_safetensors_look(&found, &weights->parts[i].header, key))
            continue;
        if (*part != NULL)
            return DT_FAIL(err, DT_ERR_RECIPE, "'%s' is in two files: '%s' and '%s'", key,
                           (*part)->path, weights->parts[i].path);
        *part = &weights->parts[i];
        *tensor = found;
    }
    return DT_OK;
}

dt_status dt_weights_look(const dt_checkpoint_part **part, dt_safetensors_tensor *tensor,
                          const char **key, const dt_weights *weights, const char *theirs,
                          dt_error *err)
{
    dt_weights *opened = (dt_weights *)weights; /* its arena stores the name */
    dt_status st = DT_OK;

    *key = dt_weights_full_name(weights->family, theirs, &opened->arena);
    if (*key == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a name");
    DT_TRY(look_as(part, tensor, weights, *key, err));
    if (*part == NULL && theirs[0] != '/') {
        DT_TRY(look_as(part, tensor, weights, theirs, err));
        if (*part != NULL)
            *key = theirs;
    }
out:
    return st;
}

static void add_shape(dt_strbuf *out, const int64_t *dim, int ndim)
{
    if (ndim == 0)
        dt_strbuf_add_str(out, "a single number");
    for (int i = 0; i < ndim && i < DT_SAFETENSORS_DIMS; i++)
        dt_strbuf_add_fmt(out, "%s%lld", i > 0 ? " x " : "", (long long)dim[i]);
}

static dt_status refuse_shape(const dt_checkpoint_part *part, const char *key,
                              const dt_safetensors_tensor *there, const int64_t *here, int ndim,
                              dt_error *err)
{
    dt_strbuf theirs, ours;

    dt_strbuf_init(&theirs);
    dt_strbuf_init(&ours);
    add_shape(&theirs, there->dim, there->ndim);
    add_shape(&ours, here, ndim);
    DT_FAIL(err, DT_ERR_RECIPE, "'%s': '%s' is %s in the file and %s in this model", part->path,
            key, theirs.data, ours.data);
    dt_strbuf_release(&theirs);
    dt_strbuf_release(&ours);
    return DT_ERR_RECIPE;
}

int64_t dt_weights_part_rows(const dt_param *param, const dt_published_tensor *row, int end)
{
    int64_t rows = 0;

    for (int i = 0; i < end; i++)
        rows += param[i - row->part].dim[0];
    return rows;
}

/* Check the shape in the file's layout. */
static dt_status check_shape(const dt_checkpoint_part *part, const char *key,
                             const dt_safetensors_tensor *there, const dt_checkpoint_shape *stored,
                             const dt_published_tensor *row, const dt_param *param, dt_error *err)
{
    int64_t here[DT_PARAM_DIMS] = {0};
    bool same = there->ndim == stored->ndim;

    for (int i = 0; i < stored->ndim; i++)
        here[i] = stored->dim[row->transposed ? stored->ndim - 1 - i : i];
    if (row->parts > 0)
        here[0] = dt_weights_part_rows(param, row, row->parts);
    for (int i = 0; i < stored->ndim && same; i++)
        same = there->dim[i] == here[i] || (i == 0 && row->longer && there->dim[i] > here[i]);
    return same ? DT_OK : refuse_shape(part, key, there, here, stored->ndim, err);
}

static dt_status check_type(const dt_checkpoint_part *part, const char *key,
                            const dt_safetensors_tensor *there, dt_error *err)
{
    if (there->dtype == DT_F32 || there->dtype == DT_BF16 || there->dtype == DT_F16)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "'%s': '%s' has the unsupported type %s (expected F32, BF16 or F16)", part->path,
                   key, there->type);
}

/* The row of A or B in the adapter's file: an adapter of a matrix that has several of ours is for all of them, which get
 * its A each, and their rows of its B. */
static void row_of_adapter(dt_published_tensor *out, const dt_published *family, const char *ours,
                           dt_arena *arena)
{
    const char *stem = dt_arena_printf(arena, "%.*s.weight", (int)stem_length(ours), ours);
    const dt_published_tensor *row;

    *out = (dt_published_tensor){0};
    if (strstr(ours, ".lora_B") != NULL && dt_weights_name(&row, family, stem, arena) != NULL)
        *out = (dt_published_tensor){.part = row->part, .parts = row->parts};
}

dt_status dt_weights_find_tensor(dt_weights_piece *out, const char **key, dt_weights *weights,
                                 const dt_param *param, dt_error *err)
{
    dt_checkpoint_shape stored = dt_checkpoint_shape_of(param);
    dt_box box = dt_checkpoint_shape_box(&stored);
    const dt_published_tensor *row;
    dt_published_tensor of_adapter;
    const char *theirs =
        weights->adapter ? dt_weights_adapter_name(weights->family, param->name, &weights->arena)
                         : dt_weights_name(&row, weights->family, param->name, &weights->arena);
    dt_safetensors_tensor there;
    dt_status st = DT_OK;

    if (weights->adapter) {
        row_of_adapter(&of_adapter, weights->family, param->name, &weights->arena);
        row = &of_adapter;
    }
    if (theirs == NULL)
        DT_THROW(err, DT_ERR_RECIPE,
                 "a model of type '%s' has no '%s', which this recipe's model has",
                 weights->family->model_type, param->name);
    DT_TRY(dt_weights_look(&out->part, &there, key, weights, theirs, err));
    if (out->part == NULL)
        DT_THROW(err, DT_ERR_RECIPE, "'%s' has no tensor '%s'",
                 weights->files->folder != NULL ? weights->files->folder
                                                : weights->files->description,
                 *key);
    DT_TRY(check_type(out->part, *key, &there, err));
    DT_TRY(check_shape(out->part, *key, &there, &stored, row, param, err));
    if (row->longer)
        box.size[0] = there.dim[0];
    out->start_bytes = there.start_bytes;
    if (row->parts > 0) /* after the parts before it */
        out->start_bytes += dt_weights_part_rows(param, row, row->part) * param->dim[1] *
                            (int64_t)dt_dtype_bytes(there.dtype);
    out->dtype = there.dtype;
    out->transposed = row->transposed;
    out->paired_rows = row->paired ? weights->head_width : 0;
    out->slice = dt_slice_whole(&box);
out:
    return st;
}
