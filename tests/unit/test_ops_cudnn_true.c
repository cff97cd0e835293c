/* The real cuDNN, as far as possible without a GPU: the names and values of cudnn.h equal those
 * of its header, and the graph, with the properties of a GPU in place of one, is recognised as
 * attention, so that engines are found. Running one needs a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "engine/ops/cuda/cudnn.h"

#ifdef DT_HAVE_CUDNN_HEADER
#include <cudnn_graph.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
#define KIND(ours, theirs) SAME(DT_CUDNN_##ours, CUDNN_BACKEND_##theirs##_DESCRIPTOR)
#define NAME(ours, theirs) SAME(DT_CUDNN_##ours, CUDNN_ATTR_##theirs)

KIND(POINTWISE, POINTWISE);
KIND(ENGINE, ENGINE);
KIND(CONFIG, ENGINECFG);
KIND(HEURISTICS, ENGINEHEUR);
KIND(PLAN, EXECUTION_PLAN);
KIND(DO_POINTWISE, OPERATION_POINTWISE);
KIND(GRAPH, OPERATIONGRAPH);
KIND(PACK, VARIANT_PACK);
KIND(TENSOR, TENSOR);
KIND(MATMUL, MATMUL);
KIND(DO_MATMUL, OPERATION_MATMUL);
KIND(REDUCTION, REDUCTION);
KIND(DO_REDUCTION, OPERATION_REDUCTION);
NAME(POINTWISE_MODE, POINTWISE_MODE);
NAME(POINTWISE_PRECISION, POINTWISE_MATH_PREC);
NAME(POINTWISE_AXIS, POINTWISE_AXIS);
NAME(HEURISTICS_MODE, ENGINEHEUR_MODE);
NAME(HEURISTICS_GRAPH, ENGINEHEUR_OPERATION_GRAPH);
NAME(HEURISTICS_RESULTS, ENGINEHEUR_RESULTS);
NAME(CONFIG_ENGINE, ENGINECFG_ENGINE);
NAME(PLAN_HANDLE, EXECUTION_PLAN_HANDLE);
NAME(PLAN_CONFIG, EXECUTION_PLAN_ENGINE_CONFIG);
NAME(PLAN_WORKSPACE_BYTES, EXECUTION_PLAN_WORKSPACE_SIZE);
NAME(DO_POINTWISE_OPERATOR, OPERATION_POINTWISE_PW_DESCRIPTOR);
NAME(DO_POINTWISE_X, OPERATION_POINTWISE_XDESC);
NAME(DO_POINTWISE_B, OPERATION_POINTWISE_BDESC);
NAME(DO_POINTWISE_Y, OPERATION_POINTWISE_YDESC);
NAME(DO_POINTWISE_T, OPERATION_POINTWISE_TDESC);
NAME(GRAPH_HANDLE, OPERATIONGRAPH_HANDLE);
NAME(GRAPH_OPERATIONS, OPERATIONGRAPH_OPS);
NAME(TENSOR_ALIGNMENT, TENSOR_BYTE_ALIGNMENT);
NAME(TENSOR_TYPE, TENSOR_DATA_TYPE);
NAME(TENSOR_DIMENSIONS, TENSOR_DIMENSIONS);
NAME(TENSOR_STRIDES, TENSOR_STRIDES);
NAME(TENSOR_ID, TENSOR_UNIQUE_ID);
NAME(TENSOR_VIRTUAL, TENSOR_IS_VIRTUAL);
NAME(TENSOR_BY_VALUE, TENSOR_IS_BY_VALUE);
NAME(PACK_IDS, VARIANT_PACK_UNIQUE_IDS);
NAME(PACK_POINTERS, VARIANT_PACK_DATA_POINTERS);
NAME(PACK_WORKSPACE, VARIANT_PACK_WORKSPACE);
NAME(ENGINE_NOTES, ENGINE_NUMERICAL_NOTE);
NAME(MATMUL_PRECISION, MATMUL_COMP_TYPE);
NAME(DO_MATMUL_A, OPERATION_MATMUL_ADESC);
NAME(DO_MATMUL_B, OPERATION_MATMUL_BDESC);
NAME(DO_MATMUL_C, OPERATION_MATMUL_CDESC);
NAME(DO_MATMUL_OPERATOR, OPERATION_MATMUL_DESC);
NAME(REDUCTION_KIND, REDUCTION_OPERATOR);
NAME(REDUCTION_PRECISION, REDUCTION_COMP_TYPE);
NAME(DO_REDUCTION_X, OPERATION_REDUCTION_XDESC);
NAME(DO_REDUCTION_Y, OPERATION_REDUCTION_YDESC);
NAME(DO_REDUCTION_OPERATOR, OPERATION_REDUCTION_DESC);
SAME(DT_CUDNN_OF_HANDLE, CUDNN_TYPE_HANDLE);
SAME(DT_CUDNN_OF_TYPE, CUDNN_TYPE_DATA_TYPE);
SAME(DT_CUDNN_OF_BOOL, CUDNN_TYPE_BOOLEAN);
SAME(DT_CUDNN_OF_INT64, CUDNN_TYPE_INT64);
SAME(DT_CUDNN_OF_POINTER, CUDNN_TYPE_VOID_PTR);
SAME(DT_CUDNN_OF_HEURISTICS_MODE, CUDNN_TYPE_HEUR_MODE);
SAME(DT_CUDNN_OF_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
SAME(DT_CUDNN_OF_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE);
SAME(DT_CUDNN_OF_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR);
SAME(DT_CUDNN_OF_REDUCTION_KIND, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
SAME(DT_CUDNN_OF_CHAR, CUDNN_TYPE_CHAR);
SAME(DT_CUDNN_FLOAT, CUDNN_DATA_FLOAT);
SAME(DT_CUDNN_HALF, CUDNN_DATA_HALF);
SAME(DT_CUDNN_INT32, CUDNN_DATA_INT32);
SAME(DT_CUDNN_BFLOAT16, CUDNN_DATA_BFLOAT16);
SAME(DT_CUDNN_BOOLEAN, CUDNN_DATA_BOOLEAN);
SAME(DT_CUDNN_ADD, CUDNN_POINTWISE_ADD);
SAME(DT_CUDNN_MUL, CUDNN_POINTWISE_MUL);
SAME(DT_CUDNN_DIV, CUDNN_POINTWISE_DIV);
SAME(DT_CUDNN_SUB, CUDNN_POINTWISE_SUB);
SAME(DT_CUDNN_EXP, CUDNN_POINTWISE_EXP);
SAME(DT_CUDNN_LOG, CUDNN_POINTWISE_LOG);
SAME(DT_CUDNN_GREATER_EQUAL, CUDNN_POINTWISE_CMP_GE);
SAME(DT_CUDNN_INDEX, CUDNN_POINTWISE_GEN_INDEX);
SAME(DT_CUDNN_SELECT, CUDNN_POINTWISE_BINARY_SELECT);
SAME(DT_CUDNN_SUM, CUDNN_REDUCE_TENSOR_ADD);
SAME(DT_CUDNN_MAX, CUDNN_REDUCE_TENSOR_MAX);
SAME(DT_CUDNN_HEURISTICS_BEST_GUESS, CUDNN_HEUR_MODE_A);
SAME(DT_CUDNN_NOTE_NOT_DETERMINISTIC, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
_Static_assert((int)CUDNN_NUMERICAL_NOTE_TYPE_COUNT <= (int)DT_CUDNN_NOTES_MOST, "room for notes");
_Static_assert(sizeof(cudnnStatus_t) == sizeof(int) && sizeof(cudnnDataType_t) == sizeof(int),
               "enumerators are ints");
#if CUDNN_VERSION >= 90800 /* versions that accept a description of a GPU */
KIND(CARD, DEVICEPROP);
NAME(CARD_JSON, DEVICEPROP_JSON_REPRESENTATION);
NAME(HEURISTICS_CARD, ENGINEHEUR_DEVICEPROP);
#endif
#endif

/* The keys that the library requires. */
#define CARD                                                                                \
    "{\"deviceName\": \"%s\", \"deviceVer\": %d, \"multiProcessorCount\": %d, "             \
    "\"maxSharedMemoryPerBlockOptin\": %d, \"maxSharedMemoryPerBlock\": 49152, "            \
    "\"reservedSharedMemoryPerBlock\": 1024, \"maxGridSize\": [2147483647, 65535, 65535], " \
    "\"maxBlockSize\": [1024, 1024, 64], \"regsPerBlock\": 65536, \"maxRegistersPerSM\": "  \
    "65536, \"smClockRateKHz\": 1755000, \"memClockRateKHz\": 1593000, \"l2CacheSize\": "   \
    "41943040, \"warpSize\": 32, \"maxCtasPerSM\": 32, \"maxThreadsPerBlock\": 1024, "      \
    "\"maxThreadsPerSM\": 2048, \"pciDeviceId\": 0, \"isTccDriver\": 0, "                   \
    "\"supportCoopLaunch\": 1, \"driverVer\": 13000, \"cudaDeviceId\": 0, "                 \
    "\"totalGlobalMem\": 85017493504}"

static dt_cudnn cudnn;

static void *open_card(const char *name, int version, int processors, int shared_bytes)
{
    char text[1024];
    int length = snprintf(text, sizeof(text), CARD, name, version, processors, shared_bytes);
    void *card = NULL;

    assert_int_equal(cudnn.create(DT_CUDNN_CARD, &card), 0);
    assert_int_equal(cudnn.set(card, DT_CUDNN_CARD_JSON, DT_CUDNN_OF_CHAR, length, text), 0);
    assert_int_equal(cudnn.finalize(card), 0);
    return card;
}

/* Engines look for the driver, or the toolkit's stub, before they are offered. */
static void expect_engines(void *card, dt_dtype dtype, int64_t d, int64_t t)
{
    dt_cudnn_shape shape = {4, t, 12, d, dtype};
    void *heuristics, *config[DT_CUDNN_CONFIGS];
    dt_error err = DT_ERROR_INIT;
    dt_cudnn_graph graph;
    int count;

    if (dt_cudnn_graph_attention(&graph, &cudnn, &shape, &err) != DT_OK)
        fail_msg("%s", err.message);
    if (dt_cudnn_engines(&heuristics, config, &count, &graph, card, &err) != DT_OK)
        fail_msg("%s", err.message);
    if (dlopen("libcuda.so.1", RTLD_NOW) != NULL && count == 0)
        fail_msg("no engine for heads of %lld, T %lld", (long long)d, (long long)t);
    for (int i = 0; i < DT_CUDNN_CONFIGS; i++)
        assert_int_equal(cudnn.destroy(config[i]), 0);
    assert_int_equal(cudnn.destroy(heuristics), 0);
    dt_cudnn_graph_release(&graph);
}

static void test_the_graph_is_taken_for_attention_on_a_card_in_words(void **state)
{
    void *h100 = open_card("NVIDIA H100 80GB HBM3", 900, 132, 232448);
    void *a100 = open_card("NVIDIA A100-SXM4-80GB", 800, 108, 166912);

    expect_engines(h100, DT_BF16, 64, 1024);
    expect_engines(h100, DT_F16, 128, 33);
    expect_engines(a100, DT_BF16, 128, 1024);
    expect_engines(a100, DT_F16, 64, 1);
    assert_int_equal(cudnn.destroy(h100), 0);
    assert_int_equal(cudnn.destroy(a100), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_graph_is_taken_for_attention_on_a_card_in_words),
    };
    dt_error err = DT_ERROR_INIT;

    if (dt_cudnn_open(&cudnn, &err) != DT_OK) {
        printf("skipped: %s\n", err.message);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
