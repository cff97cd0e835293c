/* fuzz_checkpoint: what is read of a checkpoint before any digest vouches for it, and the digest
 * itself is only against accidents: its index, a safetensors file, the tokenizer's JSON.
 *
 * The first byte of an input says which; the rest is the document. A reader may refuse; it may not
 * read out of bounds, run for long, or accept what does not hold together.
 * Run        fuzz_checkpoint [SECONDS [SEED]], or FILE... under libFuzzer
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/checkpoint/index.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/data/data.h"

#include "base/banned.h"

enum { INDEX, TENSORS, TOKENIZER, TARGETS };

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t length);

static bool try_index(const char *text, size_t length)
{
    dt_checkpoint_index index;
    json_t *json = NULL;
    dt_arena arena;
    bool good = false;

    dt_arena_init(&arena, 0);
    if (dt_json_parse(&json, text, length, "index.json", NULL) == DT_OK)
        good = dt_checkpoint_index_parse(&index, json, "index.json", &arena, NULL) == DT_OK;
    for (int64_t i = 0; good && i < index.tensor_count; i++) {
        for (int kind = 0; kind < DT_CHECKPOINT_KINDS; kind++) {
            const dt_checkpoint_pieces *pieces = &index.tensors[i].pieces[kind];
            int64_t at = 0;

            for (int64_t k = 0; k < pieces->count; k++) {
                DT_ASSERT(pieces->items[k].start_elems == at && pieces->items[k].elems > 0);
                DT_ASSERT(pieces->items[k].file >= 0 && pieces->items[k].file < index.file_count);
                at += pieces->items[k].elems;
            }
            DT_ASSERT(at == index.tensors[i].shape.elems ||
                      (at == 0 && kind != DT_CHECKPOINT_VALUE));
        }
    }
    json_decref(json);
    dt_arena_release(&arena);
    return good;
}

static bool try_tensors(const char *bytes, size_t length)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    dt_safetensors file = {0};
    const char *key;
    json_t *entry;
    bool good;

    DT_ASSERT(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
    good = dt_safetensors_read(&file, fd, (int64_t)length, "file", NULL) == DT_OK;
    if (good) {
        json_object_foreach(file.header, key, entry)
        {
            int64_t start, elems;

            if (dt_safetensors_find(&start, &elems, &file, key))
                DT_ASSERT(start >= 8 && elems >= 0 && elems <= ((int64_t)length - start) / 4);
        }
    }
    dt_safetensors_release(&file);
    close(fd);
    return good;
}

static bool try_tokenizer(const char *text, size_t length)
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
    return good;
}

static bool try_one(const unsigned char *data, size_t length)
{
    const char *text = (const char *)data + 1;

    if (length == 0)
        return false;
    switch (data[0] % TARGETS) {
    case INDEX:
        return try_index(text, length - 1);
    case TENSORS:
        return try_tensors(text, length - 1);
    default:
        return try_tokenizer(text, length - 1);
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t length)
{
    try_one(data, length);
    return 0;
}

#ifndef DT_LIBFUZZER

static const char index_seed[] =
    "{\"format\":\"dtrun-checkpoint\",\"version\":1,\"run\":\"k3v9x2\",\"attempt\":1,\"step\":100,"
    "\"epoch\":0,\"sample\":17,\"loss\":2.5,\"valid_loss\":null,\"recipe\":{\"seed\":42},"
    "\"tokenizer\":{\"kind\":\"byte\",\"vocab\":256},\"files\":[{\"name\":\"model-0.safetensors\","
    "\"bytes\":400,\"xxh3_128\":\"0123456789abcdef0123456789abcdef\"}],\"tensors\":{"
    "\"wte.weight\":{\"dtype\":\"F32\",\"shape\":[5,3],\"value\":[{\"file\":\"model-0."
    "safetensors\","
    "\"key\":\"wte.weight[7:15]\",\"start\":7,\"elems\":8},{\"file\":\"model-0.safetensors\","
    "\"key\":\"wte.weight[0:7]\",\"start\":0,\"elems\":7}],\"m\":[],\"v\":[]},\"ln_f.bias\":{"
    "\"dtype\":\"F32\",\"shape\":[4],\"value\":[{\"file\":\"model-0.safetensors\",\"key\":"
    "\"ln_f.bias\",\"start\":0,\"elems\":4}],\"m\":[],\"v\":[]}}}";
static const char tokenizer_seed[] =
    "{\"kind\":\"char\",\"vocab\":5,\"characters\":\"\\n !a\xc3\xa9\"}";

/* Valid documents of every kind, each behind the byte that says which it is. */
static void make_seeds(dt_strbuf *seeds)
{
    static const int64_t dims[2] = {5, 3};
    dt_safetensors_writer writer;

    dt_strbuf_add_char(&seeds[INDEX], INDEX);
    dt_strbuf_add_str(&seeds[INDEX], index_seed);
    dt_strbuf_add_char(&seeds[TENSORS], TENSORS);
    DT_ASSERT(dt_safetensors_writer_init(&writer, NULL) == DT_OK);
    dt_safetensors_writer_add(&writer, "wte.weight", dims, 2);
    dt_safetensors_writer_add(&writer, "ln_f.bias[0:5]", dims, 1);
    dt_safetensors_writer_end(&seeds[TENSORS], &writer);
    for (int64_t i = 0; i < writer.bytes; i++)
        dt_strbuf_add_char(&seeds[TENSORS], 'x');
    dt_safetensors_writer_release(&writer);
    dt_strbuf_add_char(&seeds[TOKENIZER], TOKENIZER);
    dt_strbuf_add_str(&seeds[TOKENIZER], tokenizer_seed);
}

static uint64_t next(uint64_t *state) /* splitmix64 (Steele et al. 2014) */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* One change: a byte, a span away, a span twice, a piece of JSON in between. */
static void mutate(dt_strbuf *out, const dt_strbuf *in, uint64_t *random)
{
    static const char *const pieces[] = {"-1",
                                         "0",
                                         "1",
                                         "9223372036854775807",
                                         "18446744073709551616",
                                         "1e999",
                                         "null",
                                         "\"\"",
                                         "[[[",
                                         "{}",
                                         "[]",
                                         "\\u0000",
                                         "\xed\xa0\x80",
                                         ",",
                                         "}",
                                         "4611686018427387904"};
    size_t body = in->length - 1, at = 1 + next(random) % body;
    size_t span = 1 + next(random) % (next(random) % 4 == 0 ? body : 8);
    const char *piece = pieces[next(random) % (sizeof(pieces) / sizeof(pieces[0]))];
    size_t end = at + span < in->length ? at + span : in->length;

    dt_strbuf_reset(out);
    dt_strbuf_add(out, in->data, at);
    switch (next(random) % 5) {
    case 0:
        dt_strbuf_add_char(out, (char)next(random));
        end = at + 1;
        break;
    case 1: /* the span goes */
        break;
    case 2: /* the span comes twice */
        dt_strbuf_add(out, in->data + at, end - at);
        end = at;
        break;
    case 3:
        dt_strbuf_add_str(out, piece);
        break;
    default: /* a bit */
        dt_strbuf_add_char(out, (char)(in->data[at] ^ 1 << next(random) % 8));
        end = at + 1;
        break;
    }
    dt_strbuf_add(out, in->data + end, in->length - end);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 5;
    uint64_t random = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    double until = dt_clock_monotonic_seconds() + seconds;
    dt_strbuf seeds[TARGETS], inputs[2];
    long tried = 0, taken = 0;

    for (int i = 0; i < TARGETS; i++)
        dt_strbuf_init(&seeds[i]);
    dt_strbuf_init(&inputs[0]);
    dt_strbuf_init(&inputs[1]);
    make_seeds(seeds);
    for (int i = 0; i < TARGETS; i++)
        DT_ASSERT(try_one((unsigned char *)seeds[i].data, seeds[i].length));
    while (dt_clock_monotonic_seconds() < until) {
        const dt_strbuf *from = &seeds[next(&random) % TARGETS];

        for (uint64_t changes = 1 + next(&random) % 4, k = 0; k < changes && from->length > 1;
             k++) {
            mutate(&inputs[k % 2], from, &random);
            from = &inputs[k % 2];
        }
        taken += try_one((unsigned char *)from->data, from->length);
        tried++;
    }
    printf("%ld inputs, %ld of them still valid\n", tried, taken);
    for (int i = 0; i < TARGETS; i++)
        dt_strbuf_release(&seeds[i]);
    dt_strbuf_release(&inputs[0]);
    dt_strbuf_release(&inputs[1]);
    return tried > 0 ? 0 : 1;
}

#endif
