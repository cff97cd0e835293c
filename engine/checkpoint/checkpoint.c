/* checkpoint: opens a checkpoint and its files, and has what every reader needs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/checkpoint/checkpoint_int.h"
#include "engine/checkpoint/digest.h"
#include "engine/checkpoint/index.h"
#include "engine/checkpoint/name.h"
#include "engine/checkpoint/safetensors.h"

/* --- one file of a checkpoint: tensors, or the tokenizer's file */

#define BLOCK_BYTES ((size_t)1 << 20)

/* Tensors are read in the file's byte order. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors files are little-endian");

static dt_status check_digest(const dt_checkpoint_part *part, const dt_checkpoint_file *file,
                              dt_error *err)
{
    dt_status st = DT_OK;
    dt_digest *digest = NULL;
    char *block = malloc(BLOCK_BYTES), hex[DT_DIGEST_SIZE];

    DT_TRY(dt_digest_new(&digest, err));
    if (block == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "'%s': no memory to read it", part->path);
    for (int64_t at = 0; at < file->bytes;) {
        int64_t left = file->bytes - at;
        size_t length = left < (int64_t)BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;

        DT_TRY(dt_checkpoint_read_at(block, length, part->fd, at, part->path, err));
        dt_digest_add(digest, block, length);
        at += (int64_t)length;
    }
    dt_digest_get(hex, digest);
    if (strcmp(hex, file->digest) != 0)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "'%s' is damaged: its digest is %s, and the index says %s; use another checkpoint",
                 part->path, hex, file->digest);
out:
    dt_digest_free(digest);
    free(block);
    return st;
}

dt_status dt_checkpoint_part_open(dt_checkpoint_part *out, const char *path,
                                  const dt_checkpoint_file *file, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;

    memset(out, 0, sizeof(*out));
    out->path = path;
    out->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (out->fd < 0 || fstat(out->fd, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    if (info.st_size != file->bytes)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "'%s' has %lld bytes, and the index says %lld; use another checkpoint", path,
                 (long long)info.st_size, (long long)file->bytes);
    DT_TRY(check_digest(out, file, err));
    if (dt_checkpoint_name_ends(file->name, DT_CHECKPOINT_TENSORS))
        DT_TRY(dt_safetensors_read(&out->header, out->fd, file->bytes, path, err));
out:
    if (st != DT_OK)
        dt_checkpoint_part_close(out);
    return st;
}

void dt_checkpoint_part_close(dt_checkpoint_part *part)
{
    if (part->fd >= 0)
        close(part->fd);
    part->fd = -1;
    dt_safetensors_release(&part->header);
}

dt_status dt_checkpoint_part_find(int64_t *start_bytes, const dt_checkpoint_part *part,
                                  const dt_checkpoint_piece *piece, dt_error *err)
{
    int64_t have_elems;

    if (!dt_safetensors_find(start_bytes, &have_elems, &part->header, piece->key) ||
        have_elems != piece->slice.elems)
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "'%s' has no tensor '%s' of %lld elements, which the index names; use "
                       "another checkpoint",
                       part->path, piece->key, (long long)piece->slice.elems);
    return DT_OK;
}

dt_status dt_checkpoint_part_read(float *out, const dt_checkpoint_part *part, int64_t start_bytes,
                                  int64_t skip_elems, int64_t elems, dt_error *err)
{
    return dt_checkpoint_read_at(out, (size_t)elems * sizeof(float), part->fd,
                                 start_bytes + skip_elems * (int64_t)sizeof(float), part->path,
                                 err);
}

/* --- the checkpoint */

static const char *path_in(dt_checkpoint *checkpoint, const char *name)
{
    return dt_arena_printf(&checkpoint->arena, "%s/%s", checkpoint->path, name);
}

/* Read a small file of a checkpoint. A missing or oversized file is damage: DT_ERR_CORRUPT. */
static dt_status read_small(dt_strbuf *out, const char *path, size_t max_bytes, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = dt_file_read(out, path, max_bytes, &problem);

    if (st == DT_ERR_NOT_FOUND || st == DT_ERR_UNSUPPORTED)
        st = DT_ERR_CORRUPT;
    return st == DT_OK ? st : DT_FAIL(err, st, "%s; use another checkpoint", problem.message);
}

static dt_status read_marker(dt_strbuf *out, dt_checkpoint *checkpoint, const char *marker,
                             dt_error *err)
{
    dt_status st = DT_OK;
    const char *path;

    path = path_in(checkpoint, marker);
    if (!dt_file_exists(checkpoint->path))
        DT_THROW(err, DT_ERR_NOT_FOUND, "checkpoint '%s' does not exist", checkpoint->path);
    if (!dt_file_exists(path))
        DT_THROW(err, DT_ERR_CORRUPT,
                 "'%s' is incomplete: its save was interrupted before the marker '%s' was written; "
                 "use another checkpoint",
                 checkpoint->path, marker);
    DT_TRY(read_small(out, path, DT_DIGEST_SIZE, err));
    if (out->length != DT_DIGEST_SIZE || out->data[DT_DIGEST_SIZE - 1] != '\n')
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' does not contain a digest; use another checkpoint",
                 path);
    out->data[DT_DIGEST_SIZE - 1] = '\0';
out:
    return st;
}

static dt_status read_index(dt_checkpoint *checkpoint, const char *marker_name, dt_error *err)
{
    dt_status st = DT_OK;
    char digest[DT_DIGEST_SIZE];
    const char *path;
    dt_strbuf marker, text;

    dt_strbuf_init(&marker);
    dt_strbuf_init(&text);
    DT_TRY(read_marker(&marker, checkpoint, marker_name, err));
    path = path_in(checkpoint, DT_CHECKPOINT_INDEX);
    DT_TRY(read_small(&text, path, DT_CHECKPOINT_MAX_INDEX, err));
    dt_digest_of(digest, text.data, text.length);
    if (strcmp(digest, marker.data) != 0)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "'%s' is damaged: its digest is %s, and '%s' says %s; use another checkpoint",
                 path, digest, marker_name, marker.data);
    DT_TRY(dt_json_parse(&checkpoint->json, text.data, text.length, path, err));
    DT_TRY(dt_checkpoint_index_parse(&checkpoint->index, checkpoint->json, path, &checkpoint->arena,
                                     err));
out:
    dt_strbuf_release(&marker);
    dt_strbuf_release(&text);
    return st;
}

static bool is_optimizers(const dt_checkpoint_file *file)
{
    return strncmp(file->name, DT_CHECKPOINT_OPTIMIZER, strlen(DT_CHECKPOINT_OPTIMIZER)) == 0;
}

/* values: the optimizer's files may be missing. */
static dt_status check_sizes(dt_checkpoint *checkpoint, bool values, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < checkpoint->index.file_count; i++) {
        const dt_checkpoint_file *file = &checkpoint->index.files[i];
        dt_checkpoint_part *part = &checkpoint->parts[i];
        struct stat info;

        part->fd = -1;
        part->path = path_in(checkpoint, file->name);
        if (lstat(part->path, &info) != 0 && values && errno == ENOENT && is_optimizers(file))
            continue;
        if (lstat(part->path, &info) != 0)
            DT_THROW(err, DT_ERR_CORRUPT, "cannot find '%s': %s; use another checkpoint",
                     part->path, strerror(errno));
        if (!S_ISREG(info.st_mode) || info.st_size != file->bytes)
            DT_THROW(err, DT_ERR_CORRUPT,
                     "'%s' has %lld bytes, and the index says %lld; use another checkpoint",
                     part->path, (long long)info.st_size, (long long)file->bytes);
    }
out:
    return st;
}

static dt_status open_marked(dt_checkpoint **out, const char *path, const char *marker,
                             dt_error *err)
{
    dt_status st = DT_OK;
    dt_checkpoint *opened = calloc(1, sizeof(*opened));

    *out = NULL;
    if (opened == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to open '%s'", path);
    dt_arena_init(&opened->arena, 0);
    opened->path = dt_arena_strdup(&opened->arena, path);
    DT_TRY(read_index(opened, marker, err));
    opened->parts = dt_arena_alloc_array(&opened->arena, (size_t)opened->index.file_count + 1,
                                         sizeof(*opened->parts));
    for (int64_t i = 0; i < opened->index.file_count; i++)
        opened->parts[i].fd = -1;
    *out = opened;
    opened = NULL;
out:
    dt_checkpoint_close(opened);
    return st;
}

static dt_status open_whole(dt_checkpoint **out, const char *path, bool values, dt_error *err)
{
    dt_status st = DT_OK;
    dt_checkpoint *opened = NULL;

    *out = NULL;
    DT_TRY(open_marked(&opened, path, DT_CHECKPOINT_MARKER, err));
    DT_TRY(check_sizes(opened, values, err));
    *out = opened;
    opened = NULL;
out:
    dt_checkpoint_close(opened);
    return st;
}

dt_status dt_checkpoint_open(dt_checkpoint **out, const char *path, dt_error *err)
{
    return open_whole(out, path, false, err);
}

dt_status dt_checkpoint_open_values(dt_checkpoint **out, const char *path, dt_error *err)
{
    return open_whole(out, path, true, err);
}

dt_status dt_checkpoint_open_part(dt_checkpoint **out, const char *path, dt_error *err)
{
    return open_marked(out, path, DT_CHECKPOINT_PART, err);
}

void dt_checkpoint_close(dt_checkpoint *checkpoint)
{
    if (checkpoint == NULL)
        return;
    for (int64_t i = 0; checkpoint->parts != NULL && i < checkpoint->index.file_count; i++)
        dt_checkpoint_part_close(&checkpoint->parts[i]);
    json_decref(checkpoint->json);
    dt_arena_release(&checkpoint->arena);
    free(checkpoint);
}

const dt_checkpoint_info *dt_checkpoint_get_info(const dt_checkpoint *checkpoint)
{
    return &checkpoint->index.info;
}

dt_status dt_checkpoint_use_part(dt_checkpoint_part **out, dt_checkpoint *checkpoint, int64_t file,
                                 dt_error *err)
{
    *out = &checkpoint->parts[file];
    if ((*out)->fd >= 0)
        return DT_OK;
    return dt_checkpoint_part_open(*out, (*out)->path, &checkpoint->index.files[file], err);
}

static dt_status verify_pieces(dt_checkpoint *checkpoint, const dt_checkpoint_pieces *pieces,
                               dt_error *err)
{
    dt_status st = DT_OK;
    dt_checkpoint_part *part;
    int64_t start_bytes;

    for (int64_t i = 0; i < pieces->count; i++) {
        DT_TRY(dt_checkpoint_use_part(&part, checkpoint, pieces->items[i].file, err));
        DT_TRY(dt_checkpoint_part_find(&start_bytes, part, &pieces->items[i], err));
    }
out:
    return st;
}

dt_status dt_checkpoint_verify(dt_checkpoint *checkpoint, dt_error *err)
{
    dt_status st = DT_OK;
    dt_checkpoint_part *part;

    for (int64_t i = 0; i < checkpoint->index.file_count; i++)
        DT_TRY(dt_checkpoint_use_part(&part, checkpoint, i, err));
    for (int64_t i = 0; i < checkpoint->index.tensor_count; i++)
        for (int kind = 0; kind < DT_CHECKPOINT_KINDS; kind++)
            DT_TRY(verify_pieces(checkpoint, &checkpoint->index.tensors[i].pieces[kind], err));
out:
    return st;
}

static dt_status remove_marker(const char *path, const char *name, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf marker;

    dt_strbuf_init(&marker);
    dt_strbuf_add_fmt(&marker, "%s/%s", path, name);
    if (unlink(marker.data) != 0 && errno != ENOENT && errno != ENOTDIR)
        st = DT_FAIL(err, DT_ERR_IO, "cannot remove '%s': %s", marker.data, strerror(errno));
    dt_strbuf_release(&marker);
    return st;
}

dt_status dt_checkpoint_remove(const char *path, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(remove_marker(path, DT_CHECKPOINT_MARKER, err));
    DT_TRY(remove_marker(path, DT_CHECKPOINT_PART, err));
    DT_TRY(dt_file_remove_tree(path, err));
out:
    return st;
}
