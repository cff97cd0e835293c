#include "runner/init/look.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MOST = 1000 };

typedef struct looker {
    dt_look *out;
    dt_arena *arena;
    const char **paths; /* FILES_MOST of each */
    int64_t count;
} looker;

const char *dt_look_kind_name(dt_look_kind kind)
{
    static const char *const names[] = {
        [DT_LOOK_TEXT] = "text",
        [DT_LOOK_JSONL] = "JSON lines",
        [DT_LOOK_RECORDS] = "CSV with texts",
        [DT_LOOK_ROWS] = "rows of numbers",
        [DT_LOOK_IDS] = "token ids",
    };
    return names[kind];
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* --- which files */

static bool is_data(const char *name)
{
    static const char *const endings[] = {".txt",  ".text", ".md",  ".jsonl",
                                          ".json", ".csv",  ".npy", ".bin"};
    static const char *const others[] = {"README", "LICENSE", "tokenizer", "config", "CHANGES"};
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strncmp(name, others[i], strlen(others[i])) == 0)
            return false;
    for (size_t i = 0; dot != NULL && dot != name && i < sizeof(endings) / sizeof(endings[0]); i++)
        if (strcmp(dot, endings[i]) == 0)
            return true;
    return false;
}

static dt_status add(looker *l, const char *path, dt_error *err)
{
    for (int64_t i = 0; i < l->count; i++)
        if (strcmp(l->paths[i], path) == 0)
            return DT_FAIL(err, DT_ERR_USAGE, "'%s' is given twice", path);
    for (const char *at = path; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "'%s' has a control character in its name, which recipes do not support",
                           path);
    if (l->count == FILES_MOST)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "more than %d files; use a pattern in the recipe instead, for example "
                       "train: 'data/*.txt'",
                       FILES_MOST);
    l->paths[l->count++] = dt_arena_strdup(l->arena, path);
    return DT_OK;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static dt_status add_folder(looker *l, const char *folder, dt_error *err)
{
    size_t length = strlen(folder);
    bool here = strcmp(folder, ".") == 0;
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, by_bytes);
    int64_t before = l->count;
    dt_status st = DT_OK;

    if (count < 0)
        return DT_FAIL(err, DT_ERR_USAGE, "cannot read the folder '%s': %s", folder,
                       strerror(errno));
    while (length > 1 && folder[length - 1] == '/')
        length--;
    for (int i = 0; i < count && st == DT_OK; i++) {
        const char *name = entries[i]->d_name;
        const char *path =
            here ? name : dt_arena_printf(l->arena, "%.*s/%s", (int)length, folder, name);
        struct stat info;

        if (path == NULL || stat(path, &info) != 0 || !S_ISREG(info.st_mode))
            continue;
        if (strcmp(name, "tokenizer.json") == 0)
            l->out->tokenizer = path;
        else if (is_data(name))
            st = add(l, path, err);
    }
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    if (st == DT_OK && l->count == before)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "'%s' has no data files (expected .txt, .md, .jsonl, .json, .csv, .npy or "
                       ".bin)",
                       folder);
    return st;
}

static dt_status add_path(looker *l, const char *path, dt_error *err)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return DT_FAIL(err, DT_ERR_USAGE, "cannot read '%s': %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return add_folder(l, path, err);
    if (!S_ISREG(info.st_mode))
        return DT_FAIL(err, DT_ERR_USAGE, "'%s' is neither a file nor a folder", path);
    return add(l, path, err);
}

/* --- their kinds */

static bool is_validation(const char *path)
{
    static const char *const words[] = {"val", "valid", "validation", "dev", "eval"};
    static const char ends[] = "-_. ";
    const char *name = name_of(path);

    for (const char *at = name; *at != '\0'; at += strcspn(at, ends), at += strspn(at, ends))
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
            if (strcspn(at, ends) == strlen(words[i]) &&
                strncmp(at, words[i], strlen(words[i])) == 0)
                return true;
    return false;
}

static dt_status refuse_mixed(const dt_sample *first, const char *first_path,
                              const dt_sample *other, const char *other_path, dt_error *err)
{
    if (first->kind != other->kind)
        return DT_FAIL(
            err, DT_ERR_USAGE,
            "'%s' is %s, but '%s' is %s: a recipe needs data of one kind; name the files to use",
            first_path, dt_look_kind_name(first->kind), other_path, dt_look_kind_name(other->kind));
    if (first->columns != other->columns)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "'%s' has %lld columns, but '%s' has %lld: all rows need the same columns",
                       first_path, (long long)first->columns, other_path,
                       (long long)other->columns);
    return DT_FAIL(
        err, DT_ERR_USAGE,
        "'%s' has its text in '%s', but '%s' has it in '%s': a recipe has one text field",
        first_path, first->field, other_path, other->field);
}

static bool is_alike(const dt_sample *a, const dt_sample *b)
{
    return a->kind == b->kind && a->columns == b->columns &&
           (a->field == NULL || strcmp(a->field, b->field) == 0);
}

static dt_status look(looker *l, dt_error *err)
{
    dt_sample first = {0}, sample;
    dt_look *out = l->out;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < l->count; i++) {
        bool validates = l->count > 1 && is_validation(l->paths[i]);
        dt_string_list *list = validates ? &out->validation : &out->train;

        DT_TRY(dt_sample_read(&sample, l->paths[i], l->arena, err));
        if (i == 0)
            first = sample;
        else if (!is_alike(&first, &sample))
            DT_TRY(refuse_mixed(&first, l->paths[0], &sample, l->paths[i], err));
        list->items[list->count++] = l->paths[i];
        out->train_bytes += validates ? 0 : sample.bytes;
        if (first.classes > 0)
            first.classes = sample.classes == 0              ? 0
                            : sample.classes > first.classes ? sample.classes
                                                             : first.classes;
    }
    if (out->train.count == 0)
        DT_THROW(err, DT_ERR_USAGE, "no training data: the name of '%s' marks validation data",
                 l->paths[0]);
    out->kind = first.kind;
    out->field = first.field;
    out->columns = first.columns;
    out->classes = first.classes;
out:
    return st;
}

dt_status dt_look_at(dt_look *out, char *const *paths, int count, dt_arena *arena, dt_error *err)
{
    looker l = {.out = out, .arena = arena};
    dt_status st = DT_OK;

    *out = (dt_look){0};
    l.paths = dt_arena_alloc_array(arena, FILES_MOST, sizeof(*l.paths));
    out->train.items = dt_arena_alloc_array(arena, FILES_MOST, sizeof(*l.paths));
    out->validation.items = dt_arena_alloc_array(arena, FILES_MOST, sizeof(*l.paths));
    for (int i = 0; i < count; i++)
        DT_TRY(add_path(&l, paths[i], err));
    if (count == 0)
        DT_TRY(add_folder(&l, ".", err));
    DT_TRY(look(&l, err));
out:
    return st;
}
