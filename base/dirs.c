#include "base/dirs.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

static const struct {
    const char *variable, *below_home;
} places[] = {
    [DT_DIR_STATE] = {"XDG_STATE_HOME", ".local/state"},
    [DT_DIR_CACHE] = {"XDG_CACHE_HOME", ".cache"},
};

static const char *home_dir(void)
{
    const char *home = getenv("HOME");
    const struct passwd *user;

    if (home != NULL && home[0] == '/')
        return home;
    user = getpwuid(getuid());
    return user != NULL ? user->pw_dir : NULL;
}

dt_status dt_dir_path(const char **out, dt_dir dir, dt_arena *arena, dt_error *err)
{
    const char *base = getenv(places[dir].variable), *home;

    *out = NULL;
    if (base != NULL && base[0] == '/') {
        *out = dt_arena_printf(arena, "%s/dtrun", base);
    } else {
        home = home_dir();
        if (home == NULL)
            return DT_FAIL(err, DT_ERR_IO, "cannot tell the home directory: set HOME or %s",
                           places[dir].variable);
        *out = dt_arena_printf(arena, "%s/%s/dtrun", home, places[dir].below_home);
    }
    return DT_OK;
}

dt_status dt_dir_make(const char **out, dt_dir dir, dt_arena *arena, dt_error *err)
{
    const char *path;
    dt_status st = dt_dir_path(&path, dir, arena, err);

    *out = NULL;
    if (st != DT_OK)
        return st;
    st = dt_file_make_dirs(path, 0700, err);
    if (st == DT_OK && access(path, W_OK | X_OK) != 0)
        st = DT_FAIL(err, DT_ERR_IO, "cannot write in '%s': %s", path, strerror(errno));
    if (st != DT_OK) {
        if (err != NULL && strlen(err->message) < sizeof(err->message) - 128) {
            size_t used = strlen(err->message);
            snprintf(err->message + used, sizeof(err->message) - used,
                     " (set %s to a writable folder)", places[dir].variable);
        }
        return st;
    }
    *out = path;
    return DT_OK;
}

/* Returns libexec/dtrun/NAME if `folder` is the bin/ of an installation and this program exists
 * there; else `beside`, which messages about a missing program then name. */
static const char *prefer_installed(const char *beside, const char *folder, const char *name,
                                    dt_arena *arena)
{
    const char *slash = strrchr(folder, '/'), *path;

    if (slash == NULL || strcmp(slash, "/bin") != 0)
        return beside;
    path = dt_arena_printf(arena, "%.*s/libexec/dtrun/%s", (int)(slash - folder), folder, name);
    return access(path, X_OK) != 0 ? beside : path;
}

dt_status dt_dir_program(const char **out, const char *name, const char *override, dt_arena *arena,
                         dt_error *err)
{
    const char *wanted = override != NULL ? getenv(override) : NULL;
    char self[PATH_MAX];
    ssize_t length;
    char *slash;

    *out = NULL;
    if (wanted != NULL && wanted[0] != '\0') {
        *out = dt_arena_strdup(arena, wanted);
    } else {
        length = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (length < 0)
            return DT_FAIL(err, DT_ERR_IO, "cannot read /proc/self/exe: %s", strerror(errno));
        self[length] = '\0';
        slash = strrchr(self, '/');
        DT_ASSERT(slash != NULL);
        *slash = '\0';
        *out = dt_arena_printf(arena, "%s/%s", self, name);
        if (access(*out, X_OK) != 0)
            *out = prefer_installed(*out, self, name, arena);
    }
    if (access(*out, X_OK) != 0)
        return DT_FAIL(err, DT_ERR_NOT_FOUND, "cannot run '%s': %s", *out, strerror(errno));
    return DT_OK;
}
