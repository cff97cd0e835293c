/* copy: copies the folder of a command, for the runs of a smoke test. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/node_setup/workdir/contents.h"
#include "runner/smoke/place.h"
#include "runner/term/format.h"

enum { MODE_BITS = 07777, DEPTH_MOST = 200 };

typedef struct copying {
    const char *from;
    const char *to;    /* NULL: only measure */
    const char *saved; /* pattern of checkpoints, relative; "": none */
    int64_t bytes, largest_bytes;
    const char *largest;
    dt_arena *arena;
} copying;

static dt_status copy_folder(copying *io, const char *path, int depth, dt_error *err);

static dt_status copy_link(const char *from, const char *to, const struct stat *info,
                           dt_arena *arena, dt_error *err)
{
    char *target = dt_arena_alloc(arena, (size_t)info->st_size + 1);
    ssize_t length = readlink(from, target, (size_t)info->st_size + 1);

    if (length < 0 || length > info->st_size)
        return DT_FAIL(err, DT_ERR_IO, "cannot read the link '%s': %s", from,
                       length < 0 ? strerror(errno) : "it changes");
    target[length] = '\0';
    return symlink(target, to) == 0
               ? DT_OK
               : DT_FAIL(err, DT_ERR_IO, "cannot create '%s': %s", to, strerror(errno));
}

/* Measures a file, and copies it unless only its size is asked for. */
static dt_status copy_file(copying *io, const char *path, const struct stat *info, dt_error *err)
{
    const char *from = dt_arena_printf(io->arena, "%s/%s", io->from, path);
    int64_t bytes = (int64_t)info->st_blocks * 512;

    io->bytes += bytes;
    if (bytes >= io->largest_bytes) {
        io->largest = path;
        io->largest_bytes = bytes;
    }
    if (io->to == NULL)
        return DT_OK;
    return dt_contents_copy_file(
        dt_arena_printf(io->arena, "%s/%s", io->to, path), from, info->st_mode & MODE_BITS,
        (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec, err);
}

/* Copies a file, link or folder with what is below. Sockets, pipes and devices are left out. */
static dt_status copy_entry(copying *io, const char *path, int depth, dt_error *err)
{
    const char *from = dt_arena_printf(io->arena, "%s/%s", io->from, path), *to;
    struct stat info;
    dt_status st = DT_OK;

    if (io->saved[0] != '\0' && fnmatch(io->saved, path, FNM_PATHNAME) == 0)
        goto out;
    if (lstat(from, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", from, strerror(errno));
    to = io->to != NULL ? dt_arena_printf(io->arena, "%s/%s", io->to, path) : NULL;
    if (S_ISREG(info.st_mode))
        DT_TRY(copy_file(io, path, &info, err));
    else if (S_ISLNK(info.st_mode) && to != NULL)
        DT_TRY(copy_link(from, to, &info, io->arena, err));
    if (!S_ISDIR(info.st_mode))
        goto out;
    if (to != NULL && mkdir(to, (info.st_mode & MODE_BITS) | S_IRWXU) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot create '%s': %s", to, strerror(errno));
    DT_TRY(copy_folder(io, path, depth + 1, err));
out:
    return st;
}

/* path: of the folder, relative; "": the whole. */
static dt_status copy_folder(copying *io, const char *path, int depth, dt_error *err)
{
    const char *folder = dt_arena_printf(io->arena, "%s/%s", io->from, path);
    DIR *entries = opendir(folder);
    dt_status st = DT_OK;
    struct dirent *entry;

    if (entries == NULL)
        DT_THROW(err, DT_ERR_RECIPE, "cannot read the folder '%s': %s", folder, strerror(errno));
    if (depth > DEPTH_MOST)
        DT_THROW(err, DT_ERR_RECIPE, "the folder '%s' has more than %d levels", io->from,
                 DEPTH_MOST);
    while ((entry = readdir(entries)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        DT_TRY(copy_entry(io,
                          path[0] == '\0'
                              ? dt_arena_strdup(io->arena, entry->d_name)
                              : dt_arena_printf(io->arena, "%s/%s", path, entry->d_name),
                          depth, err));
    }
out:
    if (entries != NULL)
        closedir(entries);
    return st;
}

/* Returns the pattern of the checkpoints of all runs: {step} and {run} become '*'. */
static const char *pattern_of(const char *path, dt_arena *arena)
{
    char *out = dt_arena_strdup(arena, path), *to = out;

    for (const char *at = path; *at != '\0'; at++) {
        if (strncmp(at, "{step}", strlen("{step}")) == 0 ||
            strncmp(at, "{run}", strlen("{run}")) == 0) {
            at = strchr(at, '}');
            *to++ = '*';
            continue;
        }
        *to++ = *at;
    }
    *to = '\0';
    return strncmp(out, "./", 2) == 0 ? out + 2 : out;
}

dt_status dt_smoke_place_copy(dt_recipe *io, const dt_smoke_place *place, const char *name,
                              dt_error *err)
{
    const char *to = dt_arena_printf(place->arena, "%s/%s-workdir", place->folder, name);
    copying work = {.from = io->workdir.folder, .largest = "", .arena = place->arena};
    char size[DT_FORMAT_SIZE], largest[DT_FORMAT_SIZE];
    dt_status st = DT_OK;

    work.saved = pattern_of(io->checkpoints.path, place->arena);
    DT_TRY(copy_folder(&work, "", 0, err));
    if (work.bytes > io->workdir.max_mb * 1000000)
        DT_THROW(err, DT_ERR_RECIPE,
                 "the test would copy '%s', which has %s (the largest file: '%s', %s), more than "
                 "workdir.max_mb (%lld): use --set workdir.max_mb=N, or move files out of the "
                 "folder",
                 work.from, dt_format_bytes(size, sizeof(size), (double)work.bytes), work.largest,
                 dt_format_bytes(largest, sizeof(largest), (double)work.largest_bytes),
                 (long long)io->workdir.max_mb);
    work.to = to;
    if (mkdir(to, S_IRWXU) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot create '%s': %s", to, strerror(errno));
    DT_TRY(copy_folder(&work, "", 0, err));
    io->workdir.folder = to;
out:
    return st;
}
