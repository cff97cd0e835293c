/* mlflow_open: a connection to an MLflow tracking server, by the variables that its own client reads.
 *
 * Who asks  MLFLOW_TRACKING_USERNAME with MLFLOW_TRACKING_PASSWORD, where both are set; else MLFLOW_TRACKING_TOKEN.
 *           One that is empty is not set (mlflow/utils/rest_utils.py, http_request)
 * Limits    MLFLOW_HTTP_REQUEST_TIMEOUT, the seconds of a try, and MLFLOW_HTTP_REQUEST_MAX_RETRIES
 * Errors    DT_ERR_USAGE, which names the variable, for one with a control character (as a line break, which would
 *           begin another header) and for a limit that is no number
 * Warns     of a password or token that goes in plain http to another machine
 */
#ifndef DT_EXPORT_MLFLOW_OPEN_H
#define DT_EXPORT_MLFLOW_OPEN_H

#include "runner/fetch/rest.h"

dt_status dt_mlflow_open(dt_rest **out, const char *url, dt_error *err);

#endif
