/* The transformer apart from its numbers (see test_model_golden.c): parameter table, padding,
 * recomputation, order of hooks, memory. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/model/transformer/model_int.h"
#include "tests/unit/model_harness.h"

static dt_model_config plain(void)
{
    dt_model_config config = {
        .kind = DT_MODEL_TRANSFORMER,
        .batch = 8,
        .tokens = 11,
        .dtype = DT_F32,
        .decoder =
            {.layers = 2, .heads = 4, .embed = 24, .vocab = 61, .vocab_padded = 128, .context = 16},
        .transformer = {.decoder_layers = 3,
                        .ffn = 40,
                        .source_vocab = 61,
                        .source_vocab_padded = 128,
                        .pad = 1,
                        .activation = DT_ACTIVATION_RELU,
                        .positions = DT_POSITIONS_SINUSOIDAL,
                        .scale_embedding = true,
                        .shared_embeddings = true,
                        .norm = DT_NORM_POST}};
    return config;
}

/* Every option of a config, in sizes that are multiples of nothing. */
static dt_model_config rich(dt_dtype dtype)
{
    dt_model_config config = plain();

    config.dtype = dtype;
    config.decoder.embed = 21;
    config.decoder.heads = 3;
    config.decoder.dropout = 0.1;
    config.decoder.attention_dropout = 0.2;
    config.decoder.own_lm_head = true;
    config.transformer.ffn = 19;
    config.transformer.source_vocab = 130;
    config.transformer.source_vocab_padded = 256;
    config.transformer.activation = DT_ACTIVATION_GELU;
    config.transformer.positions = DT_POSITIONS_LEARNED;
    config.transformer.shared_embeddings = false;
    config.transformer.norm = DT_NORM_PRE;
    config.transformer.label_smoothing = 0.1;
    return config;
}

static dt_model_config both(int which, dt_dtype dtype)
{
    dt_model_config config = rich(dtype);

    if (which % 2 != 0)
        return config;
    config = plain();
    config.dtype = dtype;
    config.decoder.dropout = 0.1;
    return config;
}

/* --- parameter table */

static void expect_name(const harness *h, int unit, int which, const char *name)
{
    assert_string_equal(h->model->params[h->model->units[unit].first_param + which].name, name);
}

static void test_the_table_has_the_names_of_fairseq(void **state)
{
    dt_model_config config = rich(DT_F32);
    harness h;

    harness_open(&h, &config);
    assert_int_equal(h.model->unit_count, 1 + 2 + 3);
    assert_int_equal(h.model->param_count, 9 + 2 * 16 + 3 * 26);
    expect_name(&h, 0, 0, "encoder.embed_tokens.weight");
    expect_name(&h, 0, 8, "decoder.output_projection.weight");
    expect_name(&h, 2, 1, "encoder.layers.1.self_attn.k_proj.weight");
    expect_name(&h, 2, 10, "encoder.layers.1.fc1.weight");
    expect_name(&h, 3, 10, "decoder.layers.0.encoder_attn.q_proj.weight");
    expect_name(&h, 5, 25, "decoder.layers.2.final_layer_norm.bias");
    harness_close(&h);
    config = plain();
    harness_open(&h, &config);
    assert_int_equal(h.model->param_count, 1 + 2 * 16 + 3 * 26);
    expect_name(&h, 0, 0, "decoder.embed_tokens.weight");
    harness_close(&h);
}

/* 6 N + 12 (Le + 2 Ld) C T, N without norms and biases. */
static void test_the_flops_are_those_of_the_products(void **state)
{
    dt_model_config config = plain();
    double C = 24, F = 40, T = 11;
    double matrices = 2 * (4 * C * C + 2 * C * F) + 3 * (8 * C * C + 2 * C * F) + 61 * C;

    assert_true(fabs(dt_model_flops_per_token(&config) -
                     (6 * matrices + 12.0 * (2 + 2 * 3) * C * T)) < 1e-6);
}

static void test_a_config_that_cannot_be_is_refused_with_the_reason(void **state)
{
    dt_model_config config = plain();

    config.decoder.heads = 5;
    harness_expect_refused(config, "'heads' (5) does not divide 'embed' (24)");
    config = plain();
    config.transformer.ffn = 0;
    harness_expect_refused(config, "'ffn' is 0");
    config = plain();
    config.transformer.pad = 61;
    harness_expect_refused(config, "'pad' is 61");
    config = plain();
    config.transformer.source_vocab = 60;
    harness_expect_refused(config, "one vocabulary, but the vocabularies are 60 and 61");
    config = plain();
    config.transformer.label_smoothing = 1;
    harness_expect_refused(config, "'label_smoothing' is 1");
    config = plain();
    config.transformer.decoder_layers = 0;
    harness_expect_refused(config, "'decoder_layers' is 0");
}

/* --- padding */

/* Returns the sentences from `first` to first + count without the columns of padding that all of them have. */
static dt_batch cut(harness *h, int64_t first, int64_t count, int64_t S, int64_t T, int32_t *room)
{
    int64_t width = h->model->config.tokens;
    int32_t *source = room, *previous = source + count * S, *targets = previous + count * T;
    dt_batch batch = harness_batch(h, first, count);

    for (int64_t b = 0; b < count; b++) {
        memcpy(source + b * S, h->source + (first + b) * width, (size_t)S * sizeof *room);
        memcpy(previous + b * T, h->tokens + (first + b) * width, (size_t)T * sizeof *room);
        memcpy(targets + b * T, h->targets + (first + b) * width, (size_t)T * sizeof *room);
    }
    batch.inputs[DT_TRANSFORMER_SOURCE] = dt_tensor_2d(source, DT_I32, count, S);
    batch.inputs[DT_TRANSFORMER_PREVIOUS] = dt_tensor_2d(previous, DT_I32, count, T);
    batch.inputs[DT_TRANSFORMER_TARGETS] = dt_tensor_2d(targets, DT_I32, count, T);
    return batch;
}

/* Pads the targets too: row b has b words less than the maximum. */
static void pad_answers(harness *h)
{
    int64_t width = h->model->config.tokens;

    for (int64_t i = 0; i < h->model->config.batch * width; i++)
        if (i % width >= width - i / width) {
            h->tokens[i] = (int32_t)h->model->config.transformer.pad;
            h->targets[i] = -1;
        }
}

static int64_t length_of(const harness *h, int64_t b)
{
    int64_t width = h->model->config.tokens, length = width;

    while (h->source[b * width + length - 1] == h->model->config.transformer.pad)
        length--;
    return length;
}

/* A batch of eight sentences has the result of each sentence alone without padding. */
static void test_padding_costs_the_loss_nothing(void **state)
{
    for (int which = 0; which < 2; which++) {
        dt_model_config config = both(which, DT_F32);
        int64_t elems, width;
        double loss, alone = 0;
        float *grads, *sums;
        int32_t *room;
        harness h;

        config.decoder.dropout = config.decoder.attention_dropout = 0;
        harness_open_filled(&h, &config);
        pad_answers(&h);
        width = config.tokens;
        loss = harness_pass(&h, &h.batch, 0.125);
        grads = harness_copy_grads(&h, &elems);
        harness_zero_grads(&h);
        room = calloc((size_t)(3 * width), sizeof *room);
        for (int64_t b = 0; b < config.batch; b++) {
            dt_batch one = cut(&h, b, 1, length_of(&h, b), width - b, room);

            alone += harness_pass(&h, &one, 0.125);
        }
        sums = harness_copy_grads(&h, &elems);
        assert_true(fabs(loss - alone) <= 1e-6 * fabs(loss));
        assert_true(relative_norm(grads, sums, elems) <= 1e-5);
        free(room);
        free(grads);
        free(sums);
        harness_close(&h);
    }
}

/* --- recomputation */

static dt_batch five_shorter(harness *h, int32_t *room)
{
    return cut(h, 1, 5, 9, 6, room);
}

static void test_recomputation_gives_the_same_bits(void **state)
{
    static const dt_dtype dtypes[] = {DT_F32, DT_BF16, DT_F16};

    for (int d = 0; d < 6; d++) {
        dt_model_config config = both(d, dtypes[d / 2]);

        harness_expect_same_bits(config, dt_dtype_name(config.dtype), five_shorter);
        config.decoder.layers = config.transformer.decoder_layers = 1;
        harness_expect_same_bits(config, "one block", five_shorter);
    }
}

/* --- hooks */

static void test_hooks_come_in_their_order_and_weights_with_them(void **state)
{
    for (int k = 0; k < 2 * HARNESS_RECOMPUTE_KINDS; k++) {
        dt_model_config config = both(k, DT_F32);
        char calls[128];
        harness h;

        config.recompute = harness_recompute_kinds[k / 2];
        harness_open_filled(&h, &config);
        harness_pass_with_hooks(&h, calls, sizeof calls);
        assert_string_equal(calls, "b0b1a1b2a2b3a3b4a4b5a5a0B0B5A5r5B4A4r4B3A3r3B2A2r2B1A1r1A0r0");
        harness_close(&h);
    }
}

/* --- memory */

static void test_the_arena_is_used_to_the_last_byte(void **state)
{
    for (int k = 0; k < 2 * HARNESS_RECOMPUTE_KINDS; k++) {
        dt_model_config config = both(k, DT_F32);
        const dt_transformer_state *own;
        int32_t *room;
        dt_batch one;
        harness h;

        config.recompute = harness_recompute_kinds[k / 2];
        harness_open_filled(&h, &config);
        own = h.model->state;
        room = calloc((size_t)(3 * config.batch * config.tokens), sizeof *room);
        harness_pass(&h, &h.batch, 1);
        assert_true(own->arena.used_bytes <= h.model->activation_bytes);
        one = cut(&h, 0, 8, 1, 1, room); /* with as many sentences as rows */
        one.inputs[DT_TRANSFORMER_SOURCE] = dt_tensor_2d(h.tokens, DT_I32, 88, 1);
        one.inputs[DT_TRANSFORMER_PREVIOUS] = one.inputs[DT_TRANSFORMER_SOURCE];
        one.inputs[DT_TRANSFORMER_TARGETS] = dt_tensor_2d(h.targets, DT_I32, 88, 1);
        harness_pass(&h, &one, 1);
        assert_int_equal(own->arena.used_bytes, h.model->activation_bytes);
        assert_int_equal(h.model->activation_bytes, dt_model_activation_bytes(&config));
        free(room);
        harness_close(&h);
    }
}

/* Compares the bytes of `dtrun plan` with the allocated ones, which are more by the rounding of
 * at most twenty-three tensors for each block, and forty others, to 64 bytes. */
static void test_the_description_is_what_a_model_takes(void **state)
{
    for (int i = 0; i < 96; i++) {
        dt_model_config config = both(i, (dt_dtype[]){DT_F32, DT_BF16, DT_F16}[i % 3]);
        int64_t said, taken, blocks;

        config.recompute = harness_recompute_kinds[i / 3 % HARNESS_RECOMPUTE_KINDS];
        config.decoder.layers = 1 + i % 7;
        config.transformer.decoder_layers = 1 + i % 5;
        config.decoder.embed *= i % 4 < 2 ? 1 : 8;
        config.transformer.ffn *= i % 5 < 3 ? 1 : 9;
        config.batch = i % 9 + 1;
        config.tokens = config.decoder.context = 16 * (1 + i % 11);
        config.decoder.vocab = config.decoder.vocab_padded = i % 8 ? 128 : 50304;
        config.transformer.source_vocab = config.transformer.source_vocab_padded =
            config.decoder.vocab;
        config.inference = i % 13 > 9;
        config.incremental = i % 13 > 10;
        config.sequences = i % 3;
        config.versions = i % 4;
        if (i % 2 == 0) { /* heads and widths that tensor ranks divide */
            config.transformer.norm = i % 8 < 4 ? DT_NORM_PRE : DT_NORM_POST;
            config.tensor = (dt_tensor_place){i % 3 > 0, 1 << i % 3};
        }
        blocks = config.decoder.layers + config.transformer.decoder_layers;
        said = dt_architecture_find(DT_MODEL_TRANSFORMER)->activation_bytes(&config);
        taken = (int64_t)dt_model_activation_bytes(&config);
        if (taken > said + 64 * (23 * blocks + 40) || said > taken)
            fail_msg("case %d: the model takes %lld bytes, the description says %lld", i,
                     (long long)taken, (long long)said);
    }
}

/* --- growing translations */

/* Computes the logits of one version, whose tokens are in `words`, by a whole pass. */
static void whole_logits(harness *h, float *out, int64_t S, const int32_t *words, int64_t count)
{
    dt_batch batch = {0};
    dt_error err = DT_ERROR_INIT;
    int32_t previous[16];

    memcpy(previous, words, (size_t)count * sizeof *words);
    batch.inputs[DT_TRANSFORMER_SOURCE] = dt_tensor_2d(h->source, DT_I32, 1, S);
    batch.inputs[DT_TRANSFORMER_PREVIOUS] = dt_tensor_2d(previous, DT_I32, 1, count);
    assert_int_equal(dt_model_logits(h->model, &batch, 1, out, &err), DT_OK);
}

/* The words of three versions, and which one each continues at a step; a version that others continue stays. */
typedef struct versions {
    int32_t words[3][16];
    int64_t count;
} versions;

static const int32_t parents[10][3] = {{0, 1, 2}, {0, 0, 0}, {2, 1, 2}, {0, 1, 1}, {1, 1, 2},
                                       {0, 1, 2}, {0, 2, 2}, {0, 1, 0}, {1, 1, 1}, {0, 0, 2}};

/* Adds a token to each version; row: of the first one in the call. */
static void place(versions *v, int32_t *newest, int32_t *from, int32_t row)
{
    versions last = *v;

    for (int32_t k = 0; k < 3; k++) {
        memcpy(v->words[k], last.words[parents[v->count][k]], sizeof last.words[k]);
        v->words[k][v->count] = v->count == 0 ? 2 : (int32_t)(3 + (7 * v->count + 11 * k) % 50);
        newest[k] = v->words[k][v->count];
        from[k] = row + parents[v->count][k];
    }
    v->count++;
}

static void expect_whole(harness *h, const float *logits, const versions *v, int64_t S,
                         double bound)
{
    int64_t vocab = h->model->config.decoder.vocab;
    float *whole = calloc((size_t)vocab, sizeof *whole);

    for (int64_t k = 0; k < 3; k++) {
        double error;

        whole_logits(h, whole, S, v->words[k], v->count);
        error = relative_norm(logits + k * vocab, whole, vocab);
        if (!(error <= bound))
            fail_msg("%s, token %d of version %d of %d source tokens: relative error %.3g",
                     dt_dtype_name(h->model->config.dtype), (int)v->count, (int)k, (int)S, error);
    }
    free(whole);
}

static void begin(harness *h, int64_t sentence, int64_t S)
{
    dt_tensor source = dt_tensor_2d(h->source, DT_I32, 1, S);
    dt_error err = DT_ERROR_INIT;

    assert_int_equal(dt_model_translate(h->model, sentence, &source, &err), DT_OK);
}

static void grow(harness *h, float *logits, versions *const *v, int64_t sentences)
{
    int32_t newest[6], from[6];
    dt_tensor previous = dt_tensor_2d(newest, DT_I32, 3 * sentences, 1);
    dt_error err = DT_ERROR_INIT;

    for (int64_t i = 0; i < sentences; i++)
        place(v[i], newest + 3 * i, from + 3 * i, (int32_t)(3 * i));
    assert_int_equal(dt_model_translate_next(h->model, &previous, from, logits, &err), DT_OK);
}

static dt_model_config growing(dt_model_config config, int64_t sentences)
{
    config.decoder.dropout = config.decoder.attention_dropout = 0;
    config.inference = true;
    dt_translations_configure(&config, sentences, 3);
    return config;
}

/* Two sentences of three versions each; the second begins later, and takes the place of the
 * first after that has ended. Compared with the second sentence alone. */
static void expect_growth(dt_model_config config, double bound)
{
    dt_model_config two = growing(config, 2), one = growing(config, 1);
    int64_t vocab = config.decoder.vocab, lengths[] = {4, 11};
    versions first = {.count = 0}, second = first, lonely = first;
    versions *both_of[] = {&first, &second}, *left[] = {&second}, *alone[] = {&lonely};
    size_t row_bytes = (size_t)(3 * vocab) * sizeof(float);
    float *logits = calloc(2, row_bytes), *by_itself = calloc(1, row_bytes);
    dt_error err = DT_ERROR_INIT;
    harness h, other;

    harness_open_filled(&h, &two);
    harness_open_filled(&other, &one);
    begin(&h, 0, lengths[0]);
    begin(&other, 0, lengths[1]);
    for (int round = 0; round < 12; round++) {
        bool ended = round >= 8;
        const float *of_second = logits + (ended ? 0 : 3 * vocab);

        if (round == 2)
            begin(&h, 1, lengths[1]);
        if (round == 8)
            assert_int_equal(dt_model_replace(h.model, 0, 1, &err), DT_OK);
        grow(&h, logits, ended ? left : both_of, round < 2 || ended ? 1 : 2);
        if (!ended)
            expect_whole(&h, logits, &first, lengths[0], bound);
        if (round < 2)
            continue;
        expect_whole(&h, of_second, &second, lengths[1], bound);
        grow(&other, by_itself, alone, 1);
        assert_memory_equal(of_second, by_itself, row_bytes);
    }
    free(logits);
    free(by_itself);
    harness_close(&h);
    harness_close(&other);
}

static void test_growing_translations_give_the_whole_ones_logits_and_the_bits_of_one_alone(
    void **state)
{
    for (int which = 0; which < 2; which++) {
        expect_growth(both(which, DT_F32), 1e-5);
        expect_growth(both(which, DT_BF16), 3e-2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_has_the_names_of_fairseq),
        cmocka_unit_test(test_the_flops_are_those_of_the_products),
        cmocka_unit_test(test_a_config_that_cannot_be_is_refused_with_the_reason),
        cmocka_unit_test(test_padding_costs_the_loss_nothing),
        cmocka_unit_test(test_recomputation_gives_the_same_bits),
        cmocka_unit_test(test_hooks_come_in_their_order_and_weights_with_them),
        cmocka_unit_test(test_the_arena_is_used_to_the_last_byte),
        cmocka_unit_test(test_the_description_is_what_a_model_takes),
        cmocka_unit_test(
            test_growing_translations_give_the_whole_ones_logits_and_the_bits_of_one_alone),
    };

    return cmocka_run_group_tests_name("model: transformer", tests, NULL, NULL);
}
