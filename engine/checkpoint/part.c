#include "engine/checkpoint/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/checkpoint/digest.h"
#include "engine/checkpoint/read_at.h"

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
