/* ascii_masks: finds the classes of 64 bytes as masks. Bit i belongs to byte i.
 *
 * Paths    AVX2 if the processor has it, else eight bytes at a time in 64-bit integers; both give the same masks
 */
#ifndef DT_ENGINE_TOKENS_ASCII_MASKS_H
#define DT_ENGINE_TOKENS_ASCII_MASKS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_ASCII_BLOCK 64

typedef struct dt_ascii_masks {
    uint64_t letter, upper, number;
    uint64_t space; /* \t \n \v \f \r and the blank */
    uint64_t blank; /* ' ' */
    uint64_t line;  /* \r \n */
    uint64_t quote; /* ' */
    uint64_t high;  /* not ASCII */
} dt_ascii_masks;

/* Reads DT_ASCII_BLOCK bytes. */
void dt_ascii_masks_find(dt_ascii_masks *out, const unsigned char *block);
/* The path that needs no AVX2. */
void dt_ascii_masks_find_plain(dt_ascii_masks *out, const unsigned char *block);

#ifdef __cplusplus
}
#endif
#endif
