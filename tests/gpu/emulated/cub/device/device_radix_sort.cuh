/* emulated cub: a stable sort of pairs by the low bits of the key. */
#ifndef DT_EMULATED_CUB_RADIX_SORT_CUH
#define DT_EMULATED_CUB_RADIX_SORT_CUH

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/gpu/emulated/emulator.h"

namespace cub
{

struct DeviceRadixSort {
    template <typename K, typename V>
    static cudaError_t SortPairs(void *storage, size_t &bytes, const K *keys, K *sorted_keys,
                                 const V *values, V *sorted_values, int n, int begin_bit = 0,
                                 int end_bit = 32, cudaStream_t stream = NULL)
    {
        bytes = 256;
        if (storage == NULL)
            return cudaSuccess;
        dt_emulated_enqueue(stream, [=]() {
            std::vector<int> order(n);
            uint64_t mask = ((uint64_t)1 << end_bit) - 1;
            dt_emulated_open memory;

            std::iota(order.begin(), order.end(), 0);
            std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
                return (keys[a] & mask) >> begin_bit < (keys[b] & mask) >> begin_bit;
            });
            for (int i = 0; i < n; i++) {
                sorted_keys[i] = keys[order[i]];
                sorted_values[i] = values[order[i]];
            }
        });
        return cudaSuccess;
    }
};

} // namespace cub

#endif
