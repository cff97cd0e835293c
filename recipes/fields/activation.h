/* activation: names the functions between the products of a feed-forward layer.
 *
 * Every op sees this header, so it includes nothing: a change of the recipe's fields compiles no kernel again.
 */
#ifndef DT_RECIPES_FIELDS_ACTIVATION_H
#define DT_RECIPES_FIELDS_ACTIVATION_H

/* GELU_TANH is GPT-2's tanh approximation of GELU; GELU is x Phi(x). */
typedef enum dt_activation_kind {
    DT_ACTIVATION_GELU_TANH,
    DT_ACTIVATION_GELU,
    DT_ACTIVATION_RELU,
    DT_ACTIVATION_TANH
} dt_activation_kind;

/* The function of the gate of a gated layer: y = f(gate) up (Shazeer 2020). SILU is x sigmoid(x). */
typedef enum dt_gate_kind { DT_GATE_SILU, DT_GATE_GELU_TANH, DT_GATE_GELU } dt_gate_kind;

#endif
