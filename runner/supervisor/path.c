#define _GNU_SOURCE
#include <string.h>

#include "base/dirs.h"
#include "runner/supervisor/supervisor.h"

#include "base/banned.h"

dt_status dt_run_path(const char **out, const char *run, const char *below, dt_arena *arena,
                      dt_error *err)
{
    const char *state;
    dt_status st;

    *out = NULL;
    /* Ids come from the store; one that is a path of its own is never looked up on the disk. */
    if (run[0] == '\0' || run[0] == '.' || strchr(run, '/') != NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "'%s' is not the id of a run", run);
    st = dt_dir_path(&state, DT_DIR_STATE, arena, err);
    if (st != DT_OK)
        return st;
    *out = below == NULL ? dt_arena_printf(arena, "%s/runs/%s", state, run)
                         : dt_arena_printf(arena, "%s/runs/%s/%s", state, run, below);
    return *out != NULL ? DT_OK : DT_FAIL(err, DT_ERR_NOMEM, "no memory");
}
