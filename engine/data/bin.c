#include "engine/data/bin.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const struct {
    int32_t magic, version;
    int width_bytes;
} formats[] = {{20240520, 1, 2}, {20240801, 7, 4}};

#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static int32_t int32_at(const unsigned char *bytes)
{
    return (int32_t)((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                     (uint32_t)bytes[3] << 24);
}

bool dt_bin_has_magic(const unsigned char *start)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (int32_at(start) == formats[i].magic)
            return true;
    return false;
}

static dt_status llmc_layout(dt_bin_layout *out, const dt_data_file *file,
                             const unsigned char *header, dt_error *err)
{
    int32_t magic = int32_at(header), version = int32_at(header + 4), count = int32_at(header + 8);
    size_t i = 0;

    while (i < FORMATS && formats[i].magic != magic)
        i++;
    if (file->bytes < DT_BIN_HEADER_BYTES || i == FORMATS)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s' is not an llm.c token file: the magic number in its header is neither "
                       "%d nor %d; set data.tokens to the format of the file",
                       file->path, formats[0].magic, formats[1].magic);
    if (version != formats[i].version)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s': unsupported version %d of llm.c's token file %d (expected %d); write "
                       "the tokens again",
                       file->path, version, magic, formats[i].version);
    out->header_bytes = DT_BIN_HEADER_BYTES;
    out->width_bytes = formats[i].width_bytes;
    out->count = count;
    if (count <= 0 || file->bytes - DT_BIN_HEADER_BYTES != out->count * out->width_bytes)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s': its header says %d tokens of %d bytes, and %lld bytes follow; the "
                       "file is cut off or damaged: copy or write it again",
                       file->path, count, out->width_bytes,
                       (long long)(file->bytes - DT_BIN_HEADER_BYTES));
    return DT_OK;
}

static int bare_width(dt_tokens_kind kind)
{
    return kind == DT_TOKENS_UINT8   ? 1
           : kind == DT_TOKENS_INT32 ? 4
           : kind == DT_TOKENS_INT64 ? 8
                                     : 2;
}

static dt_status bare_layout(dt_bin_layout *out, const dt_data_file *file,
                             const unsigned char *header, dt_error *err)
{
    const int width = bare_width(file->kind);

    if (file->bytes >= DT_BIN_HEADER_BYTES && dt_bin_has_magic(header))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s' begins with an llm.c header, but data.tokens is %s; set data.tokens "
                       "to llmc or auto",
                       file->path, dt_tokens_kind_name(file->kind));
    if (file->bytes % width != 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s' has %lld bytes, not a whole number of tokens of %d bytes; the file is "
                       "cut off, or data.tokens does not match its format",
                       file->path, (long long)file->bytes, width);
    out->header_bytes = 0;
    out->width_bytes = width;
    out->count = file->bytes / width;
    return DT_OK;
}

dt_status dt_bin_layout_read(dt_bin_layout *out, const dt_data_file *file, dt_error *err)
{
    dt_status st = DT_OK;
    unsigned char header[12] = {0};
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || pread(fd, header, sizeof(header), 0) < 0)
        DT_THROW(err, DT_ERR_RECIPE, "cannot read '%s': %s", file->path, strerror(errno));
    DT_TRY(file->kind == DT_TOKENS_LLMC ? llmc_layout(out, file, header, err)
                                        : bare_layout(out, file, header, err));
out:
    if (fd >= 0)
        close(fd);
    return st;
}
