#include <math.h>
#include <string.h>

#include "engine/model/model.h"
#include "engine/philox.h"

#include "base/banned.h"

#define TWO_PI 6.283185307179586

/* Box and Muller 1958: two uniform words give two normal numbers, so a Philox block gives four. */
static void normal_block(float out[4], const dt_philox_key *key, uint64_t block, double std)
{
    dt_philox_block words = dt_philox_draw(key, block);

    for (int i = 0; i < 4; i += 2) {
        double u = 1.0 - (double)dt_philox_uniform(words.word[i]); /* (0, 1]: has a logarithm */
        double angle = TWO_PI * (double)dt_philox_uniform(words.word[i + 1]);
        double radius = std * sqrt(-2.0 * log(u));

        out[i] = (float)(radius * cos(angle));
        out[i + 1] = (float)(radius * sin(angle));
    }
}

static void fill_normal(float *out, int64_t elems, const dt_philox_key *key, double std)
{
    float block[4];

    for (int64_t i = 0; i < elems; i += 4) {
        normal_block(block, key, (uint64_t)i / 4, std);
        for (int64_t j = 0; j < 4 && i + j < elems; j++)
            out[i + j] = block[j];
    }
}

void dt_model_init_param(float *out, const dt_model *model, int param, uint64_t seed)
{
    const dt_param *p = &model->params[param];
    /* the place in the table tells parameters apart, in the counter's word for the step */
    dt_philox_key key = {.seed = seed, .step = (uint32_t)param, .op = DT_PHILOX_INIT};
    int64_t elems;

    DT_ASSERT(param >= 0 && param < model->param_count);
    elems = p->elems;
    switch (p->init) {
    case DT_INIT_ZERO:
        memset(out, 0, (size_t)elems * sizeof *out);
        break;
    case DT_INIT_ONE:
        for (int64_t i = 0; i < elems; i++)
            out[i] = 1.0f;
        break;
    case DT_INIT_NORMAL:
        /* no token has the padded rows */
        if (strcmp(p->name, "wte.weight") == 0 || strcmp(p->name, "lm_head.weight") == 0) {
            elems = model->config.vocab * p->dim[1];
            memset(out + elems, 0, (size_t)(p->elems - elems) * sizeof *out);
        }
        fill_normal(out, elems, &key, p->init_std);
        break;
    }
}
