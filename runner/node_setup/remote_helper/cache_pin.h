/* cache_pin: marks cache entries that are in use, for other machines with the same home and other containers, which
 * cannot see the processes.
 *
 *   CACHE/uses/KIND-NAME.HOST.XXXXXX      KIND is agents, bundles, data or setups; NAME is the entry. The file
 *                                         contains the boot id of the machine that created it
 *
 * Every user of an entry refreshes the time of its mark once an hour, and removes the mark at the end. A mark
 * is stale after a week. It is stale after two hours if its host name is this machine's and its boot is not:
 * two machines with one host name can share a home, and the mark of the other one is refreshed.
 */
#ifndef DT_RUNNER_NODE_SETUP_REMOTE_HELPER_CACHE_PIN_H
#define DT_RUNNER_NODE_SETUP_REMOTE_HELPER_CACHE_PIN_H

#include <stdbool.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_CACHE_PIN_REFRESH_SECONDS 3600

/* Creates a mark; *mark is its path, which the caller frees; NULL if `path` is not in this cache. */
dt_status dt_cache_pin(char **mark, const char *cache, const char *path, dt_error *err);
void dt_cache_pin_refresh(const char *mark);
void dt_cache_pin_release(char *mark); /* removes the mark and frees its path; accepts NULL */

bool dt_cache_is_pinned(const char *cache, const char *kind, const char *name);
/* Returns true if the entry is pinned, or a process of this machine runs from it. */
bool dt_cache_is_used(const char *cache, const char *kind, const char *name);
void dt_cache_pins_prune(const char *cache); /* removes stale marks */

#ifdef __cplusplus
}
#endif
#endif
