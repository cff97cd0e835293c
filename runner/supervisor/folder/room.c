#include "runner/supervisor/folder/room.h"

#include <unistd.h>

#include "base/dirs.h"
#include "base/file.h"

#include "base/banned.h"

#define WRITE_BYTES 65536

dt_status dt_run_check_room(dt_arena *arena, dt_error *err)
{
    static const char nothing[WRITE_BYTES];
    const char *state, *path;
    dt_status st;

    DT_TRY(dt_dir_make(&state, DT_DIR_STATE, arena, err));
    path = dt_arena_printf(arena, "%s/.room.%d", state, (int)getpid());
    st = dt_file_write_atomic(path, nothing, sizeof(nothing), 0600, err);
    (void)dt_file_remove_tree(path, NULL);
out:
    return st;
}
