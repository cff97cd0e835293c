/* division: the ranks of a tensor group hold every element of every parameter, and one of them counts it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "recipes/architecture/architecture.h"
#include "recipes/fields/fields.h"

static dt_recipe recipe_of(dt_architecture_kind kind, int64_t tensor)
{
    dt_recipe recipe;

    dt_recipe_init(&recipe);
    recipe.model.kind = kind;
    recipe.model.layers = 2;
    recipe.model.heads = 8;
    recipe.model.kv_heads = 2;
    recipe.model.embed = 40;
    recipe.model.head_width = 6;
    recipe.model.ffn = 24;
    recipe.model.vocab = 300;
    recipe.model.qkv_bias = recipe.model.o_bias = recipe.model.qk_norm = true;
    recipe.model.tied = false;
    recipe.model.source_vocab = 500;
    recipe.model.decoder_layers = 3;
    recipe.tensor.size = tensor;
    return recipe;
}

static void table_of(dt_param_table *out, dt_architecture_kind kind, int64_t rank, int64_t ranks,
                     dt_arena *arena)
{
    dt_recipe recipe = recipe_of(kind, ranks);
    dt_model_config config;

    dt_model_config_make(&config, &recipe, 0);
    config.tensor.rank = rank;
    assert_int_equal(dt_model_config_check(&config, NULL), DT_OK);
    dt_param_table_make(out, &config, arena);
}

/* Counts how often the rank holds, and counts, each index of the dimension that is divided. */
static void count_indices(int *held, int *counted, const dt_param *param)
{
    int64_t whole = param->dim[param->held.cut_dim] / param->held.parts;
    int64_t own = param->held.dim[param->held.cut_dim] / param->held.parts;

    for (int p = 0; p < param->held.parts; p++)
        for (int64_t i = 0; i < own; i++) {
            held[p * whole + param->held.start + i]++;
            counted[p * whole + param->held.start + i] += param->held.counted;
        }
}

static void check_param(dt_param_table *tables, int64_t ranks, int index)
{
    const dt_param *first = &tables[0].params[index];
    int counted[1024] = {0}, held[1024] = {0}, whole = 0;

    for (int64_t r = 0; r < ranks; r++) {
        const dt_param *param = &tables[r].params[index];

        assert_string_equal(param->name, first->name);
        assert_int_equal(param->elems, first->elems);
        assert_int_equal(param->held.elems, first->held.elems);
        assert_int_equal(param->held.sharers, first->held.sharers);
        assert_int_equal(param->offset_elems, first->offset_elems);
        if (param->held.cut_dim >= 0)
            count_indices(held, counted, param);
        else
            whole += param->held.counted;
    }
    if (first->held.cut_dim < 0) {
        assert_int_equal(first->held.elems, first->elems);
        assert_int_equal(whole, 1);
        return;
    }
    for (int64_t i = 0; i < first->dim[first->held.cut_dim]; i++) {
        assert_int_equal(held[i], first->held.sharers);
        assert_int_equal(counted[i], 1);
    }
}

static void check_kind(dt_architecture_kind kind, int64_t ranks)
{
    dt_param_table *tables = calloc((size_t)ranks, sizeof(*tables));
    dt_arena arena;

    assert_non_null(tables);
    dt_arena_init(&arena, 0);
    for (int64_t r = 0; r < ranks; r++)
        table_of(&tables[r], kind, r, ranks, &arena);
    for (int i = 0; i < tables[0].param_count; i++)
        check_param(tables, ranks, i);
    dt_arena_release(&arena);
    free(tables);
}

static void test_the_ranks_hold_every_element_and_one_counts_it(void **state)
{
    for (int64_t ranks = 1; ranks <= 8; ranks *= 2) {
        check_kind(DT_MODEL_GPT2, ranks);
        check_kind(DT_MODEL_LLAMA, ranks);
        check_kind(DT_MODEL_TRANSFORMER, ranks);
    }
}

static void test_key_heads_fewer_than_the_ranks_are_shared(void **state)
{
    const int64_t dim[DT_PARAM_DIMS] = {12, 40, 1, 1}; /* 2 heads */

    for (int64_t rank = 0; rank < 8; rank++) {
        dt_tensor_place place = {rank, 8};
        dt_param_held held = dt_param_hold(dim, DT_CUT_KEYS, 2, &place);

        assert_int_equal(held.dim[0], 6);
        assert_int_equal(held.start, rank / 4 * 6);
        assert_int_equal(held.sharers, 4);
        assert_true(held.summed);
        assert_int_equal(held.counted, rank % 4 == 0);
        assert_int_equal(dt_tensor_key_heads(&place, 2), 1);
    }
    assert_true(dt_tensor_divides(2, 8, true) && dt_tensor_divides(16, 8, true));
    assert_false(dt_tensor_divides(3, 8, true) || dt_tensor_divides(2, 8, false));
}

static void test_a_kind_that_is_not_divided_is_refused_by_name(void **state)
{
    dt_error err = DT_ERROR_INIT;
    dt_model_config config;
    dt_recipe recipe;

    dt_recipe_init(&recipe);
    recipe.model.kind = DT_MODEL_MLP;
    recipe.model.layers = 2;
    recipe.model.embed = 8;
    recipe.model.inputs = recipe.model.outputs = 3;
    recipe.batch.tokens = 1;
    recipe.tensor.size = 2;
    dt_model_config_make(&config, &recipe, 0);
    assert_int_equal(dt_model_config_check(&config, &err), DT_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "'mlp' and 'tensor' 2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_ranks_hold_every_element_and_one_counts_it),
        cmocka_unit_test(test_key_heads_fewer_than_the_ranks_are_shared),
        cmocka_unit_test(test_a_kind_that_is_not_divided_is_refused_by_name),
    };

    return cmocka_run_group_tests_name("recipes: division", tests, NULL, NULL);
}
