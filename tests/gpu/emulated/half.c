/* In C, because C compilers have supported _Float16 longer than C++ compilers. */
#include <stdint.h>
#include <string.h>

float dt_emulated_half_to_float(uint16_t bits);
uint16_t dt_emulated_float_to_half(float x);

float dt_emulated_half_to_float(uint16_t bits)
{
    _Float16 half;

    memcpy(&half, &bits, sizeof(half));
    return (float)half;
}

uint16_t dt_emulated_float_to_half(float x)
{
    _Float16 half = (_Float16)x;
    uint16_t bits;

    memcpy(&bits, &half, sizeof(bits));
    return bits;
}
