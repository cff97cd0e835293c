/* quota: how much the cache and logs may take, kept to when a run ends.
 *
 * From       DTRUN_CACHE_QUOTA and DTRUN_LOG_QUOTA, "20GB" in powers of 1000; unset or empty: no quota. A run's
 *            supervisors have those of its launch
 * What goes  by the rules of gc.h, the oldest beyond the quota; what is in use stays, whatever the quota
 * Errors     DT_ERR_USAGE for a quota that is no size, with the name of the variable
 */
#ifndef DT_RUNNER_GC_QUOTA_H
#define DT_RUNNER_GC_QUOTA_H

#include "runner/gc/gc.h"

/* Bytes of "20GB", "1.5 MB", "0B"; `of` is named where it is none. */
dt_status dt_quota_parse(int64_t *out, const char *of, const char *text, dt_error *err);

/* Those of the environment; -1 where there is none. */
dt_status dt_quotas_read(int64_t quota[DT_GC_KINDS], dt_error *err);

/* Whether they can be read, for who launches: a supervisor could only log it. */
dt_status dt_quotas_check(dt_error *err);

/* `run` has ended, under nobody's lock any more: others' logs and what is idle of the cache go beyond the quotas, its
 * own logs stay until another ends. Each thing that went, or could not, is a line of the log (base/log.h). */
dt_status dt_quotas_keep(const char *run, dt_error *err);

#endif
