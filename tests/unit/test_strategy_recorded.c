/* What a strategy gives to a device that records graphs: changing values are set before every
 * launch, and only training steps are replayed. The device is the CPU with queues, graphs and
 * two ops that record their calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "engine/device/queue.h"
#include "engine/ops/ops.h"
#include "tests/unit/strategy_support.h"

static const dt_queues *real_queues;
static const dt_ops *real_ops;
static dt_queues queues;
static dt_ops ops;
static char trace[1024];
static int graphs_open;

/* Notes repeated ops once. */
static void note(const char *what)
{
    size_t used = strlen(trace), length = strlen(what);

    if (used < length || strcmp(trace + used - length, what) != 0)
        snprintf(trace + used, sizeof(trace) - used, "%s", what);
}

static dt_status copy_in(dt_device *device, dt_queue *queue, void *memory, const void *host,
                         size_t bytes, dt_error *err)
{
    note(bytes == DT_OPTIMIZER_GROUPS * sizeof(dt_optimizer_factors) ? "factors " : "batch ");
    return real_queues->copy_in(device, queue, memory, host, bytes, err);
}

static dt_status embedding_forward(dt_device *device, dt_tensor *out, const dt_tensor *tokens,
                                   const dt_tensor *wte, const dt_tensor *wpe, double scale,
                                   const dt_vocab_part *part, dt_error *err)
{
    note("pass ");
    return real_ops->embedding_forward(device, out, tokens, wte, wpe, scale, part, err);
}

static dt_status optimizer_step(dt_device *device, dt_optimizer_rule rule, dt_tensor *param,
                                dt_tensor *copy, dt_tensor *states, const dt_tensor *grad,
                                const dt_optimizer_factors *factors, dt_error *err)
{
    note("update ");
    return real_ops->optimizer_step(device, rule, param, copy, states, grad, factors, err);
}

static dt_status begin(dt_device *device, dt_error *err)
{
    note("record{ ");
    return DT_OK;
}

static dt_status end(dt_device *device, dt_graph **out, int64_t *nodes, dt_error *err)
{
    note("} ");
    *out = (dt_graph *)(void *)trace; /* any address */
    *nodes = 1;
    graphs_open++;
    return DT_OK;
}

static dt_status launch(dt_device *device, dt_graph *graph, dt_error *err)
{
    note("graph ");
    return DT_OK;
}

static bool valid(dt_device *device, const dt_graph *graph)
{
    return true;
}

static void free_graph(dt_device *device, dt_graph *graph)
{
    graphs_open -= graph != NULL;
}

static const dt_graphs graphs = {
    .begin = begin, .end = end, .launch = launch, .valid = valid, .free = free_graph};

static dt_status open_recorded(trainee *t, const dt_strategy *strategy, dt_error *err)
{
    const dt_model_config config = {.decoder.layers = 1,
                                    .decoder.heads = 1,
                                    .decoder.embed = 16,
                                    .decoder.vocab = 11,
                                    .decoder.vocab_padded = 128,
                                    .decoder.context = TOKENS,
                                    .batch = SEQUENCES,
                                    .tokens = TOKENS,
                                    .dtype = DT_F32};
    dt_status st = DT_OK;

    memset(t, 0, sizeof(*t));
    DT_TRY(dt_device_open_cpu(&t->device, 1, err));
    real_queues = t->device.queues;
    real_ops = t->device.ops;
    queues = *real_queues;
    queues.copy_in = copy_in;
    ops = *real_ops;
    ops.embedding_forward = embedding_forward;
    ops.optimizer_step = optimizer_step;
    t->device.queues = &queues;
    t->device.ops = &ops;
    t->device.graphs = &graphs;
    DT_TRY(dt_model_open(&t->model, &config, &t->device, err));
    DT_TRY(dt_comm_open(&t->comm, NULL, "main", dt_group_all(0, 1), 20, err));
    t->state.strategy = strategy;
    t->state.model = t->model;
    t->state.mesh = dt_mesh_of(0, 1, 1, 1);
    t->state.comm = &t->comm;
    t->state.options = default_options();
    t->state.options.graphs = true;
    DT_TRY(strategy->setup(&t->state, 7, err));
    trace[0] = '\0';
    graphs_open = 0;
out:
    return st;
}

static dt_micro_batch batch_of(int32_t *numbers)
{
    return (dt_micro_batch){.inputs = {dt_tensor_2d(numbers, DT_I32, SEQUENCES, TOKENS),
                                       dt_tensor_2d(numbers, DT_I32, SEQUENCES, TOKENS)},
                            .samples = SEQUENCES};
}

/* Skips the norm, since a replayed graph computes nothing here. */
static const char *step(trainee *t)
{
    const dt_strategy *strategy = t->state.strategy;
    int32_t numbers[SEQUENCES * TOKENS] = {0};
    dt_micro_batch batch = batch_of(numbers);
    dt_optimizer_args args = {
        .options = {.beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8}, .lr = 1e-2, .step = 1};
    double sum;

    trace[0] = '\0';
    assert_int_equal(strategy->step_begin(&t->state, 1, NULL), DT_OK);
    assert_int_equal(strategy->forward_backward(&t->state, &batch, 1, &sum, NULL), DT_OK);
    assert_int_equal(strategy->grads_finish(&t->state, NULL), DT_OK);
    assert_int_equal(strategy->update(&t->state, &args, NULL), DT_OK);
    return trace;
}

static const char *evaluate(trainee *t)
{
    int32_t numbers[SEQUENCES * TOKENS] = {0};
    dt_micro_batch batch = batch_of(numbers);
    double counted;
    double loss;

    trace[0] = '\0';
    assert_int_equal(t->state.strategy->evaluate(&t->state, &batch, &loss, &counted, NULL), DT_OK);
    return trace;
}

static void test_what_changes_goes_ahead_of_every_launch(void **state)
{
    dt_error err = DT_ERROR_INIT;
    trainee t;

    assert_int_equal(open_recorded(&t, &dt_strategy_ddp, &err), DT_OK);
    assert_string_equal(step(&t), "batch pass factors update ");
    assert_string_equal(step(&t), "batch pass factors update ");
    assert_string_equal(step(&t), "batch record{ pass } graph factors record{ update } graph ");
    assert_string_equal(step(&t), "batch graph factors graph ");
    assert_string_equal(evaluate(&t), "batch pass ");
    assert_string_equal(step(&t), "batch graph factors graph ");
    close_trainee(&t);
    assert_int_equal(graphs_open, 0);
}

/* fsdp: the graphs of one pass, one for each piece between gathers and reductions. Weights and
 * gradients that a pass left unset are unset after a recording too. */
static void test_a_recording_leaves_units_where_they_were(void **state)
{
    dt_error err = DT_ERROR_INIT;
    trainee t;

    assert_int_equal(open_recorded(&t, &dt_strategy_fsdp, &err), DT_OK);
    for (int i = 0; i < 2; i++)
        assert_string_equal(step(&t), "batch pass factors update ");
    assert_null(t.model->weights[1]);
    assert_null(t.model->grads[1]);
    (void)step(&t);
    assert_true(graphs_open > 2);
    assert_null(t.model->weights[1]);
    assert_null(t.model->grads[1]);
    assert_string_equal(step(&t), "batch graph factors graph ");
    close_trainee(&t);
    assert_int_equal(graphs_open, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_changes_goes_ahead_of_every_launch),
        cmocka_unit_test(test_a_recording_leaves_units_where_they_were),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
