/* prepare: the order of what a node needs before its agent is started. */
#include "base/file.h"
#include "base/place.h"
#include "runner/nodes/nodes_int.h"

#include "base/banned.h"

/* This machine: the programs beside us, the run's own folders. */
static dt_status prepare_here(dt_node_place *out, const dt_prepare_request *request,
                              dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_place_program(&out->agent, "dtrun-agent", "DTRUN_AGENT", arena, err));
    DT_TRY(dt_place_program(&out->engine, "dtrun-engine", "DTRUN_ENGINE", arena, err));
    out->here = out->checkpoints_shared = true;
    out->node = dt_arena_strdup(arena, request->node);
    out->folder = dt_arena_strdup(arena, request->here);
    out->checkpoints = dt_arena_strdup(arena, request->checkpoints_here);
    out->address = "127.0.0.1";
    if (out->node == NULL || out->folder == NULL || out->checkpoints == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    DT_TRY(dt_file_make_dirs(request->here, 0700, err));
out:
    return st;
}

dt_status dt_node_prepare(dt_node_place *out, const dt_prepare_request *request, dt_arena *arena,
                          dt_error *err)
{
    *out = (dt_node_place){0};
    if (dt_nodes_is_here(request->node))
        return prepare_here(out, request, arena, err);
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "node '%s' cannot be reached: this version runs on 'localhost' only",
                   request->node);
}
