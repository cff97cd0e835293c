/* metric_doc: writes the table of metrics as docs/metrics.md and as web/page/metric_table.js. */
#ifndef DT_METRIC_DOC_H
#define DT_METRIC_DOC_H

#include "base/strbuf.h"

void dt_metric_doc(dt_strbuf *out);
void dt_metric_script(dt_strbuf *out);

#endif
