/* graph_cache: records ops that repeat every step and launches them as CUDA graphs (device/graph.h).
 *
 * Breaks     where the host takes part, for example in a collective, the ops are split: a run launches
 *            a graph, performs the break's work, launches the next graph. So collectives are never
 *            recorded, and they overlap with the ops as they would without graphs
 * Key        the values that recorded ops contain: shapes, addresses, numbers. Ops are recorded when a key
 *            has come DT_GRAPH_CACHE_RUNS times in a row: by then algorithms have been chosen and
 *            working memory has grown. If the key changes, ops are launched one by one, and recorded again
 *            once the new key is as steady. Values that change from run to run under one key are sent
 *            before each run in an upload buffer (device/upload_buffer.h)
 * Failure    recording executes nothing. If it fails, the recording is dropped, the log says why, and the
 *            ops are launched one by one, so results are never wrong. It is retried after 100, 1,000
 *            and 10,000 runs, and given up after DT_GRAPH_CACHE_TRIES consecutive failures
 * Ownership  borrows the device; owns graphs and keys. Threads: the one that drives the device
 */
#ifndef DT_ENGINE_STRATEGY_GRAPH_CACHE_H
#define DT_ENGINE_STRATEGY_GRAPH_CACHE_H

#include "engine/device/device.h"

#define DT_GRAPH_CACHE_RUNS  2
#define DT_GRAPH_CACHE_TRIES 4

typedef struct dt_graph_cache dt_graph_cache;

typedef struct dt_graph_cache_ops {
    void *self;
    /* Launch the ops, and do the work of the breaks between them. */
    dt_status (*give)(void *self, dt_error *err);
    /* Launch the same ops for recording, calling dt_graph_cache_break instead of doing the work of
     * a break. Must not change anything that affects a run. */
    dt_status (*record)(void *self, dt_graph_cache *cache, dt_error *err);
    /* Do the work of a break; NULL if there are none. */
    dt_status (*graph_break)(void *self, int64_t which, dt_error *err);
} dt_graph_cache_ops;

/* *out is NULL if the device has no graphs or they are not wanted; all functions accept NULL. what:
 * name for the log; tells: log each recording; breaks_max: most operations that may interrupt one. */
dt_status dt_graph_cache_open(dt_graph_cache **out, dt_device *device, const char *what,
                              size_t key_bytes, int breaks_max, bool tells, dt_error *err);
void dt_graph_cache_close(dt_graph_cache *cache);

/* The buffer for the next run's key; the caller must write all its bytes. NULL if no key is needed. */
void *dt_graph_cache_key(dt_graph_cache *cache);
dt_status dt_graph_cache_run(dt_graph_cache *cache, const dt_graph_cache_ops *ops, dt_error *err);
/* While recording: the ops that follow come after break `which`. */
dt_status dt_graph_cache_break(dt_graph_cache *cache, int64_t which, dt_error *err);

#endif
