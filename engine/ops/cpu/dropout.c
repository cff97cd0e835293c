/* dropout: keep with probability 1-p, scale what is kept by 1/(1-p).
 *
 * Element i is kept where the uniform number of Philox word i is >= p. Forward and backward are
 * the same map, drawn from the same key: nothing is stored between them.
 */
#include "engine/ops/cpu/ops_int.h"
#include "engine/ops/cpu/rows_int.h"

#include "base/banned.h"

#define WORK 8 /* an element costs about as much as this many of a sum */

_Static_assert(DT_ROW_CHUNK % 4 == 0, "a chunk starts at a Philox block");

/* uniforms[i] for elements start .. start+n, start a multiple of 4. */
static void draw(float *uniforms, const dt_philox_key *key, int64_t start, int64_t n)
{
    uint64_t first = (uint64_t)start / 4;
    dt_philox_key k = *key;

#pragma omp simd
    for (int64_t b = 0; b < (n + 3) / 4; b++) {
        dt_philox_block block = dt_philox_draw(&k, first + (uint64_t)b);

        uniforms[4 * b] = dt_philox_uniform(block.word[0]);
        uniforms[4 * b + 1] = dt_philox_uniform(block.word[1]);
        uniforms[4 * b + 2] = dt_philox_uniform(block.word[2]);
        uniforms[4 * b + 3] = dt_philox_uniform(block.word[3]);
    }
}

static dt_status drop(dt_device *device, dt_tensor *y, const dt_tensor *x, double p,
                      const dt_philox_key *key, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t elems = dt_tensor_elems(x);
    float threshold = (float)p, scale = (float)(1.0 / (1.0 - p));
    dt_cpu_scratch scratch;

    DT_ASSERT(p >= 0.0 && p < 1.0);
    DT_TRY(dt_row_check(x, "dropout", err));
    DT_TRY(dt_cpu_scratch_take(&scratch, device, 3 * DT_ROW_CHUNK, err));
#pragma omp parallel num_threads(dt_cpu_threads(device, elems *WORK))
    {
        dt_cpu_share share = dt_cpu_share_mine(elems, DT_ROW_CHUNK);
        float *mine = dt_cpu_scratch_mine(scratch);
        float *uniforms = mine + 2 * DT_ROW_CHUNK;

        for (int64_t i = share.begin; i < share.end; i += DT_ROW_CHUNK) {
            int64_t n = dt_cpu_min(DT_ROW_CHUNK, share.end - i);
            const float *in = dt_row_read(x, i, n, mine);
            float *out = dt_row_open(y, i, mine + DT_ROW_CHUNK);

            draw(uniforms, key, i, n);
#pragma omp simd
            for (int64_t l = 0; l < n; l++)
                out[l] = uniforms[l] >= threshold ? in[l] * scale : 0.0f;
            dt_row_close(y, i, n, out);
        }
    }
out:
    return st;
}

dt_status DT_CPU_NAME(dropout_forward)(dt_device *device, dt_tensor *y, const dt_tensor *x,
                                       double p, const dt_philox_key *key, dt_error *err)
{
    return p > 0.0 ? drop(device, y, x, p, key, err) : DT_CPU_NAME(cast)(device, y, x, err);
}

dt_status DT_CPU_NAME(dropout_backward)(dt_device *device, dt_tensor *dx, const dt_tensor *dy,
                                        double p, const dt_philox_key *key, dt_error *err)
{
    return DT_CPU_NAME(dropout_forward)(device, dx, dy, p, key, err);
}
