/* embedding: token ids to rows of numbers, and the lengths of rows of tokens.
 *
 * Backward     of tokens, without atomics: the positions of the batch are sorted by token (a stable radix
 *              sort), so that the positions of one token form a run, in batch order. Each block sums a
 *              chunk of CHUNK sorted positions. Runs inside the chunk are added to dwte directly, because
 *              no other block has them. The first and the last run of the chunk may continue in other
 *              chunks, and are written to `edges`. A second kernel adds the edges of each run in order, in
 *              the block of the chunk in which the run starts
 * Errors       a token outside the vocabulary is recorded on the device and reported by synchronize()
 */
#include <cub/device/device_radix_sort.cuh>
#include <limits.h>

#include "engine/ops/cuda/cuda_int.cuh"

/* row_lengths: computes the length of each row of tokens without its padding. One warp per row. */

#define WARPS 4 /* warps per block */

__global__ void ends(int32_t *lengths, const int32_t *tokens, int64_t rows, int64_t columns,
                     int32_t pad)
{
    int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    int lane = (int)threadIdx.x % 32, length = 1;

    if (row >= rows)
        return;
    for (int64_t j = lane; j < columns; j += 32)
        if (tokens[row * columns + j] != pad)
            length = (int)j + 1;
    for (int apart = 16; apart > 0; apart /= 2) {
        int other = __shfl_xor_sync(0xffffffffu, length, apart);

        length = other > length ? other : length;
    }
    if (lane == 0)
        lengths[row] = length;
}

dt_status dt_cuda_row_lengths(dt_device *device, dt_tensor *lengths, const dt_tensor *tokens,
                              int32_t pad, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t rows = tokens->dim[0];

    DT_ASSERT(tokens->dtype == DT_I32 && tokens->ndim == 2 && lengths->dtype == DT_I32 &&
              dt_tensor_elems(lengths) == rows);
    if (rows == 0)
        return DT_OK;
    DT_CUDA_LAUNCH(ends, (unsigned)dt_cuda_ceil(rows, WARPS), WARPS * 32, 0, state->stream,
                   (int32_t *)lengths->data, (const int32_t *)tokens->data, rows, tokens->dim[1],
                   pad);
    return dt_cuda_launched("row lengths", err);
}

#define CHUNK 32

/* The rows of the vocabulary in wte (ops.h). */
static dt_vocab_part part_of(const dt_vocab_part *part, const dt_tensor *wte)
{
    int64_t rows = dt_tensor_rows(wte);
    dt_vocab_part whole = {0, rows, rows};

    DT_ASSERT(part == NULL || part->count <= rows);
    return part != NULL ? *part : whole;
}

/* Returns the value of dt_cuda_state.fault for a token outside the vocabulary. */
__device__ inline int note_of(int32_t token)
{
    return token < 0 ? 1 : token < INT_MAX ? token + 1 : token;
}

template <typename T, typename O>
__global__ void forward(O *out, const int32_t *tokens, const T *wte, const T *wpe, int64_t t_count,
                        int64_t c, dt_vocab_part part, float scale, int *fault)
{
    int64_t row = blockIdx.x, place = row % t_count;
    int64_t token = tokens[row];
    bool held = token >= part.first && token < part.first + part.count;

    if (threadIdx.x == 0 && (token < 0 || token >= part.all))
        atomicMax(fault, note_of(tokens[row]));
    for (int64_t j = threadIdx.x; j < c; j += blockDim.x) {
        float word = held ? scale * dt_to_float(wte[(token - part.first) * c + j]) : 0.0f;

        out[row * c + j] =
            dt_from_float<O>(wpe == NULL ? word : word + dt_to_float(wpe[place * c + j]));
    }
}

dt_status dt_cuda_embedding_forward(dt_device *device, dt_tensor *out, const dt_tensor *tokens,
                                    const dt_tensor *wte, const dt_tensor *wpe, double scale,
                                    const dt_vocab_part *part, dt_error *err)
{
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t n = dt_tensor_elems(tokens), c = dt_tensor_cols(out);
    const void *places = wpe != NULL ? wpe->data : NULL;

    DT_ASSERT(tokens->dtype == DT_I32 && dt_tensor_cols(wte) == c && dt_tensor_rows(out) == n);
    DT_ASSERT(places == NULL ||
              (dt_tensor_cols(wpe) == c && dt_tensor_rows(wpe) >= dt_tensor_cols(tokens)));
    if (n == 0)
        return DT_OK;
    DT_CUDA_DISPATCH(wte->dtype, "embedding", err, {
        if (out->dtype == DT_F32)
            DT_CUDA_LAUNCH((forward<T, float>), (unsigned)n, DT_CUDA_BLOCK, 0, state->stream,
                           (float *)out->data, (const int32_t *)tokens->data, (const T *)wte->data,
                           (const T *)places, dt_tensor_cols(tokens), c, part_of(part, wte),
                           (float)scale, state->fault);
        else
            DT_CUDA_LAUNCH((forward<T, T>), (unsigned)n, DT_CUDA_BLOCK, 0, state->stream,
                           (T *)out->data, (const int32_t *)tokens->data, (const T *)wte->data,
                           (const T *)places, dt_tensor_cols(tokens), c, part_of(part, wte),
                           (float)scale, state->fault);
    });
    return dt_cuda_launched("embedding", err);
}

/* --- backward */

/* A token of another part gets the key part.count, which has no row. */
__global__ void number_places(uint32_t *keys, int32_t *places, const int32_t *tokens, int64_t n,
                              dt_vocab_part part, int *fault)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, token;

    if (i >= n)
        return;
    token = tokens[i];
    if (token < 0 || token >= part.all)
        atomicMax(fault, note_of(tokens[i]));
    token -= part.first;
    keys[i] = (uint32_t)(token < 0 || token >= part.count ? part.count : token);
    places[i] = (int32_t)i;
}

/* Sums chunk blockIdx.x, for the columns of blockIdx.y. edges (chunks, 2, C): the sums of the
 * chunk's first and last run, if they continue in another chunk. */
template <typename T>
__global__ void sum_chunks(float *dwte, float *edges, const T *dout, const uint32_t *keys,
                           const int32_t *places, int64_t n, int64_t c, int64_t rows, float scale)
{
    int64_t column = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
    int64_t begin = (int64_t)blockIdx.x * CHUNK, end = begin + CHUNK < n ? begin + CHUNK : n;
    bool open = begin > 0 && keys[begin - 1] == keys[begin]; /* the run began before this chunk */

    if (column >= c)
        return;
    edges += (int64_t)blockIdx.x * 2 * c;
    for (int64_t i = begin; i < end;) {
        uint32_t token = keys[i];
        float sum = 0.0f;

        while (i < end && keys[i] == token) {
            sum += dt_to_float(dout[(int64_t)places[i] * c + column]);
            i++;
        }
        if (open)
            edges[column] = sum;
        else if (i == end && i < n && keys[i] == token)
            edges[c + column] = sum;
        else if (token < rows)
            dwte[(int64_t)token * c + column] += scale * sum;
        open = false;
    }
}

/* Adds, in order, the parts of the run that starts in chunk blockIdx.x and continues in the next
 * chunks. */
__global__ void join_chunks(float *dwte, const float *edges, const uint32_t *keys, int64_t n,
                            int64_t c, int64_t rows, float scale)
{
    int64_t column = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
    int64_t chunk = blockIdx.x, begin = chunk * CHUNK, next = begin + CHUNK;
    uint32_t token;
    float sum;

    if (column >= c || next >= n || keys[next] != keys[next - 1])
        return;
    token = keys[next];
    if (token >= rows)
        return; /* a token of another part */
    if (keys[begin] == token && begin > 0 && keys[begin - 1] == token)
        return; /* the run started in an earlier chunk */
    sum = edges[(chunk * 2 + 1) * c + column];
    for (; next < n && keys[next] == token; next += CHUNK)
        sum += edges[(next / CHUNK) * 2 * c + column];
    dwte[(int64_t)token * c + column] += scale * sum;
}

template <typename T>
__global__ void sum_positions(float *dwpe, const T *dout, int64_t batch, int64_t t_count, int64_t c)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;

    if (i >= t_count * c)
        return;
    for (int64_t b = 0; b < batch; b++)
        sum += dt_to_float(dout[b * t_count * c + i]);
    dwpe[i] += sum;
}

/* The parts of scratch that the backward pass uses for n positions. */
struct layout {
    size_t keys, places, sorted_keys, sorted_places, edges, sort, sort_bytes, total;
};

static size_t take(size_t *at, size_t bytes)
{
    size_t start = *at;

    *at += (bytes + 255) / 256 * 256;
    return start;
}

static dt_status lay_out(layout *l, int64_t n, int64_t c, dt_error *err)
{
    size_t at = 0, words = (size_t)n * 4;
    dt_status st = dt_cuda_check(cub::DeviceRadixSort::SortPairs(
                                     NULL, l->sort_bytes, (const uint32_t *)NULL, (uint32_t *)NULL,
                                     (const int32_t *)NULL, (int32_t *)NULL, (int)n),
                                 "embedding", err);

    l->keys = take(&at, words);
    l->places = take(&at, words);
    l->sorted_keys = take(&at, words);
    l->sorted_places = take(&at, words);
    l->edges = take(&at, (size_t)dt_cuda_ceil(n, CHUNK) * 2 * (size_t)c * sizeof(float));
    l->sort = take(&at, l->sort_bytes);
    l->total = at;
    return st;
}

static int bits_of(int64_t vocab)
{
    int bits = 1;

    while (bits < 31 && ((int64_t)1 << bits) < vocab)
        bits++;
    return bits;
}

dt_status dt_cuda_embedding_backward(dt_device *device, dt_tensor *dwte, dt_tensor *dwpe,
                                     const dt_tensor *dout, const dt_tensor *tokens, double scale,
                                     const dt_vocab_part *part, dt_error *err)
{
    dt_vocab_part held = part_of(part, dwte);
    dt_cuda_state *state = dt_cuda_of(device);
    int64_t t_count = dt_tensor_cols(tokens), n = dt_tensor_elems(tokens);
    int64_t c = dt_tensor_cols(dout);
    dim3 grid((unsigned)dt_cuda_ceil(n, CHUNK), (unsigned)dt_cuda_ceil(c, DT_CUDA_BLOCK));
    uint32_t *keys, *sorted;
    int32_t *places, *sorted_places;
    dt_status st = DT_OK;
    float *edges;
    layout l;
    char *base;
    void *scratch;

    DT_ASSERT(n < ((int64_t)1 << 31));
    if (n == 0)
        return DT_OK;
    if (dwpe != NULL && dwpe->data != NULL)
        DT_CUDA_DISPATCH(dout->dtype, "embedding", err, {
            DT_CUDA_LAUNCH((sum_positions<T>), (unsigned)dt_cuda_ceil(t_count * c, DT_CUDA_BLOCK),
                           DT_CUDA_BLOCK, 0, state->stream, (float *)dwpe->data,
                           (const T *)dout->data, n / t_count, t_count, c);
        });
    if (dwte->data == NULL)
        return dt_cuda_launched("embedding", err);
    DT_ASSERT(dwte->dtype == DT_F32 && dt_tensor_cols(dwte) == c);
    DT_TRY(lay_out(&l, n, c, err));
    DT_TRY(dt_cuda_scratch(&scratch, device, l.total, err));
    base = (char *)scratch;
    keys = (uint32_t *)(base + l.keys);
    places = (int32_t *)(base + l.places);
    sorted = (uint32_t *)(base + l.sorted_keys);
    sorted_places = (int32_t *)(base + l.sorted_places);
    edges = (float *)(base + l.edges);
    DT_CUDA_LAUNCH(number_places, (unsigned)dt_cuda_ceil(n, DT_CUDA_BLOCK), DT_CUDA_BLOCK, 0,
                   state->stream, keys, places, (const int32_t *)tokens->data, n, held,
                   state->fault);
    DT_TRY(dt_cuda_check(cub::DeviceRadixSort::SortPairs(base + l.sort, l.sort_bytes, keys, sorted,
                                                         places, sorted_places, (int)n, 0,
                                                         bits_of(held.count + 1), state->stream),
                         "embedding", err));
    DT_CUDA_DISPATCH(dout->dtype, "embedding", err, {
        DT_CUDA_LAUNCH((sum_chunks<T>), grid, DT_CUDA_BLOCK, 0, state->stream, (float *)dwte->data,
                       edges, (const T *)dout->data, sorted, sorted_places, n, c, held.count,
                       (float)scale);
    });
    DT_CUDA_LAUNCH(join_chunks, grid, DT_CUDA_BLOCK, 0, state->stream, (float *)dwte->data, edges,
                   sorted, n, c, held.count, (float)scale);
    DT_TRY(dt_cuda_launched("embedding", err));
out:
    return st;
}
