/* dtype: names the types of tensor elements.
 *
 * It is in base because memory is predicted in recipes/cost/memory.h, which must not depend on tensors.
 */
#ifndef DT_BASE_DTYPE_H
#define DT_BASE_DTYPE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_dtype { DT_F32, DT_BF16, DT_F16, DT_I32, DT_DTYPE_COUNT } dt_dtype;

size_t dt_dtype_bytes(dt_dtype dtype);
const char *dt_dtype_name(dt_dtype dtype); /* "F32", "BF16", "F16", "I32": safetensors' names */

#ifdef __cplusplus
}
#endif
#endif
