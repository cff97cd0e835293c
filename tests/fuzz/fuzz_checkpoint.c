/* fuzz_checkpoint: the parts of a checkpoint that are read before any digest is checked: its index,
 * a safetensors file, the tokenizer's JSON. (A digest only protects against accidents.)
 *
 * The first byte of an input selects one; the rest is the document. A reader may refuse; it may not
 * read out of bounds, run for long, or accept an inconsistent document.
 * Corpus     corpus/checkpoint: '0' index, '1' safetensors, '2' tokenizer
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/checkpoint/index.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/data/data.h"

enum { INDEX, TENSORS, TOKENIZER, TARGETS };

#define COUNTED_MOST 4096

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t length);

/* Counts element by element if they are few enough: each is in one piece. */
static void count_elements(const dt_checkpoint_pieces *pieces, const dt_checkpoint_shape *shape)
{
    static unsigned char count[COUNTED_MOST];
    dt_box box = dt_checkpoint_shape_box(shape);
    dt_slice whole = dt_slice_whole(&box);

    memset(count, 0, sizeof(count));
    for (int64_t k = 0; k < pieces->count; k++)
        for (dt_overlap run = dt_overlap_of(&pieces->items[k].slice, &whole);
             dt_overlap_next(&run);)
            for (int64_t i = 0; i < run.elems; i++)
                DT_ASSERT(count[run.at_b + i]++ == 0);
    for (int64_t i = 0; i < whole.elems; i++)
        DT_ASSERT(count[i] == 1);
}

static void check_pieces(const dt_checkpoint_index *index, const dt_checkpoint_tensor *tensor,
                         int kind)
{
    const dt_checkpoint_pieces *pieces = &tensor->pieces[kind];
    int64_t elems = 0;

    for (int64_t k = 0; k < pieces->count; k++) {
        const dt_checkpoint_piece *piece = &pieces->items[k];

        DT_ASSERT(piece->file >= 0 && piece->file < index->file_count);
        DT_ASSERT(piece->slice.elems > 0);
        elems += piece->slice.elems;
    }
    if (pieces->count == 0 && kind != DT_CHECKPOINT_VALUE)
        return;
    DT_ASSERT(elems == tensor->shape.elems);
    if (elems <= COUNTED_MOST)
        count_elements(pieces, &tensor->shape);
}

static void try_index(const char *text, size_t length)
{
    dt_checkpoint_index index;
    json_t *json = NULL;
    dt_arena arena;
    bool good = false;

    dt_arena_init(&arena, 0);
    if (dt_json_parse(&json, text, length, "index.json", NULL) == DT_OK)
        good = dt_checkpoint_index_parse(&index, json, "index.json", &arena, NULL) == DT_OK;
    for (int64_t i = 0; good && i < index.tensor_count; i++)
        for (int kind = 0; kind < DT_CHECKPOINT_KINDS; kind++)
            check_pieces(&index, &index.tensors[i], kind);
    json_decref(json);
    dt_arena_release(&arena);
}

static void try_tensors(const char *bytes, size_t length)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    dt_safetensors file = {0};
    const char *key;
    json_t *entry;
    bool good;

    DT_ASSERT(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
    good = dt_safetensors_read(&file, fd, (int64_t)length, "file", NULL) == DT_OK;
    if (good) {
        json_object_foreach(file.header, key, entry) {
            int64_t start, elems;

            if (dt_safetensors_find(&start, &elems, &file, key))
                DT_ASSERT(start >= 8 && elems >= 0 && elems <= ((int64_t)length - start) / 4);
        }
    }
    dt_safetensors_release(&file);
    close(fd);
}

static void try_tokenizer(const char *text, size_t length)
{
    dt_tokenizer *tokenizer = NULL;
    json_t *json = NULL;
    dt_strbuf all;
    bool good = false;

    dt_strbuf_init(&all);
    if (dt_json_parse(&json, text, length, "tokenizer", NULL) == DT_OK)
        good = dt_tokenizer_from_json(&tokenizer, json, NULL) == DT_OK;
    for (int32_t i = 0; good && i < 300; i++)
        dt_tokenizer_decode(&all, tokenizer, i);
    dt_strbuf_release(&all);
    dt_tokenizer_free(tokenizer);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t length)
{
    const char *text = (const char *)data + 1;

    if (length == 0)
        return 0;
    switch (data[0] % TARGETS) {
    case INDEX:
        try_index(text, length - 1);
        break;
    case TENSORS:
        try_tensors(text, length - 1);
        break;
    default:
        try_tokenizer(text, length - 1);
        break;
    }
    return 0;
}
