#include "engine/strategy/strategy_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/device/queue.h"
#include "engine/progress.h"

/* A graph and the break that follows it; the last part has no break. */
typedef struct part {
    dt_graph *graph; /* NULL: no ops between two breaks */
    int64_t graph_break;
} part;

struct dt_graph_cache {
    dt_device *device;
    const char *what;
    bool tells;
    size_t key_bytes;
    unsigned char *next;     /* key of the next run */
    unsigned char *last;     /* key of the previous run */
    unsigned char *recorded; /* key of the recorded parts */
    int64_t runs;            /* consecutive runs with the key `last` */
    part *parts;
    int capacity,
        count; /* parts allocated and recorded; count 0: none. They grow while a pass is recorded */
    int64_t nodes;
    int graphs;     /* number of non-empty parts */
    bool recording; /* the device is recording */
    int failures;   /* consecutive failed recordings */
    int64_t rest;   /* runs until the next attempt to record */
};

dt_status dt_graph_cache_open(dt_graph_cache **out, dt_device *device, const char *what,
                              size_t key_bytes, bool tells, dt_error *err)
{
    dt_graph_cache *cache = NULL;
    dt_status st = DT_OK;

    *out = NULL;
    if (device->graphs == NULL)
        return DT_OK;
    if ((cache = calloc(1, sizeof(*cache))) == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the graphs of a step");
    cache->device = device;
    cache->what = what;
    cache->tells = tells;
    cache->key_bytes = key_bytes;
    cache->next = calloc(3, key_bytes + 1);
    if (cache->next == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the graphs of a step");
    cache->last = cache->next + key_bytes;
    cache->recorded = cache->last + key_bytes;
    *out = cache;
    cache = NULL;
out:
    dt_graph_cache_close(cache);
    return st;
}

static void forget(dt_graph_cache *cache)
{
    for (int i = 0; i < cache->count; i++)
        cache->device->graphs->free(cache->device, cache->parts[i].graph);
    cache->count = 0;
    cache->nodes = 0;
    cache->graphs = 0;
}

void dt_graph_cache_close(dt_graph_cache *cache)
{
    if (cache == NULL)
        return;
    forget(cache);
    free(cache->parts);
    free(cache->next);
    free(cache);
}

void *dt_graph_cache_key(dt_graph_cache *cache)
{
    return cache != NULL ? cache->next : NULL;
}

/* --- recording */

static dt_status begin(dt_graph_cache *cache, dt_error *err)
{
    dt_status st = cache->device->graphs->begin(cache->device, err);

    cache->recording = st == DT_OK;
    return st;
}

static dt_status make_room(dt_graph_cache *cache, dt_error *err)
{
    int capacity = cache->capacity == 0 ? 8 : 2 * cache->capacity;
    part *parts;

    if (cache->count < cache->capacity)
        return DT_OK;
    parts = realloc(cache->parts, (size_t)capacity * sizeof(*parts));
    if (parts == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the graphs of a step");
    cache->parts = parts;
    cache->capacity = capacity;
    return DT_OK;
}

/* End a part: the ops recorded since the previous break. */
static dt_status end_part(dt_graph_cache *cache, int64_t graph_break, dt_error *err)
{
    int64_t nodes;
    dt_status st = DT_OK;
    part *next;

    DT_TRY(make_room(cache, err));
    next = &cache->parts[cache->count];
    cache->recording = false;
    DT_TRY(cache->device->graphs->end(cache->device, &next->graph, &nodes, err));
    next->graph_break = graph_break;
    cache->count++;
    cache->nodes += nodes;
    cache->graphs += next->graph != NULL;
out:
    return st;
}

dt_status dt_graph_cache_break(dt_graph_cache *cache, int64_t which, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(end_part(cache, which, err));
    DT_TRY(begin(cache, err));
out:
    return st;
}

/* Clean up after an op failed during recording. */
static void stop_recording(dt_graph_cache *cache)
{
    const dt_graphs *graphs = cache->device->graphs;
    dt_error why = DT_ERROR_INIT;
    dt_graph *rest = NULL;
    int64_t nodes;

    if (cache->recording && graphs->end(cache->device, &rest, &nodes, &why) == DT_OK)
        graphs->free(cache->device, rest);
    cache->recording = false;
}

/* Set the number of runs until the next attempt: the cause may be temporary or permanent. */
static void rest_after(dt_graph_cache *cache, const char *why)
{
    static const int64_t runs[DT_GRAPH_CACHE_TRIES] = {100, 1000, 10000, INT64_MAX};

    cache->rest = runs[cache->failures++];
    if (cache->failures < DT_GRAPH_CACHE_TRIES)
        dt_log_warn("%s: cannot record a CUDA graph, so the host launches every kernel (next "
                    "attempt after %lld runs): %s",
                    cache->what, (long long)cache->rest, why);
    else
        dt_log_warn("%s: cannot record a CUDA graph after %d attempts, giving up: %s", cache->what,
                    cache->failures, why);
}

/* Record the ops. Returns whether it succeeded; on failure the device is in its previous state. */
static bool record(dt_graph_cache *cache, const dt_graph_cache_ops *ops)
{
    dt_error why = DT_ERROR_INIT;

    forget(cache);
    memcpy(cache->recorded, cache->next, cache->key_bytes);
    if (begin(cache, &why) == DT_OK && ops->record(ops->self, cache, &why) == DT_OK &&
        end_part(cache, -1, &why) == DT_OK) {
        cache->failures = 0;
        if (cache->tells)
            dt_log_info("%s: %lld kernels and copies are recorded as %d graph(s)", cache->what,
                        (long long)cache->nodes, cache->graphs);
        return true;
    }
    stop_recording(cache);
    forget(cache);
    rest_after(cache, why.message);
    return false;
}

/* --- running */

static dt_status replay(dt_graph_cache *cache, const dt_graph_cache_ops *ops, dt_error *err)
{
    const dt_graphs *graphs = cache->device->graphs;
    dt_status st = DT_OK;

    for (int i = 0; i < cache->count; i++) {
        const part *at = &cache->parts[i];

        dt_progress_made();
        if (at->graph != NULL)
            DT_TRY(graphs->launch(cache->device, at->graph, err));
        if (i < cache->count - 1)
            DT_TRY(ops->graph_break(ops->self, at->graph_break, err));
    }
out:
    return st;
}

static bool same(const dt_graph_cache *cache, const unsigned char *key)
{
    return memcmp(cache->next, key, cache->key_bytes) == 0;
}

static bool is_recorded(dt_graph_cache *cache)
{
    const dt_graphs *graphs = cache->device->graphs;

    if (cache->count == 0 || !same(cache, cache->recorded))
        return false;
    for (int i = 0; i < cache->count; i++)
        if (cache->parts[i].graph != NULL && !graphs->valid(cache->device, cache->parts[i].graph))
            return false;
    return true;
}

/* Count this run; returns how many times in a row its key has come. */
static int64_t count_run(dt_graph_cache *cache)
{
    if (!same(cache, cache->last))
        cache->runs = 0;
    memcpy(cache->last, cache->next, cache->key_bytes);
    return ++cache->runs;
}

dt_status dt_graph_cache_run(dt_graph_cache *cache, const dt_graph_cache_ops *ops, dt_error *err)
{
    if (cache == NULL)
        return ops->give(ops->self, err);
    if (cache->rest > 0) {
        cache->rest--;
        return ops->give(ops->self, err);
    }
    if (count_run(cache) <= DT_GRAPH_CACHE_RUNS && !is_recorded(cache))
        return ops->give(ops->self, err);
    if (is_recorded(cache) || record(cache, ops))
        return replay(cache, ops, err);
    return ops->give(ops->self, err);
}
