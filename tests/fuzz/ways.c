#include "tests/fuzz/ways.h"

static bool all_are_taken;

void fuzz_ways_take_all(bool all)
{
    all_are_taken = all;
}

fuzz_ways fuzz_ways_of(const uint8_t *bytes, size_t size, size_t count)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    if (all_are_taken)
        return (fuzz_ways){0, count};
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    hash ^= hash >> 15;
    return (fuzz_ways){hash % count, hash % count + 1};
}
