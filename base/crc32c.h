/* crc32c: the checksum of Castagnoli's polynomial (0x1EDC6F41, reflected), as RFC 3720 has it: what the
 * records of TensorBoard's event files are framed with.
 */
#ifndef DT_BASE_CRC32C_H
#define DT_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "123456789" gives 0xE3069283. */
uint32_t dt_crc32c(const void *bytes, size_t length);
/* As such a record stores it, so that the sum of bytes that hold sums says something. */
uint32_t dt_crc32c_masked(const void *bytes, size_t length);

#ifdef __cplusplus
}
#endif
#endif
