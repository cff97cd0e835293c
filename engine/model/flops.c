#include "engine/model/model.h"

#include "base/banned.h"

/* 6 N + 12 L C T (Chowdhery et al. 2022, appendix B). N counts the matrices that a token is
 * multiplied with: per block c_attn 3 C^2, c_proj C^2, c_fc 4 C^2, c_proj 4 C^2; the head once,
 * without its padding, whether it is the token embedding or a matrix of its own; not what is only
 * looked up: positions, and the token embedding beside an untied head. The second term is
 * attention's two products, the causal half counted whole as is usual. */
double dt_model_flops_per_token(const dt_model_config *config)
{
    double L = (double)config->layers, C = (double)config->embed;
    double N = 12 * L * C * C + (double)config->vocab * C;

    return 6 * N + 12 * L * C * (double)config->tokens;
}
