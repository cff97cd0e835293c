#include "recipes/foreign/weights.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "recipes/architecture/published.h"
#include "recipes/foreign/huggingface.h"

#define CHECKPOINT_INDEX  "index.json"
#define CHECKPOINT_MARKER "complete"
#define TENSORS_ENDING    ".safetensors"
#define BIN_ENDING        ".bin"
#define CONFIG_MOST       ((size_t)4 << 20)
#define INDEX_MOST        ((size_t)64 << 20)
#define FILES_MOST        10000

const char *dt_weights_kind_name(dt_weights_kind kind)
{
    static const char *const names[] = {"", "huggingface", "checkpoint", "bin", "peft"};

    return names[kind];
}

/* Returns whether the file is a Git LFS pointer. */
static bool is_pointer(const char *path)
{
    static const char begin[] = "version https://git-lfs";
    char head[sizeof(begin)];
    FILE *file = fopen(path, "re");
    size_t got = file != NULL ? fread(head, 1, sizeof(begin) - 1, file) : 0;

    if (file != NULL)
        fclose(file);
    return got == sizeof(begin) - 1 && memcmp(head, begin, got) == 0;
}

/* Returns whether the file begins as a zip archive, as those of torch.save do. */
static bool is_archive(const char *path)
{
    char head[4] = "";
    FILE *file = fopen(path, "re");
    size_t got = file != NULL ? fread(head, 1, sizeof(head), file) : 0;

    if (file != NULL)
        fclose(file);
    return got == sizeof(head) && memcmp(head, "PK\3\4", got) == 0;
}

static dt_status check_file(const char *path, dt_error *err)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return DT_FAIL(err, DT_ERR_RECIPE, "cannot read '%s': %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return DT_FAIL(err, DT_ERR_RECIPE, "'%s' is not a file", path);
    if (is_pointer(path))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s' is a Git LFS pointer instead of the file: run 'git lfs pull' in its "
                       "folder",
                       path);
    return DT_OK;
}

static dt_status read_json(json_t **out, const char *path, size_t most, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = dt_json_read_foreign(out, path, most, &problem);

    return st == DT_OK ? DT_OK : DT_FAIL(err, DT_ERR_RECIPE, "%s", problem.message);
}

/* --- Hugging Face's */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts the items by name and removes duplicates. */
static int64_t without_twins(const char **items, int64_t count)
{
    int64_t kept = 0;

    if (count > 1)
        qsort(items, (size_t)count, sizeof(*items), by_name);
    for (int64_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(items[kept - 1], items[i]) != 0)
            items[kept++] = items[i];
    return kept;
}

/* Reads the files of the index, all of which must exist. */
static dt_status read_index(dt_weights_files *out, const char *path, dt_arena *arena, dt_error *err)
{
    json_t *index = NULL, *map, *value;
    const char **items, *tensor;
    int64_t count = 0;
    dt_status st = DT_OK;

    DT_TRY(read_json(&index, path, INDEX_MOST, err));
    map = json_object_get(index, "weight_map");
    if (!json_is_object(map) || json_object_size(map) == 0)
        DT_THROW(err, DT_ERR_RECIPE, "'%s' has no 'weight_map'", path);
    items = dt_arena_alloc_array(arena, json_object_size(map) + 1, sizeof(*items));
    json_object_foreach(map, tensor, value) {
        const char *name = json_string_value(value);

        if (name == NULL || name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL)
            DT_THROW(err, DT_ERR_RECIPE, "'%s': '%.80s' is not in a file of its folder", path,
                     tensor);
        items[count++] = dt_arena_strdup(arena, name);
    }
    count = without_twins(items, count);
    if (count > FILES_MOST)
        DT_THROW(err, DT_ERR_RECIPE, "'%s' names more than %d files", path, FILES_MOST);
    for (int64_t i = 0; i < count; i++) {
        items[i] = dt_arena_printf(arena, "%s/%s", out->folder, items[i]);
        if (!dt_file_exists(items[i]))
            DT_THROW(err, DT_ERR_RECIPE,
                     "'%s' names '%s', which is missing: the download is incomplete", path,
                     strrchr(items[i], '/') + 1);
        DT_TRY(check_file(items[i], err));
    }
    out->files = (dt_string_list){items, count};
out:
    json_decref(index);
    return st;
}

static dt_status one_file(dt_weights_files *out, const char *path, dt_arena *arena, dt_error *err)
{
    const char **items;
    dt_status st = DT_OK;

    DT_TRY(check_file(path, err));
    items = dt_arena_alloc_array(arena, 1, sizeof(*items));
    items[0] = path;
    out->files = (dt_string_list){items, 1};
out:
    return st;
}

static dt_status find_tensors(dt_weights_files *out, dt_arena *arena, dt_error *err)
{
    static const struct {
        const char *whole, *index;
    } names[] = {{DT_HUGGINGFACE_MODEL, DT_HUGGINGFACE_INDEX},
                 {DT_TORCH_MODEL, DT_TORCH_INDEX}}; /* in this order: the first has no program */
    dt_status st = DT_OK;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *whole = dt_arena_printf(arena, "%s/%s", out->folder, names[i].whole);
        const char *index = dt_arena_printf(arena, "%s/%s", out->folder, names[i].index);

        if (dt_file_exists(whole))
            return one_file(out, whole, arena, err);
        if (!dt_file_exists(index))
            continue;
        DT_TRY(check_file(index, err));
        return read_index(out, index, arena, err);
    }
    DT_THROW(err, DT_ERR_RECIPE,
             "'%s' has none of " DT_HUGGINGFACE_MODEL ", " DT_HUGGINGFACE_INDEX ", " DT_TORCH_MODEL
             " and " DT_TORCH_INDEX ": the download is incomplete",
             out->folder);
out:
    return st;
}

static dt_status find_huggingface(dt_weights_files *out, const char *file, dt_arena *arena,
                                  dt_error *err)
{
    dt_status st = DT_OK;

    out->kind = DT_WEIGHTS_HUGGINGFACE;
    DT_TRY(check_file(out->description, err));
    DT_TRY(file != NULL ? one_file(out, file, arena, err) : find_tensors(out, arena, err));
out:
    return st;
}

/* --- a checkpoint's */

/* Finds the files with parameter values; those with moments are not needed. */
static dt_status find_checkpoint(dt_weights_files *out, dt_arena *arena, dt_error *err)
{
    json_t *index = NULL, *tensor, *piece;
    const char *marker, **items = NULL, *name;
    int64_t count = 0, room = 0;
    dt_status st = DT_OK;
    size_t i;

    out->kind = DT_WEIGHTS_CHECKPOINT;
    marker = dt_arena_printf(arena, "%s/%s", out->folder, CHECKPOINT_MARKER);
    if (!dt_file_exists(marker))
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' is incomplete: it has no marker '" CHECKPOINT_MARKER
                 "', because its save was interrupted",
                 out->folder);
    DT_TRY(read_json(&index, out->description, INDEX_MOST, err));
    json_object_foreach(json_object_get(index, "tensors"), name, tensor)
        room += (int64_t)json_array_size(json_object_get(tensor, "value"));
    items = dt_arena_alloc_array(arena, (size_t)room + 1, sizeof(*items));
    json_object_foreach(json_object_get(index, "tensors"), name, tensor)
        json_array_foreach(json_object_get(tensor, "value"), i, piece) {
            const char *file = json_string_value(json_object_get(piece, "file"));

            if (file == NULL || strchr(file, '/') != NULL)
                DT_THROW(err, DT_ERR_RECIPE, "'%s' is damaged", out->description);
            items[count++] = dt_arena_printf(arena, "%s/%s", out->folder, file);
        }
    count = without_twins(items, count);
    for (int64_t f = 0; f < count; f++)
        DT_TRY(check_file(items[f], err));
    out->files = (dt_string_list){items, count};
out:
    json_decref(index);
    return st;
}

/* --- */

static dt_status find_in_folder(dt_weights_files *out, const char *folder, dt_arena *arena,
                                dt_error *err)
{
    const char *config, *index;
    dt_status st = DT_OK;

    out->folder = folder;
    config = dt_arena_printf(arena, "%s/%s", folder, DT_HUGGINGFACE_CONFIG);
    index = dt_arena_printf(arena, "%s/%s", folder, CHECKPOINT_INDEX);
    if (dt_file_exists(config)) {
        out->description = config;
        return find_huggingface(out, NULL, arena, err);
    }
    if (dt_file_exists(index)) {
        out->description = index;
        return find_checkpoint(out, arena, err);
    }
    DT_THROW(err, DT_ERR_RECIPE,
             "'%s' has no " DT_HUGGINGFACE_CONFIG
             " of a Hugging Face folder, and is not a dtrun checkpoint",
             folder);
out:
    return st;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), of = strlen(ending);

    return length > of && strcmp(text + length - of, ending) == 0;
}

dt_status dt_weights_find(dt_weights_files *out, const char *from, dt_arena *arena, dt_error *err)
{
    const char *slash = strrchr(from, '/');
    struct stat info;
    dt_status st = DT_OK;

    *out = (dt_weights_files){0};
    if (stat(from, &info) != 0 && (errno == ENOENT || strstr(from, "://") != NULL))
        DT_THROW(
            err, DT_ERR_RECIPE,
            "'%s' does not exist, and dtrun does not download weights: download the model, and "
            "give the path of its folder",
            from);
    if (stat(from, &info) != 0)
        DT_THROW(err, DT_ERR_RECIPE, "cannot read '%s': %s", from, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return find_in_folder(out, from, arena, err);
    if ((!ends_with(from, TENSORS_ENDING) && !ends_with(from, BIN_ENDING)) || slash == NULL)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' is neither a folder nor a " TENSORS_ENDING " or " BIN_ENDING " file", from);
    out->folder = dt_arena_strndup(arena, from, slash > from ? (size_t)(slash - from) : 1);
    if (ends_with(from, BIN_ENDING) && !is_archive(from)) {
        out->kind = DT_WEIGHTS_BIN;
        out->description = from;
        return one_file(out, from, arena, err);
    }
    out->description = dt_arena_printf(arena, "%s/%s", out->folder, DT_HUGGINGFACE_CONFIG);
    DT_TRY(find_huggingface(out, from, arena, err));
out:
    return st;
}

static dt_status describe_bin(json_t **out, const char *path, dt_error *err)
{
    dt_weights_bin bin;
    dt_status st = dt_weights_bin_read(&bin, path, err);

    *out = json_incref(bin.config);
    dt_weights_bin_release(&bin);
    return st;
}

dt_status dt_weights_describe(json_t **out, const dt_weights_files *files, dt_error *err)
{
    if (files->kind == DT_WEIGHTS_BIN)
        return describe_bin(out, files->description, err);
    return read_json(out, files->description,
                     files->kind == DT_WEIGHTS_CHECKPOINT ? INDEX_MOST : CONFIG_MOST, err);
}
