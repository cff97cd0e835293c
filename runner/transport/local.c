/* local: this machine, once or several times: "localhost", "localhost#2". */
#include <string.h>

#include "base/place.h"
#include "runner/transport/transport.h"

#include "base/banned.h"

static bool local_reaches(const char *node)
{
    const char *rest = strncmp(node, "localhost", 9) == 0 ? node + 9 : "?";

    return rest[0] == '\0' || rest[0] == '#';
}

static dt_status local_run(const char ***argv, const char *node, const char *const *words,
                           dt_arena *arena, dt_error *err)
{
    size_t count = 0;

    while (words[count] != NULL)
        count++;
    *argv = dt_arena_alloc_array(arena, count + 1, sizeof((*argv)[0]));
    if (*argv == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory");
    memcpy(*argv, words, (count + 1) * sizeof(words[0]));
    return DT_OK;
}

static dt_status local_command(const char ***argv, const dt_transport_target *target,
                               dt_arena *arena, dt_error *err)
{
    const char **words = dt_arena_alloc_array(arena, 6, sizeof(words[0]));
    dt_status st = DT_OK;

    *argv = NULL;
    if (words == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    DT_TRY(dt_place_program(&words[0], "dtrun-agent", "DTRUN_AGENT", arena, err));
    words[1] = "connect";
    words[2] = target->here;
    words[3] = "--start";
    words[4] = target->replace ? "--replace" : NULL;
    *argv = words;
out:
    return st;
}

static dt_status local_engine(const char **path, const dt_transport_target *target, dt_arena *arena,
                              dt_error *err)
{
    return dt_place_program(path, "dtrun-engine", "DTRUN_ENGINE", arena, err);
}

const dt_transport dt_transport_local = {
    .kind = "local",
    .reaches = local_reaches,
    .run = local_run,
    .command = local_command,
    .engine = local_engine,
};
