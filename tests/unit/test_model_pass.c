/* Properties of a pass apart from its numbers: accumulation, hooks, dropout, repeatability, chunks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "engine/model/decoder/decoder.h"
#include "tests/unit/model_harness.h"

static void open_filled(harness *h, const dt_model_config *config)
{
    harness_open(h, config);
    harness_init(h, 5);
    harness_fill_batch(h, 9);
}

static void test_eight_sequences_at_once_equal_four_times_two(void **state)
{
    dt_model_config config = harness_config();
    double once, sum = 0, scale;
    float *whole, *parts;
    int64_t elems;
    harness h;

    harness_open(&h, &config);
    harness_init(&h, 5);
    scale = 1.0 / (double)harness_fill_batch(&h, 9); /* of the whole step in both cases */
    for (int64_t t = 0; t < 2 * config.tokens; t++)
        h.targets[t] = -1; /* no target of the first quarter counts */
    once = harness_pass(&h, &h.batch, scale);
    whole = harness_copy_grads(&h, &elems);
    harness_zero_grads(&h);
    for (int64_t first = 0; first < 8; first += 2) {
        dt_batch part = harness_batch(&h, first, 2);

        sum += harness_pass(&h, &part, scale);
    }
    parts = harness_copy_grads(&h, &elems);
    assert_true(fabs(sum - once) < 1e-5 * once);
    assert_true(relative_norm(parts, whole, elems) < 1e-5);
    free(whole);
    free(parts);
    harness_close(&h);
}

/* Two symmetric steps give the slope up to their square. The pass itself has fp32 errors, hence
 * the long step and the loose bound. The golden tests are more exact; this one needs no fixture. */
static void test_gradients_are_the_slope_of_the_loss(void **state)
{
    static const struct {
        const char *name;
        int64_t element;
    } chosen[] = {{"wte.weight", 5 * 24 + 3},
                  {"wpe.weight", 2 * 24 + 7},
                  {"ln_f.weight", 4},
                  {"ln_f.bias", 11},
                  {"h.0.ln_1.weight", 3},
                  {"h.0.attn.c_attn.weight", 50 * 24 + 2},
                  {"h.0.attn.c_attn.bias", 60},
                  {"h.0.attn.c_proj.weight", 100},
                  {"h.1.ln_2.bias", 9},
                  {"h.1.mlp.c_fc.weight", 77},
                  {"h.1.mlp.c_proj.weight", 1234},
                  {"h.1.mlp.c_proj.bias", 0}};
    dt_model_config config = harness_config();
    harness h;
    double scale;

    config.decoder.dropout = config.decoder.attention_dropout =
        0.1; /* every pass has the same masks */
    open_filled(&h, &config);
    scale = 1.0 / (double)(config.batch * config.tokens);
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) {
        int param = harness_param(&h, chosen[i].name);
        float *value = &harness_value(&h, param)[chosen[i].element], kept = *value, low, high;
        double above, below, slope, grad;

        harness_zero_grads(&h);
        harness_pass(&h, &h.batch, scale);
        grad = harness_grad(&h, param)[chosen[i].element];
        *value = high = kept + 0.02f;
        above = harness_pass(&h, &h.batch, scale);
        *value = low = kept - 0.02f;
        below = harness_pass(&h, &h.batch, scale);
        *value = kept;
        slope = (above - below) * scale / ((double)high - (double)low);
        if (!(fabs(slope - grad) < 2e-5 + 0.01 * fabs(grad)))
            fail_msg("%s[%lld]: gradient %.6g, slope %.6g", chosen[i].name,
                     (long long)chosen[i].element, grad, slope);
    }
    harness_close(&h);
}

static void test_chunks_of_the_head_give_the_whole(void **state)
{
    dt_model_config config = harness_config();
    float *whole, *chunks, *logits, *chunk_logits;
    int64_t elems, count = config.batch * 3 * config.decoder.vocab;
    double counted;
    double once, again, evaluated;
    dt_error err = DT_ERROR_INIT;
    harness h;

    open_filled(&h, &config);
    logits = calloc((size_t)count, sizeof *logits);
    chunk_logits = calloc((size_t)count, sizeof *logits);
    once = harness_pass(&h, &h.batch, 1);
    whole = harness_copy_grads(&h, &elems);
    assert_int_equal(dt_model_logits(h.model, &h.batch, 3, logits, &err), DT_OK);

    harness_state(&h)->logits_bytes = 2 * 128 * sizeof(float) + 1; /* two rows at a time */
    harness_zero_grads(&h);
    again = harness_pass(&h, &h.batch, 1);
    assert_int_equal(harness_state(&h)->logits_rows, 2);
    chunks = harness_copy_grads(&h, &elems);
    assert_int_equal(dt_model_logits(h.model, &h.batch, 3, chunk_logits, &err), DT_OK);
    assert_int_equal(dt_model_evaluate(h.model, &h.batch, &evaluated, &counted, &err), DT_OK);

    assert_true(fabs(again - once) < 1e-6 * once);
    assert_true(fabs(evaluated - once) < 1e-6 * once);
    assert_true(relative_norm(chunks, whole, elems) < 1e-5);
    assert_true(relative_norm(chunk_logits, logits, count) < 1e-5);
    harness_state(&h)->logits_bytes = 1; /* never less than one row */
    assert_true(fabs(harness_pass(&h, &h.batch, 1) - once) < 1e-6 * once);
    assert_int_equal(harness_state(&h)->logits_rows, 1);
    free(whole);
    free(chunks);
    free(logits);
    free(chunk_logits);
    harness_close(&h);
}

/* 352 rows, with scratch for the logits of 330 */
static void expect_wide_chunks(dt_model_config config)
{
    float *whole, *chunks;
    double once, again;
    int64_t elems;
    harness h;

    config.batch = 32;
    open_filled(&h, &config);
    once = harness_pass(&h, &h.batch, 1);
    whole = harness_copy_grads(&h, &elems);
    harness_state(&h)->logits_bytes = 1;
    harness_state(&h)->wide_chunks = true;
    harness_zero_grads(&h);
    again = harness_pass(&h, &h.batch, 1);
    assert_int_equal(harness_state(&h)->logits_rows, 256);
    chunks = harness_copy_grads(&h, &elems);
    assert_true(fabs(again - once) < 1e-6 * once);
    assert_true(relative_norm(chunks, whole, elems) < 1e-5);
    free(whole);
    free(chunks);
    harness_close(&h);
}

/* As on a GPU: a multiple of 128 rows, as many as fit into the blocks' scratch, without more memory. */
static void test_wide_chunks_of_logits_fill_the_scratch(void **state)
{
    dt_model_config config = harness_config();

    expect_wide_chunks(config);
    config.kind = DT_MODEL_LLAMA;
    config.llama = (dt_llama_config){.kv_heads = 3,
                                     .head_width = 8,
                                     .ffn = 96,
                                     .norm_eps = 1e-5,
                                     .rope_theta = 10000,
                                     .rope_factor = 1};
    expect_wide_chunks(config);
}

typedef struct recorder {
    dt_strbuf text;
    int fail_at; /* the call that fails, from 1; 0: none */
    int calls;
} recorder;

static dt_status record(recorder *r, const char *what, int unit, dt_error *err)
{
    if (++r->calls == r->fail_at)
        return DT_FAIL(err, DT_ERR_COMM, "the recorder fails here");
    dt_strbuf_add_fmt(&r->text, "%s%d ", what, unit);
    return DT_OK;
}

static dt_status record_before(void *self, int unit, bool backward, dt_error *err)
{
    return record(self, backward ? "b<" : "f<", unit, err);
}

static dt_status record_after(void *self, int unit, bool backward, dt_error *err)
{
    return record(self, backward ? "b>" : "f>", unit, err);
}

static dt_status record_ready(void *self, int unit, dt_error *err)
{
    return record(self, "ready", unit, err);
}

static dt_model_hooks recorder_hooks(recorder *r)
{
    dt_model_hooks hooks = {.self = r,
                            .before_unit = record_before,
                            .after_unit = record_after,
                            .unit_grads_ready = record_ready};

    memset(r, 0, sizeof *r);
    dt_strbuf_init(&r->text);
    return hooks;
}

static void test_hooks_come_in_the_documented_order(void **state)
{
    dt_model_config config = harness_config();
    dt_error err = DT_ERROR_INIT;
    dt_model_hooks hooks;
    double counted;
    double loss_sum;
    recorder r;
    harness h;

    open_filled(&h, &config);
    hooks = recorder_hooks(&r);
    h.model->hooks = &hooks;
    harness_pass(&h, &h.batch, 1);
    assert_string_equal(r.text.data, "f<0 f<1 f>1 f<2 f>2 f>0 "
                                     "b<0 b<2 b>2 ready2 b<1 b>1 ready1 b>0 ready0 ");
    dt_strbuf_reset(&r.text);
    assert_int_equal(dt_model_evaluate(h.model, &h.batch, &loss_sum, &counted, &err), DT_OK);
    assert_string_equal(r.text.data, "f<0 f<1 f>1 f<2 f>2 f>0 ");
    dt_strbuf_release(&r.text);
    harness_close(&h);
}

static void test_a_hook_that_fails_ends_the_pass_there(void **state)
{
    dt_model_config config = harness_config();
    dt_model_hooks hooks;
    recorder r;
    harness h;

    open_filled(&h, &config);
    hooks = recorder_hooks(&r);
    h.model->hooks = &hooks;
    for (int n = 1; n <= 14; n++) {
        dt_error err = DT_ERROR_INIT;
        const double scale = 1;

        r.calls = 0;
        r.fail_at = n;
        assert_int_equal(dt_model_pass(h.model, &h.batch, &scale, &err), DT_ERR_COMM);
        assert_int_equal(r.calls, n);
        assert_string_equal(err.message, "the recorder fails here");
    }
    r.fail_at = 0;
    harness_pass(&h, &h.batch, 1); /* the model can still be used */
    dt_strbuf_release(&r.text);
    harness_close(&h);
}

/* Gradients must be final when they are ready: the root's at "ready 0", those of blocks at theirs. */
typedef struct snapshot {
    harness *h;
    float *grads[3];
} snapshot;

static dt_status take_snapshot(void *self, int unit, dt_error *err)
{
    snapshot *s = self;
    size_t bytes = (size_t)s->h->model->units[unit].elems * sizeof(float);

    s->grads[unit] = malloc(bytes);
    memcpy(s->grads[unit], s->h->model->grads[unit], bytes);
    return DT_OK;
}

static void test_gradients_do_not_change_once_they_are_ready(void **state)
{
    dt_model_config config = harness_config();
    snapshot s = {0};
    dt_model_hooks hooks = {.self = &s, .unit_grads_ready = take_snapshot};
    harness h;

    open_filled(&h, &config);
    s.h = &h;
    h.model->hooks = &hooks;
    harness_pass(&h, &h.batch, 1);
    for (int u = 0; u < 3; u++) {
        assert_memory_equal(s.grads[u], h.model->grads[u],
                            (size_t)h.model->units[u].elems * sizeof(float));
        free(s.grads[u]);
    }
    harness_close(&h);
}

/* Returns the gradients of one pass from zero, with dropout by the batch's key. */
static float *dropped_grads(harness *h, const dt_batch *batch, int64_t *elems)
{
    harness_zero_grads(h);
    harness_pass(h, batch, 1);
    return harness_copy_grads(h, elems);
}

static void test_dropout_is_the_same_for_the_same_key_and_another_for_another(void **state)
{
    dt_model_config config = harness_config();
    float *first, *again, *other;
    dt_batch batch;
    int64_t elems;
    size_t bytes;
    harness h;

    config.decoder.dropout = 0.2;
    open_filled(&h, &config);
    first = dropped_grads(&h, &h.batch, &elems);
    bytes = (size_t)elems * sizeof *first;
    again = dropped_grads(&h, &h.batch, &elems);
    assert_memory_equal(first, again, bytes);
    free(again);
    for (int part = 0; part < 4; part++) {
        batch = h.batch;
        batch.seed += part == 0;
        batch.step += part == 1;
        batch.micro_step += part == 2;
        batch.data_rank += part == 3;
        other = dropped_grads(&h, &batch, &elems);
        assert_true(relative_norm(other, first, elems) > 0.01);
        free(other);
    }
    free(first);
    harness_close(&h);
}

/* The embedding's output stays in the state: its zeros are the mask. Of n draws with probability
 * p the count has an error of sqrt(n p (1-p)); allows five times this. */
static void test_dropout_keeps_the_share_that_it_should(void **state)
{
    dt_model_config config = harness_config();
    double p = 0.3, n, zeros = 0;
    const float *embedded;
    harness h;

    config.decoder.dropout = p;
    open_filled(&h, &config);
    harness_pass(&h, &h.batch, 1);
    embedded = harness_state(&h)->stream[0].data;
    n = (double)dt_tensor_elems(&harness_state(&h)->stream[0]);
    for (int64_t i = 0; i < (int64_t)n; i++)
        zeros += embedded[i] == 0;
    assert_true(fabs(zeros - n * p) < 5 * sqrt(n * p * (1 - p)));
    harness_close(&h);
}

/* The keys that the dropout and attention ops got, in order. */
static struct {
    dt_philox_key keys[16];
    int count;
} drawn;

static void record_key(const dt_philox_key *key)
{
    assert_true(drawn.count < 16);
    drawn.keys[drawn.count++] = *key;
}

static dt_status record_dropout(dt_device *device, dt_tensor *y, const dt_tensor *x, double p,
                                const dt_philox_key *key, dt_error *err)
{
    assert_true(p == 0.1);
    record_key(key);
    return dt_ops_cpu.dropout_forward(device, y, x, p, key, err);
}

static dt_status record_attention(dt_device *device, dt_tensor *out, dt_tensor *lse,
                                  const dt_qkv *x, const dt_attention_args *args, dt_error *err)
{
    assert_true(args->p == 0.2);
    record_key(args->key);
    return dt_ops_cpu.attention_forward(device, out, lse, x, args, err);
}

static dt_status record_attention_backward(dt_device *device, const dt_qkv *dx,
                                           const dt_tensor *dout, const dt_qkv *x,
                                           const dt_tensor *out, const dt_tensor *lse,
                                           const dt_attention_args *args, dt_error *err)
{
    assert_true(args->p == 0.2);
    record_key(args->key);
    return dt_ops_cpu.attention_backward(device, dx, dout, x, out, lse, args, err);
}

static void test_every_dropout_site_has_a_key_of_its_own_and_backward_draws_it_again(void **state)
{
    static const struct {
        uint32_t layer, op;
    } forward[7] = {{0, DT_PHILOX_DROPOUT_EMBEDDING}, {0, DT_PHILOX_DROPOUT_ATTENTION},
                    {0, DT_PHILOX_DROPOUT_RESIDUAL},  {0, DT_PHILOX_DROPOUT_MLP},
                    {1, DT_PHILOX_DROPOUT_ATTENTION}, {1, DT_PHILOX_DROPOUT_RESIDUAL},
                    {1, DT_PHILOX_DROPOUT_MLP}};
    dt_model_config config = harness_config();
    dt_ops recording;
    harness h;

    config.decoder.dropout = 0.1;
    config.decoder.attention_dropout = 0.2;
    open_filled(&h, &config);
    recording = *h.device.ops;
    recording.dropout_forward = recording.dropout_backward = record_dropout;
    recording.attention_forward = record_attention;
    recording.attention_backward = record_attention_backward;
    h.device.ops = &recording;
    drawn.count = 0;
    harness_pass(&h, &h.batch, 1);
    assert_int_equal(drawn.count, 14);
    for (int i = 0; i < 14; i++) {
        const dt_philox_key *key = &drawn.keys[i];
        int site = i < 7 ? i : 13 - i;

        assert_int_equal(key->layer, forward[site].layer);
        assert_int_equal(key->op, forward[site].op);
        assert_true(key->seed == h.batch.seed && key->step == h.batch.step);
        assert_true(key->micro_step == h.batch.micro_step);
        assert_true(key->data_rank == h.batch.data_rank);
    }
    harness_close(&h);
}

static void test_a_repeated_pass_gives_the_same_bits(void **state)
{
    static const dt_dtype dtypes[] = {DT_F32, DT_BF16, DT_F16};

    for (int d = 0; d < 3; d++) {
        dt_model_config config = harness_config();
        float *first, *again;
        double loss, loss_again;
        int64_t elems;
        harness h;

        config.dtype = dtypes[d];
        config.decoder.dropout = config.decoder.attention_dropout = 0.1;
        open_filled(&h, &config);
        loss = harness_pass(&h, &h.batch, 0.125);
        first = harness_copy_grads(&h, &elems);
        harness_zero_grads(&h);
        loss_again = harness_pass(&h, &h.batch, 0.125);
        again = harness_copy_grads(&h, &elems);
        assert_memory_equal(&loss, &loss_again, sizeof loss);
        assert_memory_equal(first, again, (size_t)elems * sizeof *first);
        free(first);
        free(again);
        harness_close(&h);
    }
}

static void test_an_inference_model_gives_the_training_models_logits_and_loss(void **state)
{
    dt_model_config config = harness_config();
    size_t count = (size_t)(config.batch * config.tokens * config.decoder.vocab);
    float *trained = calloc(count, sizeof *trained), *inferred = calloc(count, sizeof *inferred);
    double loss, train_loss, infer_loss;
    int64_t expected;
    double counted;
    dt_error err = DT_ERROR_INIT;
    harness h, inference;

    harness_open(&h, &config);
    harness_init(&h, 5);
    expected = harness_fill_batch(&h, 9);
    config.inference = true;
    config.decoder.dropout = config.decoder.attention_dropout = 0.5; /* must have no effect */
    open_filled(&inference, &config);
    assert_true(inference.model->activation_bytes < h.model->activation_bytes);
    loss = harness_pass(&h, &h.batch, 1);
    assert_int_equal(dt_model_logits(h.model, &h.batch, config.tokens, trained, &err), DT_OK);
    assert_int_equal(
        dt_model_logits(inference.model, &inference.batch, config.tokens, inferred, &err), DT_OK);
    assert_memory_equal(trained, inferred, count * sizeof *trained);
    assert_int_equal(dt_model_evaluate(h.model, &h.batch, &train_loss, &counted, &err), DT_OK);
    assert_int_equal(
        dt_model_evaluate(inference.model, &inference.batch, &infer_loss, &counted, &err), DT_OK);
    assert_int_equal(counted, expected);
    assert_memory_equal(&loss, &train_loss, sizeof loss);
    assert_memory_equal(&loss, &infer_loss, sizeof loss);
    free(trained);
    free(inferred);
    harness_close(&inference);
    harness_close(&h);
}

/* Attention is causal: the logits of a shorter prompt are part of those of a longer one. */
static void test_a_shorter_batch_gives_the_same_positions(void **state)
{
    dt_model_config config = harness_config();
    dt_batch brief;
    dt_error err = DT_ERROR_INIT;
    float *all, *one;
    harness h;

    config.inference = true;
    open_filled(&h, &config);
    all = calloc((size_t)(config.tokens * config.decoder.vocab), sizeof *all);
    one = calloc((size_t)config.decoder.vocab, sizeof *one);
    brief = harness_batch(&h, 0, 1);
    brief.inputs[DT_DECODER_TARGETS].data = NULL;
    assert_int_equal(dt_model_logits(h.model, &brief, config.tokens, all, &err), DT_OK);
    for (int64_t T = 1; T <= config.tokens; T++) {
        brief.inputs[DT_DECODER_TOKENS] = dt_tensor_2d(h.tokens, DT_I32, 1, T);
        assert_int_equal(dt_model_logits(h.model, &brief, 1, one, &err), DT_OK);
        assert_true(relative_norm(one, all + (T - 1) * config.decoder.vocab, config.decoder.vocab) <
                    1e-5);
    }
    free(all);
    free(one);
    harness_close(&h);
}

static void test_the_arena_is_used_to_the_last_byte(void **state)
{
    dt_model_config config = harness_config();
    harness h;

    open_filled(&h, &config);
    harness_pass(&h, &h.batch, 1);
    assert_int_equal(harness_state(&h)->arena.used_bytes, h.model->activation_bytes);
    assert_int_equal(h.model->activation_bytes, dt_model_activation_bytes(&config));
    harness_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eight_sequences_at_once_equal_four_times_two),
        cmocka_unit_test(test_gradients_are_the_slope_of_the_loss),
        cmocka_unit_test(test_chunks_of_the_head_give_the_whole),
        cmocka_unit_test(test_wide_chunks_of_logits_fill_the_scratch),
        cmocka_unit_test(test_hooks_come_in_the_documented_order),
        cmocka_unit_test(test_a_hook_that_fails_ends_the_pass_there),
        cmocka_unit_test(test_gradients_do_not_change_once_they_are_ready),
        cmocka_unit_test(test_dropout_is_the_same_for_the_same_key_and_another_for_another),
        cmocka_unit_test(test_dropout_keeps_the_share_that_it_should),
        cmocka_unit_test(test_every_dropout_site_has_a_key_of_its_own_and_backward_draws_it_again),
        cmocka_unit_test(test_a_repeated_pass_gives_the_same_bits),
        cmocka_unit_test(test_an_inference_model_gives_the_training_models_logits_and_loss),
        cmocka_unit_test(test_a_shorter_batch_gives_the_same_positions),
        cmocka_unit_test(test_the_arena_is_used_to_the_last_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
