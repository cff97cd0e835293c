/* weights_bin: parses the .bin files of llm.c and llama2.c, and maps their tensors to the names of
 * transformers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recipes/architecture/published.h"

/* --- tensors: GPT-2 of llm.c and Llama of llama2.c, with the names of transformers in another layout */

/* clang-format off */ /* a row a tensor */

/* The token embedding has Vp rows, of which the first V are used. */
static const dt_published_tensor gpt2[] = {
    {.ours = "wte.weight", .theirs = "wte.weight", .longer = true},
    {.ours = "wpe.weight", .theirs = "wpe.weight", .longer = true},
    {.ours = "h.*.ln_1.weight", .theirs = "h.*.ln_1.weight"},
    {.ours = "h.*.ln_1.bias", .theirs = "h.*.ln_1.bias"},
    {.ours = "h.*.attn.c_attn.weight", .theirs = "h.*.attn.c_attn.weight"},
    {.ours = "h.*.attn.c_attn.bias", .theirs = "h.*.attn.c_attn.bias"},
    {.ours = "h.*.attn.c_proj.weight", .theirs = "h.*.attn.c_proj.weight"},
    {.ours = "h.*.attn.c_proj.bias", .theirs = "h.*.attn.c_proj.bias"},
    {.ours = "h.*.ln_2.weight", .theirs = "h.*.ln_2.weight"},
    {.ours = "h.*.ln_2.bias", .theirs = "h.*.ln_2.bias"},
    {.ours = "h.*.mlp.c_fc.weight", .theirs = "h.*.mlp.c_fc.weight"},
    {.ours = "h.*.mlp.c_fc.bias", .theirs = "h.*.mlp.c_fc.bias"},
    {.ours = "h.*.mlp.c_proj.weight", .theirs = "h.*.mlp.c_proj.weight"},
    {.ours = "h.*.mlp.c_proj.bias", .theirs = "h.*.mlp.c_proj.bias"},
    {.ours = "ln_f.weight", .theirs = "ln_f.weight"},
    {.ours = "ln_f.bias", .theirs = "ln_f.bias"},
    {0},
};

static const dt_published_tensor llama[] = {
    {.ours = "model.embed_tokens.weight", .theirs = "embed_tokens.weight"},
    {.ours = "model.layers.*.input_layernorm.weight", .theirs = "layers.*.input_layernorm.weight"},
    {.ours = "model.layers.*.self_attn.q_proj.weight",
     .theirs = "layers.*.self_attn.q_proj.weight",
     .paired = true},
    {.ours = "model.layers.*.self_attn.k_proj.weight",
     .theirs = "layers.*.self_attn.k_proj.weight",
     .paired = true},
    {.ours = "model.layers.*.self_attn.v_proj.weight",
     .theirs = "layers.*.self_attn.v_proj.weight"},
    {.ours = "model.layers.*.self_attn.o_proj.weight",
     .theirs = "layers.*.self_attn.o_proj.weight"},
    {.ours = "model.layers.*.post_attention_layernorm.weight",
     .theirs = "layers.*.post_attention_layernorm.weight"},
    {.ours = "model.layers.*.mlp.gate_proj.weight", .theirs = "layers.*.mlp.gate_proj.weight"},
    {.ours = "model.layers.*.mlp.up_proj.weight", .theirs = "layers.*.mlp.up_proj.weight"},
    {.ours = "model.layers.*.mlp.down_proj.weight", .theirs = "layers.*.mlp.down_proj.weight"},
    {.ours = "model.norm.weight", .theirs = "norm.weight"},
    {.ours = "lm_head.weight", .theirs = "/lm_head.weight"},
    {0},
};
/* clang-format on */

/* The angles of rotary positions, which dtrun computes itself. */
static const char *const angles[] = {"freqs_cos", "freqs_sin", NULL};
static const char *const nothing[] = {NULL};

const dt_published dt_published_llmc = {
    .model_type = "gpt2", .prefix = "transformer.", .tensors = gpt2, .buffers = nothing};
const dt_published dt_published_llama2c = {
    .model_type = "llama", .prefix = "model.", .tensors = llama, .buffers = angles};

/* --- headers */

#define LLMC_MAGIC          20240326
#define LLMC_LLAMA_MAGIC    20240803
#define LLMC_TOKENS         20240520
#define LLMC_LLAMA_TOKENS   20240801
#define LLMC_BYTES          1024
#define LLAMA2C_MAGIC       0x616b3432
#define LLAMA2C_LEGACY_INTS 7
#define LLAMA2C_BYTES       256
#define LLAMA2C_SHARED_AT   36 /* after magic, version and 7 numbers */

/* The kind of a tensor's dimension; values are in `dims`. */
typedef enum dim {
    NONE, /* for a vector */
    EMBED,
    EMBED_3,
    EMBED_4,
    VOCAB,
    VOCAB_ROWS, /* with padding */
    CONTEXT,
    FFN,
    KV_WIDTH,
    HALF_HEAD,
    DIMS
} dim;

/* Tensors in the order of the file; '*' stands for each layer. */
typedef struct row {
    const char *name; /* NULL ends the table */
    dim rows, columns;
    bool own_head; /* only if the head is not the embedding */
} row;

typedef struct layout {
    dt_weights_bin *out;
    int64_t layers, dims[DIMS];
    bool own_head;
    const char *dtype;
    int64_t width_bytes;
    const char *where;
} layout;

/* clang-format off */ /* one row for each tensor */
static const row llmc_rows[] = {
    {"transformer.wte.weight", VOCAB_ROWS, EMBED, false},
    {"transformer.wpe.weight", CONTEXT, EMBED, false},
    {"transformer.h.*.ln_1.weight", EMBED, NONE, false},
    {"transformer.h.*.ln_1.bias", EMBED, NONE, false},
    {"transformer.h.*.attn.c_attn.weight", EMBED_3, EMBED, false},
    {"transformer.h.*.attn.c_attn.bias", EMBED_3, NONE, false},
    {"transformer.h.*.attn.c_proj.weight", EMBED, EMBED, false},
    {"transformer.h.*.attn.c_proj.bias", EMBED, NONE, false},
    {"transformer.h.*.ln_2.weight", EMBED, NONE, false},
    {"transformer.h.*.ln_2.bias", EMBED, NONE, false},
    {"transformer.h.*.mlp.c_fc.weight", EMBED_4, EMBED, false},
    {"transformer.h.*.mlp.c_fc.bias", EMBED_4, NONE, false},
    {"transformer.h.*.mlp.c_proj.weight", EMBED, EMBED_4, false},
    {"transformer.h.*.mlp.c_proj.bias", EMBED, NONE, false},
    {"transformer.ln_f.weight", EMBED, NONE, false},
    {"transformer.ln_f.bias", EMBED, NONE, false},
    {0},
};

static const row llama2c_legacy_rows[] = {
    {"model.embed_tokens.weight", VOCAB, EMBED, false},
    {"model.layers.*.input_layernorm.weight", EMBED, NONE, false},
    {"model.layers.*.self_attn.q_proj.weight", EMBED, EMBED, false},
    {"model.layers.*.self_attn.k_proj.weight", KV_WIDTH, EMBED, false},
    {"model.layers.*.self_attn.v_proj.weight", KV_WIDTH, EMBED, false},
    {"model.layers.*.self_attn.o_proj.weight", EMBED, EMBED, false},
    {"model.layers.*.post_attention_layernorm.weight", EMBED, NONE, false},
    {"model.layers.*.mlp.gate_proj.weight", FFN, EMBED, false},
    {"model.layers.*.mlp.down_proj.weight", EMBED, FFN, false},
    {"model.layers.*.mlp.up_proj.weight", FFN, EMBED, false},
    {"model.norm.weight", EMBED, NONE, false},
    {"freqs_cos", CONTEXT, HALF_HEAD, false},
    {"freqs_sin", CONTEXT, HALF_HEAD, false},
    {"lm_head.weight", VOCAB, EMBED, true},
    {0},
};

static const row llama2c_rows[] = {
    {"model.layers.*.input_layernorm.weight", EMBED, NONE, false},
    {"model.layers.*.post_attention_layernorm.weight", EMBED, NONE, false},
    {"model.norm.weight", EMBED, NONE, false},
    {"model.embed_tokens.weight", VOCAB, EMBED, false},
    {"model.layers.*.self_attn.q_proj.weight", EMBED, EMBED, false},
    {"model.layers.*.self_attn.k_proj.weight", KV_WIDTH, EMBED, false},
    {"model.layers.*.self_attn.v_proj.weight", KV_WIDTH, EMBED, false},
    {"model.layers.*.self_attn.o_proj.weight", EMBED, EMBED, false},
    {"model.layers.*.mlp.gate_proj.weight", FFN, EMBED, false},
    {"model.layers.*.mlp.down_proj.weight", EMBED, FFN, false},
    {"model.layers.*.mlp.up_proj.weight", FFN, EMBED, false},
    {"lm_head.weight", VOCAB, EMBED, true},
    {0},
};
/* clang-format on */

static int32_t int32_at(const unsigned char *bytes)
{
    return (int32_t)((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                     (uint32_t)bytes[3] << 24);
}

/* --- tensors */

static int64_t columns_of(const layout *in, const row *each)
{
    return each->columns != NONE ? in->dims[each->columns] : 1;
}

/* Returns the next row of the table that the file contains. */
static const row *next_row(const layout *in, const row *each)
{
    while (each->name != NULL && each->own_head && !in->own_head)
        each++;
    return each;
}

/* Returns the bytes of all tensors, at most INT64_MAX. Called before any tensor is listed, because the number
 * of layers may be wrong. */
static int64_t count_bytes(const layout *in, const row *rows)
{
    int64_t all = 0, one;

    for (rows = next_row(in, rows); rows->name != NULL; rows = next_row(in, rows + 1))
        if (__builtin_mul_overflow(in->dims[rows->rows], columns_of(in, rows), &one) ||
            __builtin_mul_overflow(one, strchr(rows->name, '*') != NULL ? in->layers : 1, &one) ||
            __builtin_mul_overflow(one, in->width_bytes, &one) ||
            __builtin_add_overflow(all, one, &all))
            return INT64_MAX;
    return all;
}

static void add_tensor(const layout *in, const char *name, const row *each, int64_t *at)
{
    int64_t begin = *at;
    json_t *shape = json_array();

    json_array_append_new(shape, json_integer(in->dims[each->rows]));
    if (each->columns != NONE)
        json_array_append_new(shape, json_integer(in->dims[each->columns]));
    *at += in->dims[each->rows] * columns_of(in, each) * in->width_bytes;
    json_object_set_new(in->out->tensors, name,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", in->dtype, "shape", shape,
                                  "data_offsets", (json_int_t)begin, (json_int_t)*at));
}

static void add_layers(const layout *in, const row *each, int64_t *at)
{
    int before = (int)strcspn(each->name, "*");
    char name[96];

    for (int64_t i = 0; i < in->layers; i++) {
        snprintf(name, sizeof(name), "%.*s%lld%s", before, each->name, (long long)i,
                 each->name + before + 1);
        add_tensor(in, name, each, at);
    }
}

static dt_status add_tensors(const layout *in, const row *rows, int64_t file_bytes, dt_error *err)
{
    int64_t bytes = count_bytes(in, rows), at = 0;

    if (bytes != file_bytes - in->out->header_bytes)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s': by its header %s%lld bytes of weights follow, and %lld do: the file "
                       "is cut off or damaged",
                       in->where, bytes == INT64_MAX ? "more than " : "", (long long)bytes,
                       (long long)(file_bytes - in->out->header_bytes));
    in->out->tensors = json_object();
    for (rows = next_row(in, rows); rows->name != NULL; rows = next_row(in, rows + 1)) {
        if (strchr(rows->name, '*') != NULL)
            add_layers(in, rows, &at);
        else
            add_tensor(in, rows->name, rows, &at);
    }
    return DT_OK;
}

/* --- headers */

static dt_status check_numbers(const layout *in, const int64_t *numbers, size_t count,
                               dt_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (numbers[i] < 1)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "'%s': its header has a dimension of %lld: the file is damaged",
                           in->where, (long long)numbers[i]);
    return DT_OK;
}

static dt_status read_llmc(layout *in, const unsigned char *start, size_t length,
                           int64_t file_bytes, dt_error *err)
{
    int32_t version = int32_at(start + 4);
    int64_t numbers[6]; /* T V L NH C Vp */
    dt_status st = DT_OK;

    if (length < LLMC_BYTES)
        DT_THROW(err, DT_ERR_RECIPE, "'%s' is cut off in its header", in->where);
    if (version != 3 && version != 5)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s': version %d of llm.c's models is not supported (3 and 5 are): write the "
                 "file again with a newer train_gpt2.py",
                 in->where, version);
    for (int i = 0; i < 6; i++)
        numbers[i] = int32_at(start + 8 + 4 * i);
    DT_TRY(check_numbers(in, numbers, 6, err));
    if (numbers[5] < numbers[1])
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s': its header has a vocabulary of %lld in %lld rows: the file is damaged",
                 in->where, (long long)numbers[1], (long long)numbers[5]);
    in->layers = numbers[2];
    in->dims[CONTEXT] = numbers[0];
    in->dims[VOCAB_ROWS] = numbers[5];
    in->dims[EMBED] = numbers[4];
    in->dims[EMBED_3] = 3 * numbers[4];
    in->dims[EMBED_4] = 4 * numbers[4];
    in->dtype = version == 5 ? "BF16" : "F32";
    in->width_bytes = version == 5 ? 2 : 4;
    in->out->family = &dt_published_llmc;
    in->out->header_bytes = LLMC_BYTES;
    in->out->head_width = numbers[4] / numbers[3];
    in->out->config = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "model_type", "gpt2",
                                "n_positions", (json_int_t)numbers[0], "vocab_size",
                                (json_int_t)numbers[1], "n_layer", (json_int_t)numbers[2], "n_head",
                                (json_int_t)numbers[3], "n_embd", (json_int_t)numbers[4]);
    DT_TRY(add_tensors(in, llmc_rows, file_bytes, err));
out:
    return st;
}

/* Parses llama2.c's numbers C F L H G V T, all above 0. */
static dt_status take_llama2c(layout *in, const int64_t *numbers, const row *rows,
                              int64_t file_bytes, dt_error *err)
{
    int64_t embed = numbers[0], heads = numbers[3], kv_heads = numbers[4];
    dt_status st = DT_OK;

    if (embed % heads != 0 || embed / heads % 2 != 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s': its header has %lld heads for a width of %lld: the file is damaged",
                 in->where, (long long)heads, (long long)embed);
    in->layers = numbers[2];
    in->dims[EMBED] = embed;
    in->dims[FFN] = numbers[1];
    in->dims[VOCAB] = numbers[5];
    in->dims[CONTEXT] = numbers[6];
    in->dims[KV_WIDTH] = kv_heads * (embed / heads);
    in->dims[HALF_HEAD] = embed / heads / 2;
    in->dtype = "F32";
    in->width_bytes = 4;
    in->out->family = &dt_published_llama2c;
    in->out->head_width = embed / heads;
    in->out->config = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:f}", "model_type", "llama", "hidden_size",
        (json_int_t)embed, "intermediate_size", (json_int_t)numbers[1], "num_hidden_layers",
        (json_int_t)numbers[2], "num_attention_heads", (json_int_t)heads, "num_key_value_heads",
        (json_int_t)kv_heads, "vocab_size", (json_int_t)numbers[5], "max_position_embeddings",
        (json_int_t)numbers[6], "tie_word_embeddings", (int)!in->own_head, "rms_norm_eps", 1e-5);
    DT_TRY(add_tensors(in, rows, file_bytes, err));
out:
    return st;
}

static dt_status read_llama2c(layout *in, const unsigned char *start, size_t length,
                              int64_t file_bytes, dt_error *err)
{
    int32_t version = int32_at(start + 4);
    int64_t numbers[LLAMA2C_LEGACY_INTS];
    dt_status st = DT_OK;

    if (length < LLAMA2C_BYTES)
        DT_THROW(err, DT_ERR_RECIPE, "'%s' is cut off in its header", in->where);
    if (version == 2)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' has weights rounded to 8 bits, which are not supported: export the model "
                 "with --version 1",
                 in->where);
    if (version != 1)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s': version %d of llama2.c's models is not supported (0 and 1 are)", in->where,
                 version);
    for (int i = 0; i < LLAMA2C_LEGACY_INTS; i++)
        numbers[i] = int32_at(start + 8 + 4 * i);
    DT_TRY(check_numbers(in, numbers, LLAMA2C_LEGACY_INTS, err));
    if (start[LLAMA2C_SHARED_AT] > 1)
        DT_THROW(err, DT_ERR_RECIPE, "'%s': its header is damaged at byte %d", in->where,
                 LLAMA2C_SHARED_AT);
    in->own_head = start[LLAMA2C_SHARED_AT] == 0;
    in->out->header_bytes = LLAMA2C_BYTES;
    DT_TRY(take_llama2c(in, numbers, llama2c_rows, file_bytes, err));
out:
    return st;
}

/* Reads version 0, which has no magic number: the dimensions must be plausible and match the size. */
static dt_status read_legacy(layout *in, const unsigned char *start, size_t length,
                             int64_t file_bytes, dt_error *err)
{
    int64_t numbers[LLAMA2C_LEGACY_INTS] = {0};
    bool plausible = length >= sizeof(int32_t) * LLAMA2C_LEGACY_INTS;

    for (int i = 0; plausible && i < LLAMA2C_LEGACY_INTS; i++)
        numbers[i] = int32_at(start + 4 * i);
    in->own_head = numbers[5] < 0;
    if (in->own_head)
        numbers[5] = -numbers[5];
    for (int i = 0; i < LLAMA2C_LEGACY_INTS; i++)
        plausible = plausible && numbers[i] >= 1 && numbers[i] < 1 << 24;
    if (!plausible || numbers[0] % (2 * numbers[3]) != 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s' is not a .bin file of llm.c (GPT-2) or llama2.c (versions 0 and 1)",
                       in->where);
    in->out->header_bytes = (int64_t)sizeof(int32_t) * LLAMA2C_LEGACY_INTS;
    return take_llama2c(in, numbers, llama2c_legacy_rows, file_bytes, err);
}

dt_status dt_weights_bin_parse(dt_weights_bin *out, const unsigned char *start, size_t length,
                               int64_t file_bytes, const char *where, dt_error *err)
{
    layout in = {.out = out, .where = where};
    int32_t magic = length >= 8 ? int32_at(start) : 0;
    dt_status st = DT_OK;

    *out = (dt_weights_bin){0};
    if (magic == LLMC_TOKENS || magic == LLMC_LLAMA_TOKENS)
        DT_THROW(err, DT_ERR_RECIPE, "'%s' contains tokens, not weights: use it for 'data.train'",
                 where);
    if (magic == LLMC_LLAMA_MAGIC)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' is a Llama 3 of llm.c: dtrun reads only GPT-2 from llm.c; use the Hugging "
                 "Face folder that it was made from",
                 where);
    DT_TRY(magic == LLMC_MAGIC      ? read_llmc(&in, start, length, file_bytes, err)
           : magic == LLAMA2C_MAGIC ? read_llama2c(&in, start, length, file_bytes, err)
                                    : read_legacy(&in, start, length, file_bytes, err));
out:
    if (st != DT_OK)
        dt_weights_bin_release(out);
    return st;
}

dt_status dt_weights_bin_read(dt_weights_bin *out, const char *path, dt_error *err)
{
    unsigned char start[DT_WEIGHTS_BIN_HEADER_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    ssize_t length;
    dt_status st = DT_OK;

    *out = (dt_weights_bin){0};
    if (fd < 0 || fstat(fd, &info) != 0 || (length = pread(fd, start, sizeof(start), 0)) < 0)
        DT_THROW(err, DT_ERR_RECIPE, "cannot read '%s': %s", path, strerror(errno));
    DT_TRY(dt_weights_bin_parse(out, start, (size_t)length, info.st_size, path, err));
out:
    if (fd >= 0)
        close(fd);
    return st;
}

void dt_weights_bin_release(dt_weights_bin *bin)
{
    json_decref(bin->config);
    json_decref(bin->tensors);
    *bin = (dt_weights_bin){0};
}
