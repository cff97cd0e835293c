#include "runner/launch/run_id.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/file.h"
#include "runner/supervisor/folder/run_folder.h"

static const char letters[] = "abcdefghjkmnpqrstuvwxyz23456789";
enum { LETTERS = sizeof(letters) - 1, TRIES = 100 };

static dt_status draw(char *out, dt_error *err)
{
    unsigned char byte;
    int filled = 0;

    while (filled < DT_RUN_ID_SIZE - 1) {
        if (getrandom(&byte, 1, 0) != 1)
            return DT_FAIL(err, DT_ERR_IO, "cannot generate a run id: %s", strerror(errno));
        if (byte < 256 / LETTERS * LETTERS) /* larger bytes would favour the first letters */
            out[filled++] = letters[byte % LETTERS];
    }
    out[filled] = '\0';
    return DT_OK;
}

dt_status dt_run_id_take(const char **run, const char **folder, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    const char *state, *runs;
    char id[DT_RUN_ID_SIZE];

    *run = *folder = NULL;
    DT_TRY(dt_dir_make(&state, DT_DIR_STATE, arena, err));
    runs = dt_arena_printf(arena, "%s/runs", state);
    DT_TRY(dt_file_make_dirs(runs, 0700, err));
    for (int i = 0; i < TRIES; i++) {
        DT_TRY(draw(id, err));
        DT_TRY(dt_run_path(folder, id, NULL, arena, err));
        if (mkdir(*folder, 0700) == 0) {
            *run = dt_arena_strdup(arena, id);
            return DT_OK;
        }
        if (errno != EEXIST)
            DT_THROW(err, DT_ERR_IO, "cannot create '%s': %s", *folder, strerror(errno));
    }
    DT_THROW(err, DT_ERR_IO, "no free run id found below '%s'", runs);
out:
    *folder = NULL; /* nothing to remove */
    return st;
}
