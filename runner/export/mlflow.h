/* mlflow: connects to an MLflow tracking server, makes the bodies of its requests, and decides when its
 * refusals end an export. */
#ifndef DT_RUNNER_EXPORT_MLFLOW_H
#define DT_RUNNER_EXPORT_MLFLOW_H

#include <stdbool.h>

#include "base/error.h"
#include "base/json.h"
#include "runner/fetch/fetch.h"
#include "store/curve.h"
#include "store/run.h"

/* mlflow_open: opens a connection to an MLflow tracking server, with the variables of MLflow's own client.
 *
 * Access    MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD if both are set, else MLFLOW_TRACKING_TOKEN. Empty
 *           variables count as unset (mlflow/utils/rest_utils.py, http_request)
 * Limits    MLFLOW_HTTP_REQUEST_TIMEOUT, seconds of one try, and MLFLOW_HTTP_REQUEST_MAX_RETRIES
 * Errors    DT_ERR_USAGE with the variable if it has a control character (a line break would start another header),
 *           or if a limit is not a number
 * Warns     if a password or token is sent with unencrypted http to another machine
 */

dt_status dt_mlflow_open(dt_rest **out, const char *url, dt_error *err);

/* mlflow_body: makes the request bodies of MLflow's REST API 2.0 for a run.
 *
 * Names   of metrics and params: characters other than letters, digits and "_-. :/" become '_'
 * Values  NaN and infinities are strings as in protobuf's JSON; a param is truncated to 500 bytes, the limit of older
 *         servers
 */

#define DT_MLFLOW_METRICS_MOST 1000 /* of one request */
#define DT_MLFLOW_PARAMS_MOST  100
#define DT_MLFLOW_TAG          "dtrun.run" /* tag with the id of the run */

/* All functions return new references. */
json_t *dt_mlflow_search_body(const char *experiment, const dt_run *run);
json_t *dt_mlflow_create_body(const char *experiment, const dt_run *run);
json_t *dt_mlflow_update_body(const char *run_id, const dt_run *run); /* state and end */
/* Labels of the run, as [{key, value}]. */
json_t *dt_mlflow_tags(const dt_run *run);
/* Fields of the resolved recipe that are not in `known` ([{key, value}]): MLflow does not allow changes. */
json_t *dt_mlflow_params(const dt_run *run, const json_t *known);
json_t *dt_mlflow_metric(const dt_metric *point);
/* Returns the name in MLflow, in the arena. */
const char *dt_mlflow_name(const char *name, dt_arena *arena);
/* {"run_id", KEY: items}; takes `items`. */
json_t *dt_mlflow_batch_body(const char *run_id, const char *key, json_t *items);
/* The newest step of a metric in MLflow's data of a run; INT64_MIN if none. */
int64_t dt_mlflow_last_step(const json_t *run, const char *name);

/* mlflow_patience: decides when 'export --to mlflow --follow' gives up.
 *
 * Down      a server that cannot be reached or is busy is waited for without limit
 * Refusals  401, 403, another 4xx, or an answer that is not JSON (for example from a proxy while the server starts)
 *           may be temporary. The export ends if they last DT_MLFLOW_REFUSED_SECONDS_MOST without a successful
 *           round. Local errors end it at once
 */

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
