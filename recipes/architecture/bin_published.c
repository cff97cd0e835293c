/* bin_published: maps GPT-2 of llm.c and Llama of llama2.c: files without names
 * (recipes/architecture/weights_bin.h), whose tensors get the names of transformers in another layout. */
#include "recipes/architecture/published.h"

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
