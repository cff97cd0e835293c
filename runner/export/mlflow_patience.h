/* mlflow_patience: decides when 'export --to mlflow --follow' gives up.
 *
 * Down      a server that cannot be reached or is busy is waited for without limit
 * Refusals  401, 403, another 4xx, or an answer that is not JSON (for example from a proxy while the server starts)
 *           may be temporary. The export ends if they last DT_MLFLOW_REFUSED_SECONDS_MOST without a successful
 *           round. Local errors end it at once
 */
#ifndef DT_EXPORT_MLFLOW_PATIENCE_H
#define DT_EXPORT_MLFLOW_PATIENCE_H

#include <stdbool.h>

#include "base/error.h"

#define DT_MLFLOW_REFUSED_SECONDS_MOST 600.0

/* Starts zeroed. */
typedef struct dt_mlflow_patience {
    double refused_seconds; /* time of the first refusal */
    bool refused;
} dt_mlflow_patience;

bool dt_mlflow_is_refusal(dt_status st);
/* Whether to give up after a round that ended with `st`. now_seconds: monotonic. */
bool dt_mlflow_gives_up(dt_mlflow_patience *patience, dt_status st, double now_seconds);

#endif
