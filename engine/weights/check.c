/* check: checks that the files contain all parameters of the model and nothing else, and loads them. */
#include <stdlib.h>
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "engine/config.h"
#include "engine/data/data.h"
#include "engine/data/fingerprint.h"
#include "engine/weights/weights_int.h"

/* --- the check */

#define WINDOW_ELEMS ((int64_t)1 << 16)

/* --- Hugging Face */

static bool is_buffer(const dt_published *family, const char *key)
{
    size_t prefix = strlen(family->prefix);

    for (const char *const *buffer = family->buffers; *buffer != NULL; buffer++)
        if (dt_weights_matches(*buffer, key) || (strncmp(key, family->prefix, prefix) == 0 &&
                                                 dt_weights_matches(*buffer, key + prefix)))
            return true;
    return false;
}

/* Whether a surplus tensor is the head of a tied model; dt_weights_fit compares it with the
 * embedding. */
static bool is_tied_head(const dt_published *family, const char *key)
{
    return family->head != NULL && strcmp(key, family->head + (family->head[0] == '/')) == 0;
}

static dt_status check_surplus(const dt_weights *weights, const json_t *used, dt_error *err)
{
    json_t *entry;
    const char *key;

    for (int64_t i = 0; i < weights->files->files.count; i++)
        json_object_foreach(weights->parts[i].header.header, key, entry) {
            if (strcmp(key, "__metadata__") != 0 && json_object_get(used, key) == NULL &&
                !is_buffer(weights->family, key) && !is_tied_head(weights->family, key))
                return DT_FAIL(
                    err, DT_ERR_RECIPE,
                    "'%s' has a tensor '%.120s' that the model of this recipe does not have",
                    weights->parts[i].path, key);
        }
    return DT_OK;
}

/* Whether the files have the parameter: with an adapter, they have its base, or the adapter alone. */
static bool is_read(const dt_weights *weights, const dt_model *model, const dt_param *param)
{
    return model->config.lora.rank == 0 || param->in_base != weights->adapter;
}

static dt_status check_huggingface(dt_weights *weights, const dt_model *model, dt_error *err)
{
    json_t *used = json_object();
    dt_weights_piece piece;
    const char *key;
    dt_status st = DT_OK;

    for (int i = 0; i < model->param_count; i++) {
        if (!is_read(weights, model, &model->params[i]))
            continue;
        DT_TRY(dt_weights_find_tensor(&piece, &key, weights, &model->params[i], err));
        json_object_set_new(used, key, json_true());
    }
    DT_TRY(check_surplus(weights, used, err));
out:
    json_decref(used);
    return st;
}

/* --- a checkpoint */

static void add_shape(dt_strbuf *out, const dt_checkpoint_shape *shape)
{
    for (int i = 0; i < shape->ndim; i++)
        dt_strbuf_add_fmt(out, "%s%lld", i > 0 ? " x " : "", (long long)shape->dim[i]);
}

static dt_status check_param(const dt_weights *weights, const dt_param *param, dt_error *err)
{
    const dt_checkpoint_tensor *tensor = dt_checkpoint_index_find(&weights->index, param->name);
    dt_checkpoint_shape here = dt_checkpoint_shape_of(param);
    dt_strbuf there, wanted;
    dt_status st = DT_OK;

    if (tensor == NULL)
        return DT_FAIL(err, DT_ERR_RECIPE, "'%s' has no parameter '%s'",
                       weights->files->description, param->name);
    if (tensor->shape.ndim == here.ndim &&
        memcmp(tensor->shape.dim, here.dim, sizeof(here.dim)) == 0)
        return DT_OK;
    dt_strbuf_init(&there);
    dt_strbuf_init(&wanted);
    add_shape(&there, &tensor->shape);
    add_shape(&wanted, &here);
    st = DT_FAIL(err, DT_ERR_RECIPE, "'%s': '%s' is %s in the file and %s in this model",
                 weights->files->description, param->name, there.data, wanted.data);
    dt_strbuf_release(&there);
    dt_strbuf_release(&wanted);
    return st;
}

static dt_status check_checkpoint(const dt_weights *weights, const dt_model *model, dt_error *err)
{
    int count = 0;
    dt_status st = DT_OK;

    for (int i = 0; i < model->param_count; i++) {
        if (!is_read(weights, model, &model->params[i]))
            continue;
        DT_TRY(check_param(weights, &model->params[i], err));
        count++;
    }
    if (weights->index.tensor_count != count)
        DT_THROW(err, DT_ERR_RECIPE, "'%s' has %lld parameters, and this model has %d",
                 weights->files->description, (long long)weights->index.tensor_count, count);
out:
    return st;
}

dt_status dt_weights_check(dt_weights *weights, const dt_model *model, dt_error *err)
{
    return weights->files->kind == DT_WEIGHTS_CHECKPOINT ? check_checkpoint(weights, model, err)
                                                         : check_huggingface(weights, model, err);
}

/* --- before a run */

static dt_status compare(const dt_weights_piece *a, const dt_weights_piece *b, int64_t elems,
                         const char *key, dt_error *err)
{
    float *left = calloc(2 * WINDOW_ELEMS, sizeof(*left)), *right = left + WINDOW_ELEMS;
    dt_status st = DT_OK;

    if (left == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to compare '%s'", key);
    for (int64_t done = 0; done < elems; done += WINDOW_ELEMS) {
        int64_t count = elems - done < WINDOW_ELEMS ? elems - done : WINDOW_ELEMS;

        DT_TRY(dt_weights_read_piece(left, a, done, count, key, err));
        DT_TRY(dt_weights_read_piece(right, b, done, count, key, err));
        if (memcmp(left, right, (size_t)count * sizeof(*left)) != 0)
            DT_THROW(
                err, DT_ERR_RECIPE,
                "'%s': '%s' differs from the token embedding, which this model uses as its head: "
                "set \"tie_word_embeddings\": false in config.json, or remove the tensor",
                a->part->path, key);
    }
out:
    free(left);
    return st;
}

/* Check that a head in the files of a tied model equals the embedding. */
static dt_status check_tied_head(dt_weights *weights, const dt_model *model, dt_error *err)
{
    const dt_published *family = weights->family;
    dt_weights_piece head = {0}, embedding = {0};
    dt_safetensors_tensor a, b;
    const dt_published_tensor *row;
    const char *key, *ignored;
    dt_status st = DT_OK;

    if (family == NULL || family->head == NULL)
        return DT_OK;
    for (int i = 0; i < model->param_count; i++) {
        const char *theirs = dt_weights_name(&row, family, model->params[i].name, &weights->arena);

        if (theirs != NULL && strcmp(theirs, family->head) == 0)
            return DT_OK; /* untied: the head is a parameter of the model */
    }
    DT_TRY(dt_weights_look(&head.part, &a, &key, weights, family->head, err));
    if (head.part == NULL)
        return DT_OK;
    DT_TRY(dt_weights_look(&embedding.part, &b, &ignored, weights, family->embedding, err));
    if (embedding.part == NULL || a.dtype != b.dtype || a.elems != b.elems)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s': '%s' differs from the token embedding, which this model uses as its head",
                 head.part->path, key);
    head.dtype = embedding.dtype = a.dtype;
    head.start_bytes = a.start_bytes;
    embedding.start_bytes = b.start_bytes;
    DT_TRY(compare(&head, &embedding, a.elems, key, err));
out:
    return st;
}

dt_status dt_weights_fit(const dt_weights_files *files, const dt_recipe *recipe, int64_t vocab,
                         dt_error *err)
{
    dt_weights *weights = NULL, *adapter = NULL;
    dt_tokenizer *tokenizer = NULL;
    dt_model *model = NULL;
    dt_weights_files adapter_files;
    dt_model_config config;
    dt_status st = DT_OK;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_weights_open(&weights, files, err));
    if (dt_weights_tokenizer(weights) != NULL) { /* then the run uses this tokenizer */
        DT_TRY(dt_tokenizer_from_json(&tokenizer, dt_weights_tokenizer(weights), err));
        vocab = dt_tokenizer_vocab(tokenizer);
    }
    DT_TRY(dt_config_train(&config, recipe, vocab, err));
    DT_TRY(dt_model_describe(&model, &config, err));
    DT_TRY(dt_weights_check(weights, model, err));
    DT_TRY(check_tied_head(weights, model, err));
    if (recipe->lora.from[0] != '\0') {
        DT_TRY(dt_weights_open_adapter(&adapter, &adapter_files, recipe, &arena, err));
        DT_TRY(dt_weights_check(adapter, model, err));
    }
out:
    dt_weights_close(adapter);
    dt_arena_release(&arena);
    dt_weights_close(weights);
    dt_tokenizer_free(tokenizer);
    dt_model_description_free(model);
    return st;
}

/* --- loading */

#define BASE_ELEMS ((int64_t)1 << 20) /* of a chunk, in fp32 on the host at once */

static dt_status load_base(dt_weights *weights, dt_strategy_state *state,
                           const dt_state_chunk *chunk, dt_error *err)
{
    const dt_model *model = state->model;
    float *values = malloc((size_t)BASE_ELEMS * sizeof(*values));
    dt_slice part = chunk->slice;
    dt_status st = DT_OK;

    if (values == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to read '%s'", model->params[chunk->param].name);
    for (int64_t at = 0; at < chunk->slice.elems; at += part.elems) {
        int64_t left = chunk->slice.elems - at;

        part.start_elems = chunk->slice.start_elems + at;
        part.elems = left < BASE_ELEMS ? left : BASE_ELEMS;
        DT_TRY(dt_weights_read(values, weights, model, chunk->param, &part, err));
        DT_TRY(state->strategy->import_base(state, chunk, at, values, part.elems, err));
    }
out:
    free(values);
    return st;
}

/* --- the base of an adapter */

dt_status dt_weights_base_make(json_t **out, const dt_weights_files *files, dt_error *err)
{
    json_t *list = NULL;
    dt_status st = DT_OK;

    *out = NULL;
    DT_TRY(dt_fingerprint_files(&list, &files->files, err));
    *out = json_pack("{s:O}", "files", list);
    if (*out == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the digests of '%s'", files->folder);
out:
    json_decref(list);
    return st;
}

dt_status dt_weights_base_check(const dt_weights_files *files, const json_t *base,
                                const char *owner, dt_error *err)
{
    json_t *now = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_weights_base_make(&now, files, err));
    if (!json_equal(now, base))
        DT_THROW(err, DT_ERR_RECIPE,
                 "the weights in '%s' are not those that the adapter in '%s' was trained on: their "
                 "digests differ (put the original files back)",
                 files->folder, owner);
out:
    json_decref(now);
    return st;
}

static dt_status load_chunks(dt_weights *weights, dt_strategy_state *state, dt_error *err)
{
    const dt_state_chunk *chunks;
    int count;
    dt_status st = DT_OK;

    DT_TRY(dt_weights_check(weights, state->model, err));
    DT_TRY(state->strategy->import_state(state, &chunks, &count, err));
    for (int i = 0; i < count; i++) {
        if (!is_read(weights, state->model, &state->model->params[chunks[i].param]))
            continue;
        DT_TRY(chunks[i].value != NULL ? dt_weights_read(chunks[i].value, weights, state->model,
                                                         chunks[i].param, &chunks[i].slice, err)
                                       : load_base(weights, state, &chunks[i], err));
    }
out:
    return st;
}

dt_status dt_weights_load(dt_weights *weights, dt_strategy_state *state, dt_error *err)
{
    dt_status st = load_chunks(weights, state, err);

    /* import_finish can be collective, so no rank may enter it alone */
    st = dt_checkpoint_agree(state->comm, st, "read the weights", err);
    if (st == DT_OK)
        st = state->strategy->import_finish(state, err);
    return st;
}
