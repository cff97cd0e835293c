/* mlflow_patience: when 'export --to mlflow --follow' gives up.
 *
 * Away      a server that is not there, or is busy, is waited for without end
 * Refusals  (401, 403, another 4xx, an answer that is no JSON, as of a proxy before a server that starts) may be mended
 *           while the run continues; those that last for DT_MLFLOW_REFUSED_SECONDS_MOST without a round that goes well
 *           end it. What fails on this side ends it at once
 */
#ifndef DT_EXPORT_MLFLOW_PATIENCE_H
#define DT_EXPORT_MLFLOW_PATIENCE_H

#include <stdbool.h>

#include "base/error.h"

#define DT_MLFLOW_REFUSED_SECONDS_MOST 600.0

/* All zero before the first round. */
typedef struct dt_mlflow_patience {
    double refused_seconds; /* since when it refuses */
    bool refused;
} dt_mlflow_patience;

bool dt_mlflow_is_refusal(dt_status st);
/* After a round that ended with st; now_seconds of a clock that never goes back. */
bool dt_mlflow_gives_up(dt_mlflow_patience *patience, dt_status st, double now_seconds);

#endif
