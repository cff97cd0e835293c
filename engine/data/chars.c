#include "engine/data/chars.h"

void dt_char_set_add(dt_char_set *set, uint32_t code)
{
    set->bits[code / 64] |= (uint64_t)1 << (code % 64);
}

int64_t dt_char_set_count(const dt_char_set *set)
{
    int64_t count = 0;

    for (size_t i = 0; i < sizeof(set->bits) / sizeof(set->bits[0]); i++)
        for (uint64_t left = set->bits[i]; left != 0; left &= left - 1)
            count++;
    return count;
}

void dt_char_set_list(uint32_t *out, const dt_char_set *set)
{
    for (uint32_t code = 0; code < DT_UTF8_CODES; code++)
        if (set->bits[code / 64] >> (code % 64) & 1)
            *out++ = code;
}
