#include "engine/strategy/graph_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/device/graph.h"
#include "engine/progress.h"

#include "base/banned.h"

/* A graph, and the cut behind it; the last part has none. */
typedef struct part {
    dt_graph *graph; /* NULL: nothing between two cuts */
    int64_t cut;
} part;

struct dt_steady {
    dt_device *device;
    const char *what;
    bool tells;
    size_t key_bytes;
    unsigned char *next;     /* keys: of the run to come, ... */
    unsigned char *last;     /* of the one before, ... */
    unsigned char *recorded; /* and of the parts */
    int64_t runs;            /* in a row, with the key `last` */
    part *parts;
    int capacity, count; /* 0: nothing is recorded */
    int64_t nodes;
    int graphs;     /* of the parts, which may be empty */
    bool recording; /* the device is */
    bool failed;    /* to record, once: not tried again */
};

dt_status dt_steady_open(dt_steady **out, dt_device *device, const char *what, size_t key_bytes,
                         int cuts_most, bool tells, dt_error *err)
{
    dt_steady *steady = NULL;
    dt_status st = DT_OK;

    *out = NULL;
    if (device->graphs == NULL)
        return DT_OK;
    if ((steady = calloc(1, sizeof(*steady))) == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the graphs of a step");
    steady->device = device;
    steady->what = what;
    steady->tells = tells;
    steady->key_bytes = key_bytes;
    steady->capacity = cuts_most + 1;
    steady->next = calloc(3, key_bytes + 1);
    steady->parts = calloc((size_t)steady->capacity, sizeof(*steady->parts));
    if (steady->next == NULL || steady->parts == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the graphs of a step");
    steady->last = steady->next + key_bytes;
    steady->recorded = steady->last + key_bytes;
    *out = steady;
    steady = NULL;
out:
    dt_steady_close(steady);
    return st;
}

static void forget(dt_steady *steady)
{
    for (int i = 0; i < steady->count; i++)
        steady->device->graphs->free(steady->device, steady->parts[i].graph);
    steady->count = 0;
    steady->nodes = 0;
    steady->graphs = 0;
}

void dt_steady_close(dt_steady *steady)
{
    if (steady == NULL)
        return;
    forget(steady);
    free(steady->parts);
    free(steady->next);
    free(steady);
}

void *dt_steady_key(dt_steady *steady)
{
    return steady != NULL ? steady->next : NULL;
}

/* --- recording */

static dt_status begin(dt_steady *steady, dt_error *err)
{
    dt_status st = steady->device->graphs->begin(steady->device, err);

    steady->recording = st == DT_OK;
    return st;
}

/* What was recorded since the last cut is a part. */
static dt_status end_part(dt_steady *steady, int64_t cut, dt_error *err)
{
    part *next = &steady->parts[steady->count];
    int64_t nodes;
    dt_status st = DT_OK;

    DT_ASSERT(steady->count < steady->capacity);
    steady->recording = false;
    DT_TRY(steady->device->graphs->end(steady->device, &next->graph, &nodes, err));
    next->cut = cut;
    steady->count++;
    steady->nodes += nodes;
    steady->graphs += next->graph != NULL;
out:
    return st;
}

dt_status dt_steady_cut(dt_steady *steady, int64_t which, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(end_part(steady, which, err));
    DT_TRY(begin(steady, err));
out:
    return st;
}

/* What an op that failed leaves behind. */
static void stop_recording(dt_steady *steady)
{
    const dt_graphs *graphs = steady->device->graphs;
    dt_error why = DT_ERROR_INIT;
    dt_graph *rest = NULL;
    int64_t nodes;

    if (steady->recording && graphs->end(steady->device, &rest, &nodes, &why) == DT_OK)
        graphs->free(steady->device, rest);
    steady->recording = false;
}

/* Whether the ops are recorded when it returns; else the device is as if nobody had tried. */
static bool record(dt_steady *steady, const dt_steady_ops *ops)
{
    dt_error why = DT_ERROR_INIT;

    forget(steady);
    memcpy(steady->recorded, steady->next, steady->key_bytes);
    if (begin(steady, &why) == DT_OK && ops->record(ops->self, steady, &why) == DT_OK &&
        end_part(steady, -1, &why) == DT_OK) {
        if (steady->tells)
            dt_log_info("%s: %lld kernels and copies are recorded as %d graph(s)", steady->what,
                        (long long)steady->nodes, steady->graphs);
        return true;
    }
    stop_recording(steady);
    forget(steady);
    steady->failed = true;
    dt_log_warn("%s: cannot be recorded as a graph, so the host launches every kernel: %s",
                steady->what, why.message);
    return false;
}

/* --- running */

static dt_status replay(dt_steady *steady, const dt_steady_ops *ops, dt_error *err)
{
    const dt_graphs *graphs = steady->device->graphs;
    dt_status st = DT_OK;

    for (int i = 0; i < steady->count; i++) {
        const part *at = &steady->parts[i];

        dt_progress_made();
        if (at->graph != NULL)
            DT_TRY(graphs->launch(steady->device, at->graph, err));
        if (i < steady->count - 1)
            DT_TRY(ops->cut(ops->self, at->cut, err));
    }
out:
    return st;
}

static bool same(const dt_steady *steady, const unsigned char *key)
{
    return memcmp(steady->next, key, steady->key_bytes) == 0;
}

static bool is_recorded(dt_steady *steady)
{
    const dt_graphs *graphs = steady->device->graphs;

    if (steady->count == 0 || !same(steady, steady->recorded))
        return false;
    for (int i = 0; i < steady->count; i++)
        if (steady->parts[i].graph != NULL &&
            !graphs->valid(steady->device, steady->parts[i].graph))
            return false;
    return true;
}

/* This run counted, its key has come so often in a row. */
static int64_t count_run(dt_steady *steady)
{
    if (!same(steady, steady->last))
        steady->runs = 0;
    memcpy(steady->last, steady->next, steady->key_bytes);
    return ++steady->runs;
}

dt_status dt_steady_run(dt_steady *steady, const dt_steady_ops *ops, dt_error *err)
{
    if (steady == NULL || steady->failed)
        return ops->give(ops->self, err);
    if (count_run(steady) <= DT_STEADY_RUNS && !is_recorded(steady))
        return ops->give(ops->self, err);
    if (is_recorded(steady) || record(steady, ops))
        return replay(steady, ops, err);
    return ops->give(ops->self, err);
}
