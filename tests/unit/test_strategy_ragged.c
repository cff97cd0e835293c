/* Batches of all sizes: ranks, micro-steps and steps whose batches differ in samples, lengths and counted targets train
 * like one process with all of them, since a step is divided by the targets of all ranks. All kinds of models, every
 * strategy, 1 to 3 ranks.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/config.h"
#include "recipes/fields/fields.h"
#include "tests/dist/ranks.h"
#include "tests/unit/comm_support.h"
#include "tests/unit/strategy_support.h"

#define STEPS   4
#define PIECES  3 /* batches of a step: one for each of three ranks, or all for one process */
#define MOST    5 /* samples of a batch */
#define WIDTH   8 /* tokens, or inputs of a row */
#define CLASSES 11

/* A step's batch `piece`. */
typedef struct piece {
    int64_t samples, width;
    int32_t tokens[MOST * WIDTH], targets[MOST * WIDTH];
    float rows[MOST * WIDTH];
    int64_t counted;
} piece;

static uint32_t mix(uint32_t x)
{
    x = (x ^ 61) ^ (x >> 16);
    x *= 9;
    x ^= x >> 4;
    x *= 0x27d4eb2d;
    return x ^ (x >> 15);
}

/* Samples 1 to MOST, lengths 2 to WIDTH, a third of the targets masked; in every third step no
 * target of the last batch counts. */
static piece make_piece(dt_architecture_kind kind, int step, int index)
{
    uint32_t seed = (uint32_t)(step * PIECES + index + 1);
    bool rows = kind == DT_MODEL_MLP, blank = step % 3 == 2 && index == PIECES - 1;
    piece out = {.samples = 1 + mix(seed) % MOST,
                 .width = rows ? WIDTH : 2 + mix(seed + 1000) % (WIDTH - 1)};

    for (int64_t i = 0; i < out.samples * out.width; i++) {
        out.tokens[i] = (int32_t)(mix(seed * 100 + (uint32_t)i) % CLASSES);
        out.rows[i] = (float)out.tokens[i] / CLASSES - 0.5F;
    }
    for (int64_t i = 0; i < out.samples * (rows ? 1 : out.width); i++) {
        bool masked = blank || mix(seed * 500 + (uint32_t)i) % 3 == 0;

        out.targets[i] = masked ? -1 : (out.tokens[i] * 3 + 1) % CLASSES;
        out.counted += !masked;
    }
    return out;
}

static dt_micro_batch batch_of(dt_architecture_kind kind, piece *from)
{
    bool rows = kind == DT_MODEL_MLP;
    void *inputs = rows ? (void *)from->rows : (void *)from->tokens;

    return (dt_micro_batch){
        .inputs = {dt_tensor_2d(inputs, rows ? DT_F32 : DT_I32, from->samples, from->width),
                   dt_tensor_2d(from->targets, DT_I32, from->samples, rows ? 1 : from->width)},
        .samples = from->samples};
}

/* --- training */

static dt_recipe recipe_of(dt_architecture_kind kind)
{
    dt_recipe recipe;

    dt_recipe_init(&recipe);
    recipe.model.kind = kind;
    recipe.model.layers = 3;
    recipe.model.heads = 2;
    recipe.model.embed = 16;
    recipe.model.vocab = CLASSES;
    recipe.model.kv_heads = 1;
    recipe.model.ffn = 20;
    recipe.model.qk_norm = true;
    recipe.model.inputs = WIDTH;
    recipe.model.outputs = CLASSES;
    recipe.batch.sequences = MOST;
    recipe.batch.tokens = kind == DT_MODEL_MLP ? 1 : WIDTH;
    return recipe;
}

static dt_status open_run(trainee *t, dt_architecture_kind kind, dt_strategy_kind strategy,
                          dt_events *events, int rank, int world_size, int64_t replicas)
{
    dt_recipe recipe = recipe_of(kind);
    dt_model_config config;
    dt_status st = DT_OK;

    *t = (trainee){0};
    dt_model_config_make(&config, &recipe, 0);
    DT_TRY(dt_device_open_cpu(&t->device, 1, NULL));
    DT_TRY(dt_model_open(&t->model, &config, &t->device, NULL));
    DT_TRY(dt_comm_open(&t->comm, events, "main", dt_group_all(rank, world_size), 100, NULL));
    t->state = (dt_strategy_state){.strategy = dt_strategy_find((int)strategy),
                                   .model = t->model,
                                   .mesh = strategy == DT_STRATEGY_FSDP
                                               ? dt_mesh_of(rank, 1, world_size, 1)
                                               : dt_mesh_of(rank, world_size, 1, 1),
                                   .comm = &t->comm,
                                   .events = events,
                                   .options = dt_config_strategy(&recipe, replicas)};
    DT_TRY(t->state.strategy->setup(&t->state, 7, NULL));
out:
    return st;
}

/* Runs the pieces rank, rank + world_size, ...: of three ranks each has one; of two ranks one
 * has two, and the other a second batch without targets that count. */
static dt_status step(trainee *t, dt_architecture_kind kind, int number, double *loss, double *norm)
{
    const dt_strategy *strategy = t->state.strategy;
    int world_size = (int)t->comm.world_size, micro_steps = (PIECES + world_size - 1) / world_size;
    dt_recipe recipe = recipe_of(kind);
    dt_optimizer_args args = {.options = recipe.optimizer, .lr = 1e-2, .grad_scale = 1};
    int64_t counted = 0;
    dt_status st = DT_OK;

    *loss = 0;
    for (int i = 0; i < PIECES; i++)
        counted += make_piece(kind, number, i).counted;
    DT_TRY(strategy->step_begin(&t->state, micro_steps, NULL));
    for (int m = 0; m < micro_steps; m++) {
        int index = m * world_size + (int)t->comm.rank;
        piece mine = make_piece(kind, number, index % PIECES);
        dt_micro_batch batch = batch_of(kind, &mine);
        double sum;

        for (int64_t i = 0; index >= PIECES && i < MOST * WIDTH; i++)
            mine.targets[i] = -1;
        DT_TRY(strategy->forward_backward(&t->state, &batch, 1.0 / (double)counted, &sum, NULL));
        *loss += sum / (double)counted;
    }
    DT_TRY(strategy->grads_finish(&t->state, NULL));
    DT_TRY(strategy->grad_norm(&t->state, norm, NULL));
    args.step = number + 1;
    DT_TRY(strategy->update(&t->state, &args, NULL));
    DT_TRY(t->comm.all_reduce_f64(&t->comm, loss, 1, NULL));
out:
    return st;
}

typedef struct course {
    double loss[STEPS], norm[STEPS];
} course;

static int train(course *out, dt_architecture_kind kind, dt_strategy_kind strategy,
                 dt_events *events, int rank, int world_size, int64_t replicas)
{
    trainee t;

    CHECK(!open_run(&t, kind, strategy, events, rank, world_size, replicas));
    for (int i = 0; i < STEPS; i++)
        CHECK(!step(&t, kind, i, &out->loss[i], &out->norm[i]));
    close_trainee(&t);
    return 0;
}

static bool agree(const double *a, const double *b)
{
    for (int i = 0; i < STEPS; i++)
        if (!(fabs(a[i] - b[i]) <= 1e-6 * fabs(a[i])))
            return false;
    return true;
}

/* --- tests */

static int body(int rank, void *self)
{
    static const dt_architecture_kind kinds[] = {DT_MODEL_GPT2, DT_MODEL_MLP, DT_MODEL_LLAMA};
    const int *world_size = self;
    dt_events *events;

    CHECK(!dt_events_open(&events, rank, *world_size, NULL));
    for (int k = 0; k < 3; k++) {
        course one, many;

        CHECK(!train(&one, kinds[k], DT_STRATEGY_DDP, NULL, 0, 1, 1));
        CHECK(isfinite(one.loss[STEPS - 1]) && one.norm[0] > 0);
        CHECK(!train(&many, kinds[k], DT_STRATEGY_DDP, events, rank, *world_size, 1));
        CHECK(agree(one.loss, many.loss) && agree(one.norm, many.norm));
        CHECK(!train(&many, kinds[k], DT_STRATEGY_FSDP, events, rank, *world_size, 1));
        CHECK(agree(one.loss, many.loss) && agree(one.norm, many.norm));
    }
    dt_events_close(events);
    return 0;
}

static void test_ranks_whose_batches_differ_are_as_one_process(void **state)
{
    for (int world_size = 1; world_size <= 3; world_size++) {
        ranks all = {
            .world_size = world_size, .timeout_seconds = 250, .body = body, .self = &world_size};

        assert_int_equal(ranks_run(&all), 0);
    }
}

/* Two or four replicas have unequal parts of 1 to 5 samples, or none. */
static void test_replicas_share_what_they_cannot_divide(void **state)
{
    static const dt_architecture_kind kinds[] = {DT_MODEL_GPT2, DT_MODEL_MLP, DT_MODEL_LLAMA};

    for (int k = 0; k < 3; k++) {
        course one, many;

        assert_int_equal(train(&one, kinds[k], DT_STRATEGY_DDP, NULL, 0, 1, 1), 0);
        for (int64_t replicas = 2; replicas <= 4; replicas++) {
            assert_int_equal(train(&many, kinds[k], DT_STRATEGY_DP, NULL, 0, 1, replicas), 0);
            assert_true(agree(one.loss, many.loss) && agree(one.norm, many.norm));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_whose_batches_differ_are_as_one_process),
        cmocka_unit_test(test_replicas_share_what_they_cannot_divide),
    };

    return cmocka_run_group_tests_name("strategy: ragged batches", tests, NULL, NULL);
}
