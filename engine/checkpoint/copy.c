#include "engine/checkpoint/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/checkpoint/checkpoint_int.h"
#include "engine/checkpoint/digest.h"
#include "engine/checkpoint/name.h"

static dt_status copy_bytes(const char *from, const char *to, dt_error *err)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), out = -1;
    dt_status st = DT_OK;
    ssize_t sent = 1;

    if (in >= 0)
        out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (in < 0 || out < 0)
        DT_THROW(err, DT_ERR_IO, "cannot copy '%s' to '%s': %s", from, to, strerror(errno));
    while (sent > 0)
        sent = sendfile(out, in, NULL, (size_t)1 << 30);
    if (sent < 0 || fsync(out) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot copy '%s' to '%s': %s", from, to, strerror(errno));
out:
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) != 0 && st == DT_OK)
        st = DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", to, strerror(errno));
    return st;
}

static dt_status link_files(const dt_checkpoint *checkpoint, const char *from, const char *to,
                            dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < checkpoint->index.file_count; i++) {
        const char *name = checkpoint->index.files[i].name;
        const char *source = dt_arena_printf(arena, "%s/%s", from, name);
        const char *target = dt_arena_printf(arena, "%s/%s", to, name);

        if (link(source, target) != 0)
            DT_TRY(copy_bytes(source, target, err));
    }
out:
    return st;
}

/* Write the index with the new run's name. The marker, written last, contains its digest. */
static dt_status write_index(const char **digest, const dt_checkpoint *checkpoint, const char *run,
                             const char *folder, dt_arena *arena, dt_error *err)
{
    const char *path = dt_arena_printf(arena, "%s/" DT_CHECKPOINT_INDEX, folder);
    char hex[DT_DIGEST_SIZE];
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    json_object_set_new(checkpoint->json, "run", json_string(run));
    json_object_set_new(checkpoint->json, "attempt", json_integer(0));
    dt_json_write(&text, checkpoint->json);
    dt_digest_of(hex, text.data, text.length);
    *digest = dt_arena_strdup(arena, hex);
    DT_TRY(dt_file_write_atomic(path, text.data, text.length, 0600, err));
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status finish(const char *partial, const char *path, const char *parent,
                        const char *digest, dt_arena *arena, dt_error *err)
{
    const char *marker = dt_arena_printf(arena, "%s/" DT_CHECKPOINT_MARKER, path);
    const char *line = dt_arena_printf(arena, "%s\n", digest);
    dt_status st = DT_OK;

    DT_TRY(dt_file_sync_dir(partial, err));
    if (rename(partial, path) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot rename '%s': %s", partial, strerror(errno));
    DT_TRY(dt_file_sync_dir(parent, err));
    DT_TRY(dt_file_write_atomic(marker, line, strlen(line), 0600, err));
out:
    return st;
}

dt_status dt_checkpoint_copy(const char **path, const char **digest, const char *from,
                             const char *parent, const char *run, dt_arena *arena, dt_error *err)
{
    char name[DT_CHECKPOINT_NAME_SIZE];
    dt_checkpoint *checkpoint = NULL;
    const char *partial = NULL;
    dt_status st = DT_OK;
    /* lock the source, which protects it from pruning */
    int held = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (held < 0 || flock(held, LOCK_SH) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", from, strerror(errno));
    DT_TRY(dt_checkpoint_open(&checkpoint, from, err));
    dt_checkpoint_name_format(name, &(dt_checkpoint_name){checkpoint->index.info.step, 1, false});
    *path = dt_arena_printf(arena, "%s/%s", parent, name);
    partial = dt_arena_printf(arena, "%s/%s" DT_CHECKPOINT_PARTIAL, parent, name);
    DT_TRY(dt_file_make_dirs(partial, 0700, err));
    DT_TRY(link_files(checkpoint, from, partial, arena, err));
    DT_TRY(write_index(digest, checkpoint, run, partial, arena, err));
    DT_TRY(finish(partial, *path, parent, *digest, arena, err));
out:
    dt_checkpoint_close(checkpoint);
    if (held >= 0)
        close(held);
    return st;
}
