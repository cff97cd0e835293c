/* params: builds the parameter table of a model, and draws initial values. Nothing here needs a device's
 * code, so that programs can link it without one. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/kind.h"
#include "engine/model/model.h"
#include "engine/philox.h"

void dt_model_make_table(dt_model *model)
{
    dt_param_table table;

    dt_param_table_make(&table, &model->config, &model->arena);
    model->params = table.params;
    model->param_count = table.param_count;
    model->units = table.units;
    model->unit_count = table.unit_count;
}

dt_status dt_model_describe(dt_model **out, const dt_model_config *config, dt_error *err)
{
    dt_model *model = calloc(1, sizeof *model);
    dt_status st = DT_OK;

    *out = NULL;
    if (!model)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a table of parameters");
    model->config = *config;
    dt_model_make_table(model);
    *out = model;
    model = NULL;
out:
    dt_model_description_free(model);
    return st;
}

void dt_model_description_free(dt_model *model)
{
    if (!model)
        return;
    dt_arena_release(&model->arena);
    free(model);
}

#define TWO_PI      6.283185307179586
#define ALONE_ELEMS 65536 /* below this, waking threads is not worthwhile */

/* Box and Muller 1958: two uniform words give two normal numbers, so a Philox block gives four. */
static void normal_block(float out[4], const dt_philox_key *key, uint64_t block, double std)
{
    dt_philox_block words = dt_philox_draw(key, block);

    for (int i = 0; i < 4; i += 2) {
        /* range (0, 1], so that the logarithm exists */
        double u = 1.0 - (double)dt_philox_uniform(words.word[i]);
        double angle = TWO_PI * (double)dt_philox_uniform(words.word[i + 1]);
        double radius = std * sqrt(-2.0 * log(u));

        out[i] = (float)(radius * cos(angle));
        out[i + 1] = (float)(radius * sin(angle));
    }
}

/* Fill elements first .. first + elems of the whole parameter. Each value depends only on its index, so
 * any share, drawn by any number of threads, has the same bits. */
static void fill_normal(float *out, int64_t first, int64_t elems, const dt_philox_key *key,
                        double std, int threads)
{
    int64_t end = first + elems;

#pragma omp parallel for schedule(static) num_threads(threads) if (elems >= ALONE_ELEMS)
    for (int64_t block = first / 4; block < (end + 3) / 4; block++) {
        float numbers[4];

        normal_block(numbers, key, (uint64_t)block, std);
        for (int64_t j = 0; j < 4; j++)
            if (4 * block + j >= first && 4 * block + j < end)
                out[4 * block + j - first] = numbers[j];
    }
}

/* The same for numbers of equal probability between -bound and bound. */
static void fill_uniform(float *out, int64_t first, int64_t elems, const dt_philox_key *key,
                         double bound)
{
    int64_t end = first + elems;

    for (int64_t block = first / 4; block < (end + 3) / 4; block++) {
        dt_philox_block words = dt_philox_draw(key, (uint64_t)block);

        for (int64_t j = 0; j < 4; j++)
            if (4 * block + j >= first && 4 * block + j < end)
                out[4 * block + j - first] =
                    (float)(bound * (2.0 * (double)dt_philox_uniform(words.word[j]) - 1.0));
    }
}

/* Threads for the initialization. For a GPU, all cores: they are idle at that time. A CPU rank uses
 * its share. */
static int threads_of(const dt_device *device)
{
    return device->host_reads && device->threads > 0 ? device->threads : omp_get_num_procs();
}

void dt_model_init_range(float *out, const dt_model *model, int param, int64_t first, int64_t elems,
                         uint64_t seed)
{
    const dt_param *p = &model->params[param];
    /* the parameter's index, in the counter's word for the step, makes parameters differ */
    dt_philox_key key = {.seed = seed, .step = (uint32_t)param, .op = DT_PHILOX_INIT};
    int64_t drawn, limit;

    DT_ASSERT(param >= 0 && param < model->param_count);
    DT_ASSERT(first >= 0 && elems >= 0 && elems <= p->elems - first);
    switch (p->init) {
    case DT_INIT_ZERO:
        memset(out, 0, (size_t)elems * sizeof *out);
        break;
    case DT_INIT_ONE:
        for (int64_t i = 0; i < elems; i++)
            out[i] = 1.0f;
        break;
    case DT_INIT_NORMAL:
        limit = p->elems / p->dim[0] * p->stored_rows;
        drawn = first >= limit ? 0 : first + elems > limit ? limit - first : elems;
        memset(out + drawn, 0, (size_t)(elems - drawn) * sizeof *out);
        fill_normal(out, first, drawn, &key, p->init_std, threads_of(model->device));
        break;
    case DT_INIT_UNIFORM:
        fill_uniform(out, first, elems, &key, p->init_std);
        break;
    }
}

void dt_model_init_param(float *out, const dt_model *model, int param, uint64_t seed)
{
    dt_model_init_range(out, model, param, 0, model->params[param].elems, seed);
}
