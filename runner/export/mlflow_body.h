/* mlflow_body: what MLflow gets of a run, as bodies of its REST API 2.0.
 *
 * Names   of metrics and params: what MLflow does not take (all but letters, digits and "_-. :/") becomes '_'
 * Values  NaN and infinities are the words that protobuf's JSON has for them; a param is cut at 500 bytes, as
 *         older servers want it
 */
#ifndef DT_EXPORT_MLFLOW_BODY_H
#define DT_EXPORT_MLFLOW_BODY_H

#include "base/json.h"
#include "store/store.h"

#define DT_MLFLOW_METRICS_MOST 1000 /* of one request */
#define DT_MLFLOW_PARAMS_MOST  100
#define DT_MLFLOW_TAG          "dtrun.run" /* whose run it is, by its id */

/* All of them new references. */
json_t *dt_mlflow_search_body(const char *experiment, const dt_run *run);
json_t *dt_mlflow_create_body(const char *experiment, const dt_run *run);
json_t *dt_mlflow_update_body(const char *run_id, const dt_run *run); /* state and end */
/* What people say of the run, as [{key, value}]. */
json_t *dt_mlflow_tags(const dt_run *run);
/* Of the resolved recipe what is not among `known`, [{key, value}], which MLflow does not let anybody change. */
json_t *dt_mlflow_params(const dt_run *run, const json_t *known);
json_t *dt_mlflow_metric(const dt_metric *point);
/* The name as MLflow has it, into the arena. */
const char *dt_mlflow_name(const char *name, dt_arena *arena);
/* {"run_id", KEY: items}; takes `items`. */
json_t *dt_mlflow_batch_body(const char *run_id, const char *key, json_t *items);
/* The newest step that MLflow has of a metric, out of a run's data; INT64_MIN: none. */
int64_t dt_mlflow_last_step(const json_t *run, const char *name);

#endif
