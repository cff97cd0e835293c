/* quota: limits the size of cache and logs when a run ends.
 *
 * From       DTRUN_CACHE_QUOTA and DTRUN_LOG_QUOTA, "20GB" in powers of 1000; unset or empty: no quota. A run's
 *            supervisors use those of its launch
 * Removes    the oldest beyond the quota, by the rules of gc.h; files in use are kept
 * Errors     DT_ERR_USAGE for an invalid quota, with the name of the variable
 */
#ifndef DT_RUNNER_GC_QUOTA_H
#define DT_RUNNER_GC_QUOTA_H

#include "runner/gc/gc.h"

/* Parses "20GB", "1.5 MB" or "0B" to bytes; `of` is named in the error. */
dt_status dt_quota_parse(int64_t *out, const char *of, const char *text, dt_error *err);

/* Reads the quotas from the environment; -1: none. */
dt_status dt_quotas_read(int64_t quota[DT_GC_KINDS], dt_error *err);

/* Checks the quotas at the launch, because a supervisor could only log an error. */
dt_status dt_quotas_check(dt_error *err);

/* Applies the quotas after `run` has ended and its locks are free: removes logs of other runs
 * and unused cache files; its own logs are kept until another run ends. Each removed item and
 * each failure is a line of the log (base/log.h). */
dt_status dt_quotas_keep(const char *run, dt_error *err);

#endif
