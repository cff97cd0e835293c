#include "engine/data/shuffle.h"

dt_philox_key dt_shuffle_key(uint64_t seed, int64_t epoch, dt_draw_kind what)
{
    dt_philox_key key = {
        .seed = seed, .step = (uint32_t)epoch, .layer = (uint32_t)what, .op = DT_PHILOX_SHUFFLE};
    return key;
}

void dt_shuffle(int64_t *out, int64_t count, const dt_philox_key *key)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t other = (int64_t)(dt_shuffle_draw(key, (uint64_t)i) % (uint64_t)(i + 1));
        int64_t held = out[i];

        out[i] = out[other];
        out[other] = held;
    }
}
