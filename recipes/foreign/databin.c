#include "recipes/foreign/databin.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"

/* Bytes before the lengths of sentences; Megatron's header also has the number of documents. */
enum { HEADER_BYTES = 26, MEGATRON_HEADER_BYTES = 34 };

static const char magic[9] = "MMIDIDX\0";    /* and a second zero */
static const char old_magic[8] = "TNTIDX\0"; /* --dataset-impl lazy and cached */

static const struct {
    dt_tokens_kind kind;
    int width_bytes;
} types[] = {[1] = {DT_TOKENS_UINT8, 1}, [2] = {DT_TOKENS_UINT8, 1}, [3] = {DT_TOKENS_NANOGPT, 2},
             [4] = {DT_TOKENS_INT32, 4}, [5] = {DT_TOKENS_INT64, 8}, [8] = {DT_TOKENS_NANOGPT, 2},
             [9] = {DT_TOKENS_INT32, 4}, [10] = {DT_TOKENS_INT64, 8}};

#define TYPES (sizeof(types) / sizeof(types[0]))

const char *dt_databin_word(dt_tokens_kind kind)
{
    switch (kind) {
    case DT_TOKENS_UINT8:
        return "uint8";
    case DT_TOKENS_INT32:
        return "int32";
    case DT_TOKENS_INT64:
        return "int64";
    default:
        return "nanogpt";
    }
}

static uint64_t little_endian(const unsigned char *bytes, int count)
{
    uint64_t value = 0;

    for (int i = count - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

/* Reads the end of the last sentence, in bytes of the .bin. */
static dt_status read_end(uint64_t *end, int fd, off_t lengths, uint64_t sentences, int width_bytes,
                          const char *path, dt_error *err)
{
    unsigned char length[4], begin[8];
    off_t begins = lengths + (off_t)sentences * 4;

    *end = 0;
    if (sentences == 0)
        return DT_OK;
    if (pread(fd, length, 4, lengths + ((off_t)sentences - 1) * 4) != 4 ||
        pread(fd, begin, 8, begins + ((off_t)sentences - 1) * 8) != 8)
        return DT_FAIL(err, DT_ERR_RECIPE, "cannot read '%s': %s", path, strerror(errno));
    *end = little_endian(begin, 8) + little_endian(length, 4) * (uint64_t)width_bytes;
    return DT_OK;
}

static dt_status read_index(dt_databin *out, int fd, const char *path, const char *bin,
                            dt_error *err)
{
    unsigned char header[MEGATRON_HEADER_BYTES] = {0};
    struct stat info, tokens;
    uint64_t version, sentences, documents, bytes, end;
    unsigned type;
    bool is_megatron;
    dt_status st = DT_OK;

    if (fstat(fd, &info) != 0 || pread(fd, header, sizeof(header), 0) < 0)
        DT_THROW(err, DT_ERR_RECIPE, "cannot read '%s': %s", path, strerror(errno));
    if (memcmp(header, old_magic, sizeof(old_magic)) == 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' is a fairseq index older than the mmap format: binarize the text again with "
                 "--dataset-impl mmap",
                 path);
    if (memcmp(header, magic, sizeof(magic)) != 0)
        goto out; /* another program's */
    version = little_endian(header + 9, 8);
    type = header[17];
    sentences = little_endian(header + 18, 8);
    if (version != 1)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' is an index of version %" PRIu64
                 ", but only version 1 is supported: binarize the text again",
                 path, version);
    if (type >= TYPES || types[type].width_bytes == 0)
        DT_THROW(
            err, DT_ERR_RECIPE,
            "'%s': its ids are of type %u, which is not an integer type: binarize the text again",
            path, type);
    documents = little_endian(header + 26, 8);
    bytes = (uint64_t)info.st_size;
    is_megatron = sentences <= bytes / 12 && documents <= bytes / 8 &&
                  bytes == MEGATRON_HEADER_BYTES + sentences * 12 + documents * 8;
    if (!is_megatron && (sentences > bytes / 12 || bytes != HEADER_BYTES + sentences * 12))
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' says %" PRIu64 " sentences, and has %lld bytes: it is cut off or another "
                 "program's; copy or write it again",
                 path, sentences, (long long)info.st_size);
    DT_TRY(read_end(&end, fd, is_megatron ? MEGATRON_HEADER_BYTES : HEADER_BYTES, sentences,
                    types[type].width_bytes, path, err));
    if (stat(bin, &tokens) == 0 && (uint64_t)tokens.st_size != end)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' has %lld bytes, and '%s' says %" PRIu64 ": one of them is cut off or of "
                 "other data; copy or write both again",
                 bin, (long long)tokens.st_size, path, end);
    out->kind = types[type].kind;
out:
    return st;
}

/* Counts the lines of dict.txt and the four ids before them. */
static int64_t count_symbols(const char *path)
{
    FILE *file = fopen(path, "re");
    int64_t lines = 0;
    int last = '\n', c;

    if (file == NULL)
        return 0;
    for (; (c = getc_unlocked(file)) != EOF; last = c)
        lines += c == '\n';
    fclose(file);
    return lines + (last != '\n') + DT_DATABIN_SPECIALS;
}

dt_status dt_databin_look(dt_databin *out, const char *bin, dt_error *err)
{
    const char *slash = strrchr(bin, '/');
    size_t length = strlen(bin);
    dt_strbuf path;
    dt_status st = DT_OK;
    int fd = -1;

    *out = (dt_databin){.kind = DT_TOKENS_AUTO};
    dt_strbuf_init(&path);
    if (length < 4 || strcmp(bin + length - 4, ".bin") != 0)
        goto out;
    dt_strbuf_add_fmt(&path, "%.*s.idx", (int)(length - 4), bin);
    fd = open(path.data, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        goto out;
    if (fd < 0)
        DT_THROW(err, DT_ERR_RECIPE, "cannot read '%s': %s; check its permissions", path.data,
                 strerror(errno));
    DT_TRY(read_index(out, fd, path.data, bin, err));
    if (out->kind == DT_TOKENS_AUTO)
        goto out;
    dt_strbuf_reset(&path);
    dt_strbuf_add_fmt(&path, "%.*sdict.txt", slash != NULL ? (int)(slash + 1 - bin) : 0, bin);
    out->vocab = count_symbols(path.data);
out:
    if (fd >= 0)
        close(fd);
    dt_strbuf_release(&path);
    return st;
}
