/* checkpoints: checks the checkpoints of a run, and compares two tensor by tensor. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/safetensors.h"
#include "runner/verify/verify.h"

#define INDEX_MOST ((size_t)64 << 20)

/* --- digests */

/* What the digests of a checkpoint show; NULL: it is whole. */
static const char *find_damage(const char *path, dt_arena *arena)
{
    dt_checkpoint *checkpoint = NULL;
    dt_error problem = DT_ERROR_INIT;
    dt_status st = dt_checkpoint_open(&checkpoint, path, &problem);

    if (st == DT_OK)
        st = dt_checkpoint_verify(checkpoint, &problem);
    dt_checkpoint_close(checkpoint);
    return st == DT_OK ? NULL : dt_arena_strdup(arena, problem.message);
}

static int by_step(const void *a, const void *b)
{
    const dt_verified_checkpoint *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return x->attempt < y->attempt ? -1 : x->attempt > y->attempt;
}

dt_status dt_verify_checkpoints(dt_verified_checkpoints *out, dt_store *store, const dt_run *run,
                                dt_arena *arena, dt_error *err)
{
    dt_store_checkpoint *all;
    dt_status st = DT_OK;
    int64_t count;

    *out = (dt_verified_checkpoints){0};
    DT_TRY(dt_store_checkpoint_list(store, &all, &count, run->id, arena, err));
    out->items = dt_arena_alloc_array(arena, (size_t)count + 1, sizeof(*out->items));
    for (int64_t i = 0; i < count; i++)
        if (dt_store_checkpoint_exists(&all[i]))
            out->items[out->count++] = (dt_verified_checkpoint){
                all[i].attempt, all[i].step, all[i].path, find_damage(all[i].path, arena)};
    qsort(out->items, (size_t)out->count, sizeof(*out->items), by_step);
out:
    return st;
}

/* --- tensors */

/* A mapped file of tensors. */
typedef struct mapped {
    dt_safetensors tensors;
    const unsigned char *bytes;
    size_t length;
} mapped;

static dt_status map_file(mapped *out, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    memset(out, 0, sizeof(*out));
    if (fd < 0 || fstat(fd, &info) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    DT_TRY(dt_safetensors_read(&out->tensors, fd, info.st_size, path, err));
    out->length = (size_t)info.st_size;
    out->bytes = mmap(NULL, out->length, PROT_READ, MAP_PRIVATE, fd, 0);
    if (out->bytes == MAP_FAILED) {
        out->bytes = NULL;
        DT_THROW(err, DT_ERR_IO, "cannot map '%s': %s", path, strerror(errno));
    }
out:
    if (fd >= 0)
        close(fd);
    return st;
}

static void unmap(mapped *file)
{
    if (file->bytes != NULL)
        munmap((void *)(uintptr_t)file->bytes, file->length);
    dt_safetensors_release(&file->tensors);
}

/* Counts the elements that differ; *first: the first of them. */
static int64_t count_different(int64_t *first, const float *a, const float *b, int64_t elems)
{
    int64_t count = 0;

    if (memcmp(a, b, (size_t)elems * sizeof(*a)) == 0)
        return 0;
    for (int64_t i = elems - 1; i >= 0; i--)
        if (memcmp(&a[i], &b[i], sizeof(*a)) != 0) {
            *first = i;
            count++;
        }
    return count;
}

static uint32_t bits_of(const float *value)
{
    uint32_t bits;

    memcpy(&bits, value, sizeof(bits));
    return bits;
}

/* The tensor and element in words: with the bit, if it is one. */
static const char *describe(const char *key, int64_t index, const float *recorded,
                            const float *replayed, dt_arena *arena)
{
    uint32_t was = bits_of(recorded), is = bits_of(replayed), flipped = was ^ is;
    const char *bit = "";

    if ((flipped & (flipped - 1)) == 0)
        bit = dt_arena_printf(arena, ": bit %d is flipped", __builtin_ctz(flipped));
    return dt_arena_printf(arena,
                           "'%s', element %lld%s (0x%08x in the checkpoint, 0x%08x computed)", key,
                           (long long)index, bit, was, is);
}

typedef struct tally {
    const char *text;
    int64_t elems, differ;
    dt_arena *arena;
} tally;

static dt_status compare_file(tally *io, const char *name, const char *recorded,
                              const char *replayed, dt_error *err)
{
    mapped a = {0}, b = {0};
    dt_status st = DT_OK;
    const char *key;
    json_t *value;

    DT_TRY(map_file(&a, dt_arena_printf(io->arena, "%s/%s", recorded, name), err));
    DT_TRY(map_file(&b, dt_arena_printf(io->arena, "%s/%s", replayed, name), err));
    json_object_foreach(b.tensors.header, key, value) {
        int64_t a_at, b_at, a_elems, b_elems, first = 0, differ;

        if (!dt_safetensors_find(&b_at, &b_elems, &b.tensors, key))
            continue;
        if (!dt_safetensors_find(&a_at, &a_elems, &a.tensors, key) || a_elems != b_elems)
            DT_THROW(err, DT_ERR_CORRUPT, "'%s' has no tensor '%s' of %lld elements", name, key,
                     (long long)b_elems);
        const float *was = (const float *)(const void *)(a.bytes + a_at);
        const float *is = (const float *)(const void *)(b.bytes + b_at);

        differ = count_different(&first, was, is, a_elems);
        io->elems += a_elems;
        io->differ += differ;
        if (differ > 0 && io->text == NULL)
            io->text = describe(key, first, &was[first], &is[first], io->arena);
    }
out:
    unmap(&a);
    unmap(&b);
    return st;
}

dt_status dt_verify_tensors(const char **text, int64_t *elems, int64_t *differ,
                            const char *recorded, const char *replayed, dt_arena *arena,
                            dt_error *err)
{
    tally sum = {.arena = arena};
    json_t *index = NULL, *file;
    dt_status st = DT_OK;
    size_t i;

    DT_TRY(
        dt_json_read(&index, dt_arena_printf(arena, "%s/index.json", replayed), INDEX_MOST, err));
    json_array_foreach(json_object_get(index, "files"), i, file) {
        const char *name = json_string_value(json_object_get(file, "name"));
        const char *tail = name != NULL ? strrchr(name, '.') : NULL;

        if (tail != NULL && strcmp(tail, ".safetensors") == 0)
            DT_TRY(compare_file(&sum, name, recorded, replayed, err));
    }
    *text = sum.text;
    *elems = sum.elems;
    *differ = sum.differ;
out:
    json_decref(index);
    return st;
}
