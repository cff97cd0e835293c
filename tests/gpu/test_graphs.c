/* Recorded steps on an emulated card have the same bits as steps that are launched one by one, with
 * dropout, and with anything between them. There are few tiny steps, because a single sum has 1,024
 * blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "engine/device/device_cuda.h"
#include "engine/device/queue.h"
#include "engine/strategy/strategy.h"

#define SEQUENCES 2
#define TOKENS    4
#define VOCAB     11
#define STEPS     7 /* at most */

extern const dt_cuda_entry dt_cuda_entry_1;
extern int dt_emulated_captures_refused; /* emulated/emulator.h */

/* --- a card that counts its graphs, and whose graphs fail on request */

static const dt_graphs *real;
static int recorded, launched;
static bool refuses;

static dt_status end(dt_device *device, dt_graph **out, int64_t *nodes, dt_error *err)
{
    dt_status st = real->end(device, out, nodes, err);

    recorded++;
    if (st == DT_OK && refuses) {
        real->free(device, *out);
        *out = NULL;
        return DT_FAIL(err, DT_ERR_CUDA, "no graphs today");
    }
    return st;
}

static dt_status launch(dt_device *device, dt_graph *graph, dt_error *err)
{
    launched++;
    return real->launch(device, graph, err);
}

static dt_graphs counted;

/* --- a model under a strategy */

typedef struct trainee {
    dt_device device;
    dt_model *model;
    dt_comm comm;
    dt_strategy_state state;
} trainee;

static const dt_model_config config = {.decoder.layers = 1,
                                       .decoder.heads = 2,
                                       .decoder.embed = 16,
                                       .decoder.vocab = VOCAB,
                                       .decoder.vocab_padded = 128,
                                       .decoder.context = 2 * TOKENS,
                                       .batch = SEQUENCES,
                                       .tokens = 2 * TOKENS,
                                       .decoder.dropout = 0.2,
                                       .decoder.attention_dropout = 0.1,
                                       .dtype = DT_BF16};

static void open_trainee(trainee *t, const dt_strategy *strategy, bool graphs)
{
    dt_error err = DT_ERROR_INIT;

    memset(t, 0, sizeof(*t));
    recorded = launched = 0;
    assert_int_equal(dt_cuda_entry_1.open(&t->device, 0, false, &err), DT_OK);
    real = t->device.graphs;
    counted = *real;
    counted.end = end;
    counted.launch = launch;
    t->device.graphs = &counted;
    assert_int_equal(dt_model_open(&t->model, &config, &t->device, &err), DT_OK);
    assert_int_equal(dt_comm_open(&t->comm, NULL, "main", dt_group_all(0, 1), 20, &err), DT_OK);
    t->state = (dt_strategy_state){.strategy = strategy,
                                   .model = t->model,
                                   .mesh = dt_mesh_of(0, 1, 1, 1),
                                   .comm = &t->comm,
                                   .options = {.bucket_mb = 25,
                                               .first_bucket_mb = 1,
                                               .reshard_after_forward = true,
                                               .reduce_each_micro_step = true,
                                               .replicas = 1,
                                               .graphs = graphs}};
    assert_int_equal(strategy->setup(&t->state, 7, &err), DT_OK);
}

static void close_trainee(trainee *t)
{
    t->state.strategy->teardown(&t->state);
    dt_comm_close(&t->comm);
    dt_model_close(t->model);
    dt_device_close(&t->device);
}

static dt_micro_batch batch_of(int32_t *numbers, int64_t tokens, int64_t step)
{
    int32_t *inputs = numbers, *targets = numbers + SEQUENCES * tokens;

    for (int64_t i = 0; i < SEQUENCES * tokens; i++) {
        inputs[i] = (int32_t)((i + 3 * step) % VOCAB);
        targets[i] = (inputs[i] + 1) % VOCAB;
    }
    return (dt_micro_batch){.inputs = {dt_tensor_2d(inputs, DT_I32, SEQUENCES, tokens),
                                       dt_tensor_2d(targets, DT_I32, SEQUENCES, tokens)},
                            .samples = SEQUENCES,
                            .seed = 7,
                            .step = (uint32_t)step};
}

/* `scale`: scale of the loss, as fp16 changes it. Returns the sum over the tokens. */
static double train_step(trainee *t, int64_t step, int micro_steps, double scale)
{
    const dt_strategy *strategy = t->state.strategy;
    double scale_each = scale / (micro_steps * SEQUENCES * TOKENS), loss, sum = 0;
    int32_t numbers[2 * SEQUENCES * TOKENS];
    dt_micro_batch batch = batch_of(numbers, TOKENS, step);
    dt_optimizer_args args = {
        .options = {.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.1},
        .lr = 1e-2 / (double)(step + 1),
        .step = step + 1,
        .grad_scale = 1 / scale};
    dt_error err = DT_ERROR_INIT;

    assert_int_equal(strategy->step_begin(&t->state, micro_steps, &err), DT_OK);
    for (int m = 0; m < micro_steps; m++) {
        batch.micro_step = (uint32_t)m;
        assert_int_equal(strategy->forward_backward(&t->state, &batch, scale_each, &loss, &err),
                         DT_OK);
        sum += loss;
    }
    assert_int_equal(strategy->grads_finish(&t->state, &err), DT_OK);
    assert_int_equal(strategy->update(&t->state, &args, &err), DT_OK);
    assert_int_equal(t->device.synchronize(&t->device, &err), DT_OK);
    return sum;
}

/* Work between steps: an evaluation of longer sequences, which needs more working memory, and a
 * checkpoint. */
static double between_steps(trainee *t)
{
    const dt_strategy *strategy = t->state.strategy;
    int32_t numbers[2 * SEQUENCES * 2 * TOKENS];
    dt_micro_batch batch = batch_of(numbers, 2 * TOKENS, 99);
    const dt_state_chunk *chunks;
    dt_error err = DT_ERROR_INIT;
    double counted_targets;
    double loss;
    int count;

    assert_int_equal(strategy->evaluate(&t->state, &batch, &loss, &counted_targets, &err), DT_OK);
    assert_int_equal(strategy->export_state(&t->state, &chunks, &count, &err), DT_OK);
    return loss;
}

typedef struct history {
    double losses[STEPS], valid;
    int launched[STEPS], recorded[STEPS];
} history;

/* An evaluation and a checkpoint after the third step; another scale from the fifth step on. */
static history train(const dt_strategy *strategy, bool graphs, int steps, int micro_steps)
{
    history h = {0};
    trainee t;

    open_trainee(&t, strategy, graphs);
    for (int step = 0; step < steps; step++) {
        h.losses[step] = train_step(&t, step, micro_steps, step < 4 ? 1 : 2);
        h.launched[step] = launched;
        h.recorded[step] = recorded;
        if (step == 2)
            h.valid = between_steps(&t);
    }
    close_trainee(&t);
    return h;
}

static void assert_same_bits(const history *a, const history *b, int steps)
{
    assert_memory_equal(a->losses, b->losses, (size_t)steps * sizeof(a->losses[0]));
    assert_memory_equal(&a->valid, &b->valid, sizeof(a->valid));
}

/* One graph for the pass, if no hook interrupts it, and one for the update. */
static void test_one_process_computes_the_same_bits_from_graphs(void **state)
{
    history plain = train(&dt_strategy_ddp, false, 7, 1);
    history graphs = train(&dt_strategy_ddp, true, 7, 1), refused;

    assert_int_equal(plain.recorded[6], 0);
    assert_same_bits(&plain, &graphs, 7);
    assert_int_equal(graphs.recorded[1], 0); /* two equal ones come first */
    assert_int_equal(graphs.recorded[2], 2);
    assert_int_equal(graphs.launched[2], 2);
    assert_int_equal(graphs.launched[3], 4);
    assert_int_equal(graphs.launched[4], 6); /* the pass too, with any scale */
    assert_int_equal(graphs.launched[6], 10);
    assert_int_equal(graphs.recorded[6], graphs.recorded[3]);

    refuses = true;
    refused = train(&dt_strategy_ddp, true, 4, 1);
    refuses = false;
    assert_same_bits(&plain, &refused, 4);
    assert_int_equal(refused.recorded[3], 2); /* each is tried once */
    assert_int_equal(refused.launched[3], 0);

    dt_emulated_captures_refused = 1; /* of the pass; the recording of the update starts */
    refused = train(&dt_strategy_ddp, true, 3, 1);
    assert_same_bits(&plain, &refused, 3);
    assert_int_equal(refused.recorded[2], 1);
    assert_int_equal(refused.launched[2], 1);
}

/* The first micro-step has a graph of its own, since it overwrites gradients. Each has its own dropout. */
static void test_two_micro_steps_compute_the_same_bits_from_graphs(void **state)
{
    history plain = train(&dt_strategy_ddp, false, 4, 2);
    history graphs = train(&dt_strategy_ddp, true, 4, 2);

    assert_same_bits(&plain, &graphs, 4); /* gradients of the last one, which a graph has summed */
    assert_int_equal(graphs.launched[1], 0);
    assert_int_equal(graphs.recorded[2], 3); /* both passes and the update, at their third run */
    assert_int_equal(graphs.launched[2], 3);
    assert_int_equal(graphs.launched[3], 6);

    plain = train(&dt_strategy_ddp, false, 4, 3);
    graphs = train(&dt_strategy_ddp, true, 4, 3);
    assert_same_bits(&plain, &graphs, 4);
    assert_int_equal(graphs.recorded[1], 1); /* the pass of the second and third micro-step */
    assert_int_equal(graphs.recorded[2], 3);
}

static void test_fsdp_computes_the_same_bits_from_graphs_cut_at_its_units(void **state)
{
    history plain = train(&dt_strategy_fsdp, false, 4, 1);
    history graphs = train(&dt_strategy_fsdp, true, 4, 1);

    assert_same_bits(&plain, &graphs, 4);
    assert_int_equal(graphs.launched[1], 0);
    assert_true(graphs.launched[2] > 2);
    assert_int_equal(graphs.launched[3], 2 * graphs.launched[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_process_computes_the_same_bits_from_graphs),
        cmocka_unit_test(test_two_micro_steps_compute_the_same_bits_from_graphs),
        cmocka_unit_test(test_fsdp_computes_the_same_bits_from_graphs_cut_at_its_units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
