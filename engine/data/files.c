/* files: maps files, reads the headers of token files, and finds the files of a recipe. */
#include "engine/data/files.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/data/data_int.h"
#include "recipes/foreign/databin.h"

/* --- mapped files */

dt_status dt_mapping_open(dt_mapping *out, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;
    void *bytes;
    int fd;

    memset(out, 0, sizeof(*out));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0)
        DT_THROW(err, DT_ERR_RECIPE, "cannot read '%s': %s", path, strerror(errno));
    if (info.st_size == 0)
        goto out;
    bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        DT_THROW(err, DT_ERR_RECIPE, "cannot map '%s': %s", path, strerror(errno));
    out->bytes = bytes;
    out->length = (size_t)info.st_size;
out:
    if (fd >= 0)
        close(fd); /* the mapping stays valid */
    return st;
}

void dt_mapping_close(dt_mapping *mapping)
{
    if (mapping->bytes != NULL)
        munmap((void *)(uintptr_t)mapping->bytes, mapping->length);
    memset(mapping, 0, sizeof(*mapping));
}

/* --- headers of token files */

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

/* Whether the first 4 bytes of a file are one of llm.c's magic numbers. */
static bool bin_has_magic(const unsigned char *start)
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

    if (file->bytes >= DT_BIN_HEADER_BYTES && bin_has_magic(header))
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

/* --- paths and globs */

const char *dt_tokens_kind_name(dt_tokens_kind kind)
{
    static const char *const names[] = {
        [DT_TOKENS_AUTO] = "auto",   [DT_TOKENS_CHAR] = "char",       [DT_TOKENS_BYTE] = "byte",
        [DT_TOKENS_LLMC] = "llmc",   [DT_TOKENS_NANOGPT] = "nanogpt", [DT_TOKENS_UINT8] = "uint8",
        [DT_TOKENS_INT32] = "int32", [DT_TOKENS_INT64] = "int64",     [DT_TOKENS_PAIRS] = "pairs",
        [DT_TOKENS_CHATS] = "chats", [DT_TOKENS_ROWS] = "rows"};
    return names[kind];
}

/* data.tokenizer can be NULL in a recipe that was not parsed from a file. */
static bool has_word(const dt_recipe *recipe, const char *word)
{
    return recipe->data.tokenizer != NULL && strcmp(recipe->data.tokenizer, word) == 0;
}

dt_tokens_kind dt_tokens_kind_of(const dt_recipe *recipe)
{
    if (has_word(recipe, "char"))
        return DT_TOKENS_CHAR;
    return has_word(recipe, "byte") ? DT_TOKENS_BYTE : recipe->data.tokens;
}

bool dt_tokenizer_is_file(const dt_recipe *recipe)
{
    return recipe->data.tokenizer != NULL && recipe->data.tokenizer[0] != '\0' &&
           !has_word(recipe, "char") && !has_word(recipe, "byte");
}

bool dt_tokens_kind_is_ids(dt_tokens_kind kind)
{
    return kind >= DT_TOKENS_LLMC && kind <= DT_TOKENS_INT64;
}

static bool ends_with(const char *text, const char *tail)
{
    size_t length = strlen(text), tail_length = strlen(tail);

    return length >= tail_length && strcmp(text + length - tail_length, tail) == 0;
}

/* Check that a file is readable, and detect its kind from its first bytes. */
static dt_status look_at(dt_data_file *out, const char *path, dt_tokens_kind kind,
                         const char *field, dt_error *err)
{
    dt_status st = DT_OK;
    const char *slash = strrchr(path, '/');
    unsigned char start[4] = {0};
    dt_databin databin;
    struct stat info;
    int fd = -1;

    if (strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0)
        DT_THROW(
            err, DT_ERR_RECIPE,
            "%s: '%s' is a different file in every process; write its contents to a file first",
            field, path);
    /* stat first: opening a pipe would block */
    if (stat(path, &info) != 0 && errno == ENOENT)
        DT_THROW(err, DT_ERR_RECIPE,
                 "%s: '%s' does not exist; check the path (a relative one starts at the recipe's "
                 "folder%s)",
                 field, path,
                 strchr(slash != NULL ? slash : path, '.') == NULL
                     ? "; dtrun does not download data sets by name"
                     : "");
    if (stat(path, &info) != 0)
        DT_THROW(err, DT_ERR_RECIPE, "%s: cannot read '%s': %s", field, path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        DT_THROW(err, DT_ERR_RECIPE,
                 "%s: '%s' is a directory; name the files in it, as in '%s/*.%s'", field, path,
                 path, kind == DT_TOKENS_ROWS ? "csv" : "txt");
    if (!S_ISREG(info.st_mode))
        DT_THROW(err, DT_ERR_RECIPE,
                 "%s: '%s' is not a regular file; write its contents to one first", field, path);
    if (info.st_size == 0)
        DT_THROW(err, DT_ERR_RECIPE, "%s: '%s' is empty; give a file with %s in it", field, path,
                 kind == DT_TOKENS_ROWS ? "rows" : "text or tokens");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || pread(fd, start, sizeof(start), 0) < 0)
        DT_THROW(err, DT_ERR_RECIPE, "%s: cannot read '%s': %s; check its permissions", field, path,
                 strerror(errno));
    if (kind == DT_TOKENS_AUTO) {
        DT_TRY(dt_databin_look(&databin, path, err));
        kind = databin.kind;
    }
    if (kind == DT_TOKENS_AUTO)
        kind = !ends_with(path, ".bin") ? DT_TOKENS_CHAR
               : bin_has_magic(start)   ? DT_TOKENS_LLMC
                                        : DT_TOKENS_NANOGPT;
    out->path = path;
    out->kind = kind;
    out->bytes = info.st_size;
out:
    if (fd >= 0)
        close(fd);
    return st;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Expand one entry of the list to its files. */
static dt_status expand(glob_t *out, const char *pattern, const char *field, dt_error *err)
{
    switch (glob(pattern, GLOB_NOSORT | GLOB_ERR, NULL, out)) {
    case 0:
        qsort(out->gl_pathv, out->gl_pathc, sizeof(char *), by_bytes);
        return DT_OK;
    case GLOB_NOMATCH:
        return DT_FAIL(err, DT_ERR_RECIPE, "%s: no file matches '%s'; check the pattern", field,
                       pattern);
    case GLOB_NOSPACE:
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the files of '%s'", pattern);
    default:
        return DT_FAIL(err, DT_ERR_RECIPE, "%s: cannot look for '%s': %s", field, pattern,
                       strerror(errno));
    }
}

static dt_status add(dt_data_files *files, int64_t *capacity, const char *path, dt_tokens_kind kind,
                     const char *field, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    const char *copy = dt_arena_strdup(arena, path);

    files->items = dt_arena_array_room(arena, files->items, files->count + 1, capacity,
                                       sizeof(files->items[0]));
    DT_TRY(look_at(&files->items[files->count], copy, kind, field, err));
    files->bytes += files->items[files->count++].bytes;
out:
    return st;
}

static dt_status add_pattern(dt_data_files *files, int64_t *capacity, const char *pattern,
                             dt_tokens_kind kind, const char *field, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    glob_t found = {0};
    struct stat info;

    if (strpbrk(pattern, "*?[") == NULL || stat(pattern, &info) == 0)
        return add(files, capacity, pattern, kind, field, arena, err);
    DT_TRY(expand(&found, pattern, field, err));
    for (size_t i = 0; i < found.gl_pathc; i++)
        DT_TRY(add(files, capacity, found.gl_pathv[i], kind, field, arena, err));
out:
    globfree(&found);
    return st;
}

dt_status dt_data_files_find(dt_data_files *out, const dt_string_list *patterns,
                             dt_tokens_kind kind, const char *field, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t capacity = 0;

    memset(out, 0, sizeof(*out));
    for (int64_t i = 0; i < patterns->count; i++)
        DT_TRY(add_pattern(out, &capacity, patterns->items[i], kind, field, arena, err));
out:
    return st;
}

dt_status dt_data_files_agree(const dt_data_files *train, const dt_data_files *validation,
                              dt_error *err)
{
    const dt_data_files *lists[] = {train, validation};
    const dt_data_file *first = &train->items[0];

    for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++) {
        for (int64_t i = 0; i < lists[k]->count; i++) {
            const dt_data_file *file = &lists[k]->items[i];

            if (dt_tokens_kind_is_ids(file->kind) != dt_tokens_kind_is_ids(first->kind))
                return DT_FAIL(err, DT_ERR_RECIPE,
                               "'%s' is read as %s and '%s' as %s: text and token files do not "
                               "mix; set data.tokens, or name files of one kind",
                               first->path, dt_tokens_kind_name(first->kind), file->path,
                               dt_tokens_kind_name(file->kind));
        }
    }
    return DT_OK;
}
