/* quota: enforces the quotas of cache and logs when a run ends.
 *
 * From       DTRUN_CACHE_QUOTA and DTRUN_LOG_QUOTA, "20GB" in powers of 1000; unset or empty: no quota. A run's
 *            supervisors have those of its launch
 * Removed    by the rules of gc.h, the oldest beyond the quota; what is in use is kept, whatever the quota
 * Errors     DT_ERR_USAGE for a malformed size, with the name of the variable
 */
#ifndef DT_RUNNER_GC_QUOTA_H
#define DT_RUNNER_GC_QUOTA_H

#include "runner/gc/gc.h"

/* Parses "20GB", "1.5 MB", "0B" as bytes; `of` names the setting in messages. */
dt_status dt_quota_parse(int64_t *out, const char *of, const char *text, dt_error *err);

/* Reads the quotas from the environment; -1: none. */
dt_status dt_quotas_read(int64_t quota[DT_GC_KINDS], dt_error *err);

/* Checks the quotas at launch, because a supervisor could only log an error. */
dt_status dt_quotas_check(dt_error *err);

/* Enforces the quotas after `run` has ended and its locks are released: removes logs of other runs and idle cache entries
 * beyond the quotas; the logs of `run` are kept until another run ends. Logs each removal and failure (base/log.h). */
dt_status dt_quotas_keep(const char *run, dt_error *err);

#endif
