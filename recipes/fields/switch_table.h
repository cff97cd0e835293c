/* switch_table: the table of the switches of kind llama: X(type, name). Every model of Hugging Face's that this kind
 * computes is a set of values of them (recipes/architecture/families.c).
 *
 * A row makes the member `name` of dt_recipe.model and of the kind's config, and the kind read the field "model.NAME",
 * whose limits, default and help are in fields_model.inc. The default is Llama's. A family that has no word for a switch
 * computes it with its default.
 */
#ifndef DT_RECIPES_FIELDS_SWITCH_TABLE_H
#define DT_RECIPES_FIELDS_SWITCH_TABLE_H

#define DT_SWITCHES(X)                                                                      \
    /* rotary positions */                                                                  \
    X(double, rope_theta)                                                                   \
    X(double, rope_local_theta) /* of layers with a window, not scaled; 0: as the others */ \
    X(double, rotary_share)     /* of a head's elements; 0: all */                          \
    X(const char *, rope_layers)                                                            \
    X(dt_rope_scaling_kind, rope_scaling)                                                   \
    X(double, rope_factor)                                                                  \
    X(double, rope_low_freq_factor)                                                         \
    X(double, rope_high_freq_factor)                                                        \
    X(int64_t, rope_original_tokens)                                                        \
    X(double, rope_attention_factor) /* 0: by the type of scaling */                        \
    X(double, rope_beta_fast)                                                               \
    X(double, rope_beta_slow)                                                               \
    X(double, rope_mscale)                                                                  \
    X(double, rope_mscale_all)                                                              \
    X(bool, rope_truncate)                                                                  \
    X(dt_string_list, rope_short_factors)                                                   \
    X(dt_string_list, rope_long_factors)                                                    \
    /* attention */                                                                         \
    X(int64_t, window) /* 0: none */                                                        \
    X(const char *, window_layers)                                                          \
    X(double, attention_multiplier) /* 0: by query_scalar */                                \
    X(int64_t, query_scalar)        /* 0: head_width */                                     \
    X(double, attention_softcap)    /* 0: none */                                           \
    X(bool, qkv_bias)                                                                       \
    X(bool, o_bias)                                                                         \
    X(bool, qk_norm)                                                                        \
    X(bool, qk_norm_whole)                                                                  \
    /* blocks */                                                                            \
    X(dt_block_norms_kind, block_norms)                                                     \
    X(bool, norm_plus_one)                                                                  \
    X(bool, layer_norm)                                                                     \
    X(dt_gate_kind, gate)                                                                   \
    X(bool, mlp_bias)                                                                       \
    X(double, residual_multiplier) /* 0: 1, like the other multipliers */                   \
    /* both ends */                                                                         \
    X(double, embedding_multiplier)                                                         \
    X(double, logits_divisor)                                                               \
    X(double, logits_softcap) /* 0: none */

#define DT_SWITCH_MEMBER(type, name) type name;

#endif
