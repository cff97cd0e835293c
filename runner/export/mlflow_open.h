/* mlflow_open: opens a connection to an MLflow tracking server, with the variables of MLflow's own client.
 *
 * Access    MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD if both are set, else MLFLOW_TRACKING_TOKEN. Empty
 *           variables count as unset (mlflow/utils/rest_utils.py, http_request)
 * Limits    MLFLOW_HTTP_REQUEST_TIMEOUT, seconds of one try, and MLFLOW_HTTP_REQUEST_MAX_RETRIES
 * Errors    DT_ERR_USAGE with the variable if it has a control character (a line break would start another header),
 *           or if a limit is not a number
 * Warns     if a password or token is sent with unencrypted http to another machine
 */
#ifndef DT_EXPORT_MLFLOW_OPEN_H
#define DT_EXPORT_MLFLOW_OPEN_H

#include "runner/fetch/rest.h"

dt_status dt_mlflow_open(dt_rest **out, const char *url, dt_error *err);

#endif
