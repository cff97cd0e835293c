/* fuzz_weights: the unchecked parts of a downloaded folder: config.json, the
 * header of a safetensors file, the header of a .bin file of llm.c or llama2.c. A reader may refuse; whatever
 * it accepts is consistent.
 *
 * The first byte of an input selects one; the rest is the document.
 * Corpus     corpus/weights: '0' config.json, '1' safetensors, '2' .bin
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/checkpoint/safetensors.h"
#include "recipes/architecture/published.h"
#include "recipes/fields/fields.h"
#include "recipes/fields/values.h"
#include "recipes/foreign/huggingface.h"

enum { CONFIG, TENSORS, BIN, TARGETS };

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t length);

/* The config that was read is a valid recipe, and is written back as it was read. */
static void check_model(const dt_huggingface_model *model)
{
    dt_error err = DT_ERROR_INIT;
    json_t *config = NULL;
    dt_recipe recipe;

    dt_recipe_init(&recipe);
    for (size_t i = 0; i < model->count; i++) {
        const dt_field *field = dt_field_find(model->values[i].path);

        DT_ASSERT(field != NULL &&
                  dt_field_set_text(&recipe, field, model->values[i].text, &err) == DT_OK);
    }
    DT_ASSERT(dt_field_set_text(&recipe, dt_field_find("model.kind"), model->kind, &err) == DT_OK);
    DT_ASSERT(dt_huggingface_write(&config, &recipe, recipe.model.vocab, NULL, &err) == DT_OK);
    json_decref(config);
}

static void try_config(const char *text, size_t length)
{
    dt_error err = DT_ERROR_INIT;
    dt_huggingface_model model;
    json_t *json = NULL;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    if (dt_json_parse(&json, text, length, "config.json", NULL) == DT_OK) {
        st = dt_huggingface_read(&model, json, "config.json", &arena, &err);
        DT_ASSERT(st == DT_OK || (st == DT_ERR_RECIPE && err.message[0] != '\0'));
        if (st == DT_OK)
            check_model(&model);
    }
    json_decref(json);
    dt_arena_release(&arena);
}

static void try_tensors(const char *bytes, size_t length)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    dt_safetensors file = {0};
    dt_safetensors_tensor tensor;
    const char *key;
    json_t *entry;

    DT_ASSERT(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
    if (dt_safetensors_read(&file, fd, (int64_t)length, "file", NULL) == DT_OK) {
        json_object_foreach(file.header, key, entry) {
            if (!dt_safetensors_look(&tensor, &file, key))
                continue;
            DT_ASSERT(tensor.start_bytes >= 8 && tensor.bytes >= 0 && tensor.elems >= 0);
            DT_ASSERT(tensor.bytes <= (int64_t)length - tensor.start_bytes);
            if (tensor.dtype < DT_DTYPE_COUNT)
                DT_ASSERT(tensor.elems * (int64_t)dt_dtype_bytes(tensor.dtype) == tensor.bytes);
        }
    }
    dt_safetensors_release(&file);
    close(fd);
}

/* Tensors are contiguous from the end of the header to the end of the file; the model in it is read
 * like config.json. */
static void try_bin(const unsigned char *bytes, size_t length)
{
    size_t start = length < DT_WEIGHTS_BIN_HEADER_BYTES ? length : DT_WEIGHTS_BIN_HEADER_BYTES;
    dt_error err = DT_ERROR_INIT;
    dt_huggingface_model model;
    dt_weights_bin bin;
    dt_arena arena;
    json_t *tensor;
    const char *key;
    int64_t at = 0;
    dt_status st = dt_weights_bin_parse(&bin, bytes, start, (int64_t)length, "file", &err);

    DT_ASSERT(st == DT_OK || (st == DT_ERR_RECIPE && err.message[0] != '\0'));
    if (st != DT_OK)
        return;
    json_object_foreach(bin.tensors, key, tensor) {
        const json_t *offsets = json_object_get(tensor, "data_offsets");

        DT_ASSERT(json_integer_value(json_array_get(offsets, 0)) == at);
        at = json_integer_value(json_array_get(offsets, 1));
    }
    DT_ASSERT(at == (int64_t)length - bin.header_bytes);
    dt_arena_init(&arena, 0);
    st = dt_huggingface_read(&model, bin.config, "file", &arena, &err);
    DT_ASSERT(st == DT_OK || st == DT_ERR_RECIPE);
    dt_arena_release(&arena);
    dt_weights_bin_release(&bin);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t length)
{
    const char *text = (const char *)data + 1;

    if (length == 0)
        return 0;
    if (data[0] % TARGETS == CONFIG)
        try_config(text, length - 1);
    else if (data[0] % TARGETS == TENSORS)
        try_tensors(text, length - 1);
    else
        try_bin(data + 1, length - 1);
    return 0;
}
