#include "runner/export/mlflow_patience.h"

bool dt_mlflow_is_refusal(dt_status st)
{
    return st == DT_ERR_USAGE || st == DT_ERR_NOT_FOUND || st == DT_ERR_CORRUPT;
}

bool dt_mlflow_gives_up(dt_mlflow_patience *patience, dt_status st, double now_seconds)
{
    if (!dt_mlflow_is_refusal(st)) {
        if (st == DT_OK) /* a server that is down in between does not reset the time */
            patience->refused = false;
        return st != DT_OK && st != DT_ERR_BUSY;
    }
    if (!patience->refused)
        patience->refused_seconds = now_seconds;
    patience->refused = true;
    return now_seconds - patience->refused_seconds >= DT_MLFLOW_REFUSED_SECONDS_MOST;
}
