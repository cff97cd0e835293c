#include "runner/cli/program.h"

#include "base/dirs.h"

static dt_status find(const char **path, const char *name, const char *variable, dt_arena *arena,
                      dt_error *err)
{
    dt_error cause = DT_ERROR_INIT;

    if (dt_dir_program(path, name, variable, arena, &cause) == DT_OK)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_IO, "%s: the installation is incomplete (set %s to use another)",
                   cause.message, variable);
}

dt_status dt_program_agent(const char **path, dt_arena *arena, dt_error *err)
{
    return find(path, "dtrun-agent", "DTRUN_AGENT", arena, err);
}

dt_status dt_program_engine(const char **path, dt_arena *arena, dt_error *err)
{
    return find(path, "dtrun-engine", "DTRUN_ENGINE", arena, err);
}
