/* mlflow_body: makes the request bodies of MLflow's REST API 2.0 for a run.
 *
 * Names   of metrics and params: characters other than letters, digits and "_-. :/" become '_'
 * Values  NaN and infinities are strings as in protobuf's JSON; a param is truncated to 500 bytes, the limit of older
 *         servers
 */
#ifndef DT_EXPORT_MLFLOW_BODY_H
#define DT_EXPORT_MLFLOW_BODY_H

#include "base/json.h"
#include "store/store.h"

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

#endif
