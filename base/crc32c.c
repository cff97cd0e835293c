#include "base/crc32c.h"

/* Handles four bits at a time: a table of 16 entries needs no initialization, and the records are small. */
uint32_t dt_crc32c(const void *bytes, size_t length)
{
    static const uint32_t table[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                       0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                       0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                       0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    const uint8_t *at = bytes;
    uint32_t sum = 0xffffffff;

    for (size_t i = 0; i < length; i++) {
        sum = table[(sum ^ at[i]) & 15] ^ (sum >> 4);
        sum = table[(sum ^ (at[i] >> 4)) & 15] ^ (sum >> 4);
    }
    return ~sum;
}

uint32_t dt_crc32c_masked(const void *bytes, size_t length)
{
    uint32_t sum = dt_crc32c(bytes, length);

    return ((sum >> 15) | (sum << 17)) + 0xa282ead8;
}
