#include "tests/unit/comm_support.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const int64_t sizes[] = {0, 1, 2, 3, 7, 1000, 300001};
static const dt_dtype types[] = {DT_F32, DT_BF16};

/* Small whole numbers: exact in bf16 too, also as sums over up to 8 ranks. */
static float value_of(int64_t rank, int64_t at)
{
    return (float)((at * 7 + rank * 3) % 16);
}

static float sum_of(int64_t world_size, int64_t at)
{
    float sum = 0;

    for (int64_t rank = 0; rank < world_size; rank++)
        sum += value_of(rank, at);
    return sum;
}

static void put(void *data, dt_dtype dtype, int64_t at, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    if (dtype == DT_F32)
        ((float *)data)[at] = value;
    else
        ((uint16_t *)data)[at] = (uint16_t)(bits >> 16);
}

static float get(const void *data, dt_dtype dtype, int64_t at)
{
    uint32_t bits;
    float value;

    if (dtype == DT_F32)
        return ((const float *)data)[at];
    bits = (uint32_t)((const uint16_t *)data)[at] << 16;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static int check_all_reduce(dt_comm *comm, dt_dtype dtype, int64_t n)
{
    int rank = (int)comm->rank;
    void *data = calloc((size_t)n + 1, dt_dtype_bytes(dtype));

    for (int64_t i = 0; i < n; i++)
        put(data, dtype, i, value_of(rank, i));
    put(data, dtype, n, 99);
    CHECK(comm->all_reduce(comm, data, n, dtype, NULL) == DT_OK);
    for (int64_t i = 0; i < n; i++)
        CHECK(get(data, dtype, i) == sum_of(comm->world_size, i));
    CHECK(get(data, dtype, n) == 99);
    free(data);
    return 0;
}

static int check_all_reduce_f64(dt_comm *comm, int64_t n)
{
    int rank = (int)comm->rank;
    double *data = calloc((size_t)n + 1, sizeof(*data));

    for (int64_t i = 0; i < n; i++)
        data[i] = value_of(rank, i) + 0x1p-40; /* is lost in fp32 */
    CHECK(comm->all_reduce_f64(comm, data, n, NULL) == DT_OK);
    for (int64_t i = 0; i < n; i++)
        CHECK(data[i] == sum_of(comm->world_size, i) + (double)comm->world_size * 0x1p-40);
    CHECK(data[n] == 0);
    free(data);
    return 0;
}

static int check_reduce_scatter(dt_comm *comm, dt_dtype dtype, int64_t n, bool in_place)
{
    int rank = (int)comm->rank;
    int64_t all = n * comm->world_size;
    size_t elem_bytes = dt_dtype_bytes(dtype);
    char *in = calloc((size_t)all + 1, elem_bytes), *own = calloc((size_t)n + 1, elem_bytes);
    char *out = in_place ? in + (size_t)(rank * n) * elem_bytes : own;

    for (int64_t i = 0; i < all; i++)
        put(in, dtype, i, value_of(rank, i));
    CHECK(comm->reduce_scatter(comm, out, in, n, dtype, NULL) == DT_OK);
    for (int64_t i = 0; i < n; i++)
        CHECK(get(out, dtype, i) == sum_of(comm->world_size, rank * n + i));
    for (int64_t i = 0; i < all; i++)
        CHECK((in_place && i / n == rank) || get(in, dtype, i) == value_of(rank, i));
    free(own);
    free(in);
    return 0;
}

static unsigned char byte_of(int64_t rank, int64_t at)
{
    return (unsigned char)(rank * 50 + at * 3);
}

static int check_all_gather(dt_comm *comm, int64_t n, bool in_place)
{
    int rank = (int)comm->rank;
    unsigned char *out = calloc((size_t)(n * comm->world_size) + 1, 1);
    unsigned char *own = calloc((size_t)n + 1, 1), *in = in_place ? out + rank * n : own;

    for (int64_t i = 0; i < n; i++)
        in[i] = byte_of(rank, i);
    CHECK(comm->all_gather(comm, out, in, (size_t)n, NULL) == DT_OK);
    for (int64_t r = 0; r < comm->world_size; r++)
        for (int64_t i = 0; i < n; i++)
            CHECK(out[r * n + i] == byte_of(r, i));
    CHECK(out[n * comm->world_size] == 0);
    free(own);
    free(out);
    return 0;
}

static int check_broadcast(dt_comm *comm, int64_t n, int64_t root)
{
    int rank = (int)comm->rank;
    unsigned char *data = malloc((size_t)n + 1);

    for (int64_t i = 0; i <= n; i++)
        data[i] = byte_of(rank, i);
    CHECK(comm->broadcast(comm, data, (size_t)n, root, NULL) == DT_OK);
    for (int64_t i = 0; i < n; i++)
        CHECK(data[i] == byte_of(root, i));
    CHECK(data[n] == byte_of(rank, n));
    free(data);
    return 0;
}

int check_collectives(dt_comm *comm)
{
    int rank = (int)comm->rank;

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        int64_t n = sizes[s];

        for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
            CHECK(check_all_reduce(comm, types[t], n) == 0);
            CHECK(check_reduce_scatter(comm, types[t], n, false) == 0);
            CHECK(check_reduce_scatter(comm, types[t], n, true) == 0);
        }
        CHECK(check_all_reduce_f64(comm, n) == 0);
        CHECK(check_all_gather(comm, n, false) == 0);
        CHECK(check_all_gather(comm, n, true) == 0);
        for (int64_t root = 0; root < comm->world_size; root++)
            CHECK(check_broadcast(comm, n, root) == 0);
        CHECK(comm->barrier(comm, NULL) == DT_OK);
    }
    return 0;
}
