#include "recipes/read/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recipes/fields/text.h"

dt_status dt_path_current(const char **out, dt_arena *arena, dt_error *err)
{
    char *current = getcwd(NULL, 0);

    if (current == NULL)
        return DT_FAIL(err, DT_ERR_IO, "cannot find the current folder: %s", strerror(errno));
    *out = dt_arena_strdup(arena, current);
    free(current);
    return DT_OK;
}

dt_status dt_path_folder(const char **out, const char *file, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    const char *slash = strrchr(file, '/');
    const char *current, *folder;

    if (slash == NULL || strncmp(file, "/dev/", 5) == 0) /* /dev/stdin has no folder */
        return dt_path_current(out, arena, err);
    if (slash == file) {
        *out = "/";
        return DT_OK;
    }
    folder = dt_arena_strndup(arena, file, (size_t)(slash - file));
    DT_TRY(dt_path_current(&current, arena, err));
    DT_TRY(dt_path_resolve(out, folder, current, arena, err));
out:
    return st;
}

static const char *without_dots(const char *path)
{
    while (path[0] == '.' && path[1] == '/')
        for (path += 2; *path == '/';)
            path++;
    return path;
}

dt_status dt_path_resolve(const char **out, const char *path, const char *folder, dt_arena *arena,
                          dt_error *err)
{
    dt_status st = DT_OK;
    const char *between;

    if (strncmp(path, "~/", 2) == 0) {
        folder = getenv("HOME");
        if (folder == NULL || folder[0] != '/')
            DT_THROW(err, DT_ERR_RECIPE, "'~/' needs HOME to be set to an absolute path");
        path += 2;
    }
    if (path[0] == '/') {
        *out = dt_arena_strdup(arena, path);
    } else {
        between = folder[strlen(folder) - 1] == '/' ? "" : "/";
        *out = dt_arena_printf(arena, "%s%s%s", folder, between, without_dots(path));
    }
    if (!dt_text_is_utf8(*out))
        DT_THROW(
            err, DT_ERR_RECIPE,
            "the folder of a relative path has a name that is not UTF-8: use an absolute path");
out:
    return st;
}
