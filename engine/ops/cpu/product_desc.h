/* product_desc: oneDNN's description of a product; the one place where its versions 2 and 3
 * differ.
 */
#ifndef DT_ENGINE_OPS_CPU_PRODUCT_DESC_H
#define DT_ENGINE_OPS_CPU_PRODUCT_DESC_H

#include <oneapi/dnnl/dnnl.h>

#include "engine/ops/cpu/product.h"

/* The caller destroys *out. dnnl_unimplemented where oneDNN has no code for it. */
dnnl_status_t dt_cpu_product_desc_make(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                       const dt_cpu_product *product);

#endif
