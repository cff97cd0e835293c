#include "engine/strategy/pass.h"

#include <stdlib.h>
#include <string.h>

#define HOOKS_A_UNIT 5 /* before and after a unit, forward and backward; gradients ready */

/* The values that the ops of a pass contain; the addresses of the units follow it. */
typedef struct pass_key {
    int64_t dim[DT_INPUTS_MAX][DT_MAX_DIMS];
    const void *batch, *clock, *loss_scale;
    uint64_t seed;
    uint64_t data_rank;
} pass_key;

_Static_assert(sizeof(pass_key) ==
                   (2 + DT_INPUTS_MAX * DT_MAX_DIMS) * sizeof(uint64_t) + 3 * sizeof(void *),
               "keys are compared byte by byte: no padding");

typedef struct run {
    dt_pass *pass;
    const dt_batch *batch;
    const double *loss_scale;
    dt_graph_cache *graph_cache; /* the cache that records this run; NULL otherwise */
} run;

static size_t places_bytes(const dt_model *model)
{
    return 2 * (size_t)model->unit_count * sizeof(void *);
}

dt_status dt_pass_open(dt_pass *out, dt_model *model, bool recorded, bool tells, dt_error *err)
{
    dt_status st = DT_OK;

    *out = (dt_pass){.model = model};
    if (!recorded)
        return DT_OK;
    out->places = calloc(1, places_bytes(model));
    if (out->places == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the places of the parameters");
    DT_TRY(dt_graph_cache_open(&out->graph_cache, model->device, "forward and backward pass",
                               sizeof(pass_key) + places_bytes(model),
                               HOOKS_A_UNIT * model->unit_count, tells, err));
out:
    return st;
}

void dt_pass_close(dt_pass *pass)
{
    dt_graph_cache_close(pass->graph_cache);
    free(pass->places);
    memset(pass, 0, sizeof(*pass));
}

/* --- addresses of weights and gradients when a unit is used */

static void copy_places(void **out, const dt_model *model)
{
    size_t bytes = places_bytes(model) / 2;

    memcpy(out, model->weights, bytes);
    memcpy(out + model->unit_count, model->grads, bytes);
}

static void place_units(dt_pass *pass)
{
    const dt_model_hooks *hooks = pass->model->hooks;

    copy_places(pass->places, pass->model);
    if (hooks != NULL && hooks->place_units != NULL)
        hooks->place_units(hooks->self);
}

static void put_back(dt_pass *pass)
{
    dt_model *model = pass->model;
    size_t bytes = places_bytes(model) / 2;

    memcpy(model->weights, pass->places, bytes);
    memcpy(model->grads, pass->places + model->unit_count, bytes);
}

static void write_key(dt_pass *pass, const dt_batch *batch, const double *loss_scale)
{
    unsigned char *key = dt_graph_cache_key(pass->graph_cache);
    pass_key numbers = {.batch = batch->inputs[0].data,
                        .clock = batch->clock,
                        .seed = batch->seed,
                        .loss_scale = loss_scale,
                        .data_rank = batch->data_rank};

    for (int i = 0; i < DT_INPUTS_MAX; i++)
        memcpy(numbers.dim[i], batch->inputs[i].dim, sizeof(numbers.dim[i]));
    memcpy(key, &numbers, sizeof(numbers));
    place_units(pass);
    copy_places((void **)(void *)(key + sizeof(numbers)), pass->model);
    put_back(pass);
}

/* --- hooks, and the breaks that replace them in a recording */

typedef enum hook { BEFORE, AFTER, GRADS_READY, HOOKS } hook;

static int64_t break_of(hook which, int unit, bool backward)
{
    return ((int64_t)unit * 2 + backward) * HOOKS + which;
}

static dt_status call_hook(void *self, int64_t graph_break, dt_error *err)
{
    const run *r = self;
    const dt_model_hooks *hooks = r->pass->model->hooks;
    int unit = (int)(graph_break / HOOKS / 2);
    bool backward = graph_break / HOOKS % 2 != 0;

    switch ((hook)(graph_break % HOOKS)) {
    case BEFORE:
        return hooks->before_unit(hooks->self, unit, backward, err);
    case AFTER:
        return hooks->after_unit(hooks->self, unit, backward, err);
    case GRADS_READY:
        return hooks->unit_grads_ready(hooks->self, unit, err);
    case HOOKS:
        break;
    }
    DT_ASSERT(!"a hook of model.h");
    return DT_OK;
}

static dt_status break_before(void *self, int unit, bool backward, dt_error *err)
{
    const run *r = self;

    return dt_graph_cache_break(r->graph_cache, break_of(BEFORE, unit, backward), err);
}

static dt_status break_after(void *self, int unit, bool backward, dt_error *err)
{
    const run *r = self;

    return dt_graph_cache_break(r->graph_cache, break_of(AFTER, unit, backward), err);
}

static dt_status break_grads_ready(void *self, int unit, dt_error *err)
{
    const run *r = self;

    return dt_graph_cache_break(r->graph_cache, break_of(GRADS_READY, unit, true), err);
}

/* --- a run */

static dt_status give(void *self, dt_error *err)
{
    const run *r = self;

    return dt_model_pass(r->pass->model, r->batch, r->loss_scale, err);
}

static dt_status record(void *self, dt_graph_cache *graph_cache, dt_error *err)
{
    run *r = self;
    dt_model *model = r->pass->model;
    const dt_model_hooks *hooks = model->hooks;
    dt_model_hooks breaks = {.self = r};
    dt_status st;

    if (hooks != NULL) {
        breaks.before_unit = hooks->before_unit != NULL ? break_before : NULL;
        breaks.after_unit = hooks->after_unit != NULL ? break_after : NULL;
        breaks.unit_grads_ready = hooks->unit_grads_ready != NULL ? break_grads_ready : NULL;
    }
    place_units(r->pass);
    r->graph_cache = graph_cache;
    model->hooks = &breaks;
    st = give(r, err);
    model->hooks = hooks;
    put_back(r->pass);
    return st;
}

dt_status dt_pass_run(dt_pass *pass, const dt_batch *batch, const double *loss_scale, dt_error *err)
{
    run r = {.pass = pass, .batch = batch, .loss_scale = loss_scale};
    const dt_graph_cache_ops ops = {
        .self = &r, .give = give, .record = record, .graph_break = call_hook};

    DT_ASSERT(batch->clock != NULL);
    if (pass->graph_cache != NULL)
        write_key(pass, batch, loss_scale);
    return dt_graph_cache_run(pass->graph_cache, &ops, err);
}
