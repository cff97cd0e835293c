/* graph_cache: ops that are the same step after step, recorded once and given to the device as
 * graphs (device/graph.h).
 *
 * Breaks     where the host takes part, in a collective for one, the ops are split: a run launches
 *            a graph, does what is done at the break, launches the next graph. So nothing of a
 *            collective is ever recorded, and it is overlapped as it would be otherwise
 * Key        what the ops hold by value: shapes, places in memory, numbers. Recorded when a key has
 *            come DT_GRAPH_CACHE_RUNS times in a row: by then algorithms have been chosen and
 *            working memory has grown. Another key: ops are given one by one, and recorded anew
 *            once that one is as steady. What changes from run to run under one key comes by an
 *            upload buffer (device/upload_buffer.h), sent before each run
 * Never      a wrong number: recording runs nothing, so that where it fails all is dropped, with a
 *            line in the log, and the ops are given one by one. It is tried again after 100, 1,000
 *            and 10,000 runs, and no more once it has failed DT_GRAPH_CACHE_TRIES times in a row
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
    /* Gives the ops to the device and does what comes between them. */
    dt_status (*give)(void *self, dt_error *err);
    /* Gives the same ops, with dt_graph_cache_break where something comes between them, and changes
     * nothing that a run could notice. */
    dt_status (*record)(void *self, dt_graph_cache *cache, dt_error *err);
    /* Does what comes at a break; NULL where there are none. */
    dt_status (*graph_break)(void *self, int64_t which, dt_error *err);
} dt_graph_cache_ops;

/* *out is NULL, which all functions accept, where the device has no graphs or they are not wanted.
 * what: of whom the log speaks, where it `tells`; cuts_most: of one run. */
dt_status dt_graph_cache_open(dt_graph_cache **out, dt_device *device, const char *what,
                              size_t key_bytes, int breaks_max, bool tells, dt_error *err);
void dt_graph_cache_close(dt_graph_cache *cache);

/* Where the key of the next run is written, all of its bytes; NULL where nobody asks for one. */
void *dt_graph_cache_key(dt_graph_cache *cache);
dt_status dt_graph_cache_run(dt_graph_cache *cache, const dt_graph_cache_ops *ops, dt_error *err);
/* While recording: what is given from here on comes after break `which`. */
dt_status dt_graph_cache_break(dt_graph_cache *cache, int64_t which, dt_error *err);

#endif
