/* crc32c: computes the Castagnoli CRC (polynomial 0x1EDC6F41, reflected; RFC 3720) that frames the records of
 * TensorBoard's event files.
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
/* Returns the masked CRC, as stored in TFRecord files. The mask keeps a CRC of data that itself contains CRCs
 * meaningful. */
uint32_t dt_crc32c_masked(const void *bytes, size_t length);

#ifdef __cplusplus
}
#endif
#endif
