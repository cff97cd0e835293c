/* product_desc: creates oneDNN's description of a product; the only code that differs between
 * oneDNN 2 and 3. */
#ifndef DT_ENGINE_OPS_CPU_PRODUCT_DESC_H
#define DT_ENGINE_OPS_CPU_PRODUCT_DESC_H

#include <oneapi/dnnl/dnnl.h>

#include "engine/ops/cpu/product.h"

/* Creates *out, which the caller destroys. Returns dnnl_unimplemented if oneDNN has no code for the
 * product. */
dnnl_status_t dt_cpu_product_desc_make(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                       const dt_cpu_product *product);

#endif
