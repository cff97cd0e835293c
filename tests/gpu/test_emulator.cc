/* The emulated cards detect what they claim to detect (emulated/cuda_runtime.h): kernels with one
 * fault each, which a CPU would run without a message, end their process with the message for it;
 * the same kernels without the fault do not.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

#include "engine/ops/cuda/hopper.cuh"
#include "engine/ops/cuda/ptx.cuh"

#define THREADS 64
#define GROUPS  (8192 + 16 + 1024) /* shared memory, if there are warpgroups */

/* --- kernels: FAULT is whether they have their fault */

template <bool FAULT> static void reads_neighbour(float *out)
{
    __shared__ float values[THREADS];

    values[threadIdx.x] = (float)threadIdx.x;
    if (!FAULT)
        __syncthreads();
    out[threadIdx.x] = values[(threadIdx.x + 32) % THREADS];
}

template <bool FAULT> static void reads_lane(float *out)
{
    DT_CUDA_DYNAMIC_SHARED(memory);
    float *values = (float *)memory, sum;

    values[threadIdx.x] = 1.0f;
    if (!FAULT)
        __syncwarp();
    sum = __shfl_xor_sync(0xffffffffu, 1.0f, 1); /* a shuffle orders no memory */
    out[threadIdx.x] = values[threadIdx.x ^ 1] + sum;
}

template <bool FAULT> static void writes_again(float *out)
{
    DT_CUDA_DYNAMIC_SHARED(memory);
    float *values = (float *)memory;

    values[threadIdx.x] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = values[(threadIdx.x + 1) % THREADS];
    if (!FAULT)
        __syncthreads();
    values[threadIdx.x] = 2.0f;
}

template <bool FAULT> static void adds_up(float *out)
{
    out[FAULT ? threadIdx.x : blockIdx.x * THREADS + threadIdx.x] += 1.0f;
}

template <bool FAULT> static void shares_halves(float *out)
{
    ((__half *)out)[threadIdx.x / (FAULT ? 2 : 1)] = __float2half_rn(1.0f);
}

template <bool FAULT> static void reaches_beyond(float *)
{
    DT_CUDA_DYNAMIC_SHARED(memory);

    ((float *)memory)[threadIdx.x + (FAULT ? 1 : 0)] = 0.0f;
}

template <bool FAULT> static void parts_at_barrier(float *)
{
    if (FAULT && threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
}

template <bool FAULT> static void loses_lanes(float *out)
{
    if (FAULT && threadIdx.x % 32 == 31)
        return;
    out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
}

template <bool FAULT> static void loads_vector(float *out)
{
    *(dt_vec<float> *)(out + threadIdx.x * 4) = *(dt_vec<float> *)(out + 256 + (FAULT ? 1 : 0));
}

template <bool FAULT> static void counts_in_32_bits(float *out)
{
    int rows = 50304 * 1024, cols = (int)gridDim.x * (FAULT ? 64 : 1); /* 1 */

    out[threadIdx.x] = (float)(rows * cols);
}

/* --- copies: a thread copies 16 bytes, and reads its own and its neighbour's */

enum fault { NONE, NO_WAIT, WAITS_FOR_ALL_BUT_ONE, NO_BARRIER, OVERWRITES, ODD_TO, ODD_FROM, ENDS };

template <int FAULT> static void copies(float *out)
{
    DT_CUDA_DYNAMIC_SHARED(memory);
    float *mine = (float *)memory + threadIdx.x * 4;
    int other = (int)(threadIdx.x + 1) % THREADS * 4;

    dt_ptx_copy_16(dt_shared_at(mine + (FAULT == ODD_TO ? 1 : 0)),
                   out + 256 + (FAULT == ODD_FROM ? 2 : 0), true);
    dt_tile_commit();
    if (FAULT == ENDS)
        return;
    if (FAULT == WAITS_FOR_ALL_BUT_ONE)
        dt_tile_wait<1>();
    else if (FAULT != NO_WAIT)
        dt_tile_wait<0>();
    if (FAULT != NO_BARRIER)
        __syncthreads();
    out[threadIdx.x] = ((float *)memory)[other];
    if (FAULT != OVERWRITES)
        __syncthreads();
    dt_ptx_copy_16(dt_shared_at(mine), out, false);
    dt_tile_commit();
    dt_tile_wait<0>();
}

/* Rows of 8 elements, as ldmatrix needs them, or `skip` further apart. */
template <int SKIP> static void loads_matrix(float *out)
{
    DT_CUDA_DYNAMIC_SHARED(memory);
    uint16_t *tile = (uint16_t *)memory;

    for (int i = 0; i < 16; i++)
        tile[threadIdx.x * 16 + i] = 0;
    __syncthreads();
    out[threadIdx.x] = (float)dt_ldmatrix(dt_shared_at(tile + threadIdx.x * 8 + SKIP)).r[0];
}

/* --- sm_90a: the first warp copies a matrix of 64 x 64, a warpgroup multiplies it with itself, transposed */

enum hopper_fault {
    SOUND,
    UNSHOWN,    /* barriers without a fence before the copies */
    UNEXPECTED, /* bytes that no barrier expects */
    TOO_FEW,    /* fewer bytes than expected: no thread continues */
    ODD_PLACE,  /* a copy to an address that is not a multiple of 128 bytes */
    TWICE,     /* a copy to the destination of one in progress, with a barrier that waits for one */
    UNAWAITED, /* a product of data that have not arrived */
    UNFENCED,  /* a product without a fence before it */
    UNCOMMITTED,   /* whose group is waited for but never closed */
    UNFINISHED,    /* read before it is waited for */
    FREED_EARLY,   /* its operands are overwritten meanwhile */
    PARTED,        /* one warp gives another product */
    MADE_FOR_MORE, /* a barrier that waits for more arrivals than there are */
};

template <int FAULT> static void multiplies(float *out)
{
    DT_CUDA_DYNAMIC_SHARED(memory);
    dt_shared at = (dt_shared_at(memory) + 1023) & ~(dt_shared)1023, filled = at + 8192;
    dt_shared free = filled + 8;
    int group = (int)threadIdx.x / 128;
    float c[8][4] = {};
    unsigned patience = 0;
    dt_error err = DT_ERROR_INIT;
    dt_heads_in_memory heads = {out + 256, 64, 1, 64, 1, 64, 64 * 64};
    dt_tensor_map map;

    dt_tensor_map_make(&map, &heads, 64, &err);
    if (threadIdx.x == 0) {
        dt_barrier_make(filled, 1);
        dt_barrier_make(free, FAULT == MADE_FOR_MORE ? 129 : 128);
        if (FAULT != UNSHOWN)
            dt_barriers_made();
    }
    __syncthreads();
    if (group == 0) {
        if (threadIdx.x != 0)
            return;
        for (int turn = 0; turn < 2; turn++) {
            if (turn > 0 && FAULT != TWICE)
                dt_barrier_wait(free, 0, patience);
            dt_barrier_expect(filled, FAULT == UNEXPECTED ? 4096 : FAULT == TOO_FEW ? 16384 : 8192);
            dt_bulk_load(at + (FAULT == ODD_PLACE ? 16 : 0), &map, filled, 0, 0, turn, 0);
        }
        return;
    }
    for (unsigned turn = 0; turn < 2; turn++) {
        uint64_t matrix = dt_matrix(at, 0);

        if (FAULT != UNAWAITED)
            dt_barrier_wait(filled, turn, patience);
        if (FAULT != UNFENCED)
            dt_wgmma_fence();
        for (unsigned k = 0; k < 4; k++)
            dt_wgmma<true, false>(
                c, dt_matrix_from(matrix, k * 32),
                dt_matrix_from(matrix, k * 32 + (FAULT == PARTED && threadIdx.x >= 224 ? 16 : 0)),
                __nv_bfloat16());
        if (FAULT != UNCOMMITTED)
            dt_wgmma_commit();
        if (FAULT == FREED_EARLY)
            dt_barrier_arrive(free);
        if (FAULT == UNFINISHED)
            dt_wgmma_wait<1>();
        else
            dt_wgmma_wait<0>();
        if (FAULT != FREED_EARLY)
            dt_barrier_arrive(free);
    }
    if (c[0][0] != c[0][0]) {
        fprintf(stderr, "a result that is not there\n");
        abort();
    }
}

/* --- each kernel in a separate process */

struct planted {
    const char *name;
    void (*kernel)(float *);
    size_t shared_bytes;
    unsigned blocks;
    const char *words; /* NULL: the kernel runs */
};

static void launch(const planted *p)
{
    cudaStream_t stream;
    float *out;

    cudaMalloc(&out, 16384);
    cudaMemset(out, 0, 16384);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    DT_CUDA_LAUNCH(p->kernel, p->blocks, p->shared_bytes == GROUPS ? 256 : THREADS, p->shared_bytes,
                   stream, out);
    cudaStreamSynchronize(stream);
}

static void test_fault_is_seen(void **state)
{
    const planted *p = (const planted *)*state;
    char said[4096] = "";
    size_t length = 0;
    int ends[2], status;
    ssize_t got;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        signal(SIGABRT, SIG_DFL);
        launch(p);
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], said + length, sizeof(said) - 1 - length)) > 0)
        length += (size_t)got;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (p->words == NULL ? !WIFEXITED(status) || WEXITSTATUS(status) != 0
                         : WIFEXITED(status) && WEXITSTATUS(status) == 0)
        fail_msg("it ended with status %#x, and said: %s", status, said);
    if (p->words != NULL && strstr(said, p->words) == NULL)
        fail_msg("expected '%s', and it said: %s", p->words, said);
}

#define TILE (THREADS * 16)
/* clang-format off */
#define BOTH(kernel, bytes, blocks, words)        \
    {#kernel, kernel<true>, bytes, blocks, words}, \
    {#kernel "_as_it_should", kernel<false>, bytes, blocks, NULL}
/* clang-format on */

static const planted all[] = {
    BOTH(reads_neighbour, 0, 1, "a race"),
    BOTH(reads_lane, THREADS * 4, 1, "a race"),
    BOTH(writes_again, THREADS * 4, 1, "a race"),
    BOTH(adds_up, 0, 2, "a race"),
    BOTH(shares_halves, 0, 1, "a race"),
    BOTH(reaches_beyond, THREADS * 4, 1, "shared memory beyond"),
    BOTH(parts_at_barrier, 0, 1, "barriers of different lines"),
    BOTH(loses_lanes, 0, 1, "a lane that the mask names has ended"),
    BOTH(loads_vector, 0, 1, "misaligned"),
    BOTH(counts_in_32_bits, 0, 1, "signed integer overflow"),
    {"copies_as_they_should", copies<NONE>, TILE, 1, NULL},
    {"copies_without_a_wait", copies<NO_WAIT>, TILE, 1, "not waited for"},
    {"copies_waits_for_too_few", copies<WAITS_FOR_ALL_BUT_ONE>, TILE, 1, "not waited for"},
    {"copies_without_a_barrier", copies<NO_BARRIER>, TILE, 1, "a race"},
    {"copies_overwrite_what_is_read", copies<OVERWRITES>, TILE, 1, "a race"},
    {"copies_to_an_odd_place", copies<ODD_TO>, TILE, 1, "no 16 bytes begin"},
    {"copies_from_an_odd_place", copies<ODD_FROM>, TILE, 1, "no 16 bytes begin"},
    {"copies_nobody_waits_for", copies<ENDS>, TILE, 1, "has ended, and copies"},
    {"ldmatrix_as_it_should", loads_matrix<0>, 2 * TILE, 1, NULL},
    {"ldmatrix_of_an_odd_row", loads_matrix<4>, 2 * TILE, 1, "does not begin at 16 bytes"},
    {"products_as_they_should", multiplies<SOUND>, GROUPS, 1, NULL},
    {"barriers_not_shown", multiplies<UNSHOWN>, GROUPS, 1, "no fence has shown"},
    {"bulk_copies_not_expected", multiplies<UNEXPECTED>, GROUPS, 1,
     "more than its barrier expects"},
    {"bulk_copies_of_too_little", multiplies<TOO_FEW>, GROUPS, 1, "others never reach"},
    {"bulk_copies_to_an_odd_place", multiplies<ODD_PLACE>, GROUPS, 1, "128 bytes of shared memory"},
    {"bulk_copies_onto_another", multiplies<TWICE>, GROUPS, 1, "more arrive at a barrier"},
    {"products_of_what_is_to_come", multiplies<UNAWAITED>, GROUPS, 1, "not waited for"},
    {"products_without_a_fence", multiplies<UNFENCED>, GROUPS, 1, "no fence divides"},
    {"products_never_committed", multiplies<UNCOMMITTED>, GROUPS, 1, "still to read"},
    {"products_not_waited_for", multiplies<UNFINISHED>, GROUPS, 1, "still to read"},
    {"products_whose_operands_go", multiplies<FREED_EARLY>, GROUPS, 1, "still to read"},
    {"products_that_differ", multiplies<PARTED>, GROUPS, 1, "different products"},
    {"barriers_for_too_many", multiplies<MADE_FOR_MORE>, GROUPS, 1, "others never reach"},
    {"ldmatrix_beyond_the_tile", loads_matrix<16 * THREADS>, 2 * TILE, 1, "not in the launch's"},
};

int main(void)
{
    static CMUnitTest tests[sizeof(all) / sizeof(all[0])];

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        tests[i] = {all[i].name, test_fault_is_seen, NULL, NULL, (void *)&all[i]};
    return _cmocka_run_group_tests("emulator", tests, sizeof(all) / sizeof(all[0]), NULL, NULL);
}
