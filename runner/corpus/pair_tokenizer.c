#include "runner/corpus/corpus_int.h"

#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "engine/data/files.h"
#include "engine/data/sides.h"

/* The files that a recipe names, and their contents. */
typedef struct named {
    const char *paths[2]; /* the source's file, and the target's if it has its own; else NULL */
    dt_strbuf texts[2], codes;
    bool has_codes;
} named;

static bool is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_there(const char **out, const char *folder, const char *name, dt_arena *arena)
{
    *out = dt_arena_printf(arena, "%s/%s", folder, name);
    return dt_file_exists(*out);
}

static dt_status find_in_folder(named *out, const char *folder, const dt_recipe *recipe,
                                dt_arena *arena, dt_error *err)
{
    const char *const names[] = {recipe->data.source, recipe->data.target};
    bool both = true;

    if (is_there(&out->paths[0], folder, "tokenizer.json", arena))
        return DT_OK;
    for (int i = 0; i < 2; i++) {
        const char *name = dt_arena_printf(arena, "dict.%s.txt", names[i]);

        both = is_there(&out->paths[i], folder, name, arena) && both;
    }
    if (both)
        return DT_OK;
    out->paths[1] = NULL;
    if (is_there(&out->paths[0], folder, "dict.txt", arena))
        return DT_OK;
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "data.tokenizer: '%s' has neither a dict.%s.txt with a dict.%s.txt, nor a "
                   "dict.txt, nor a tokenizer.json",
                   folder, names[0], names[1]);
}

/* Finds the tokenizer's files. If data.tokenizer is not set, they are in the folder of the data-bin
 * in data.train. */
static dt_status find(named *out, const dt_recipe *recipe, dt_arena *arena, dt_error *err)
{
    const char *first = recipe->data.train.count > 0 ? recipe->data.train.items[0] : "";
    const char *slash = strrchr(first, '/');

    if (dt_tokenizer_is_file(recipe)) {
        out->paths[0] = recipe->data.tokenizer;
        return is_folder(out->paths[0]) ? find_in_folder(out, out->paths[0], recipe, arena, err)
                                        : DT_OK;
    }
    if (recipe->data.tokenizer != NULL && recipe->data.tokenizer[0] != '\0')
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "unsupported data.tokenizer '%s' for sentence pairs (expected a dictionary "
                       "or a tokenizer.json)",
                       recipe->data.tokenizer);
    if (slash != NULL &&
        find_in_folder(out, dt_arena_printf(arena, "%.*s", (int)(slash - first), first), recipe,
                       arena, NULL) == DT_OK)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "sentence pairs need data.tokenizer: a dict.txt, a folder with dict.%s.txt and "
                   "dict.%s.txt, or a tokenizer.json",
                   recipe->data.source, recipe->data.target);
}

static dt_status read_all(named *out, const dt_recipe *recipe, dt_error *err)
{
    dt_status st = DT_OK;

    for (int i = 0; i < 2 && st == DT_OK; i++)
        if (out->paths[i] != NULL)
            st = dt_file_read(&out->texts[i], out->paths[i], DT_BPE_MAX_BYTES, err);
    if (st != DT_OK) {
        dt_error_prefix(err, "data.tokenizer");
        return DT_ERR_RECIPE;
    }
    out->has_codes = recipe->data.codes != NULL && recipe->data.codes[0] != '\0';
    if (out->has_codes)
        st = dt_file_read(&out->codes, recipe->data.codes, DT_BPE_MAX_BYTES, err);
    if (st != DT_OK)
        dt_error_prefix(err, "data.codes");
    return st == DT_OK ? DT_OK : DT_ERR_RECIPE;
}

/* Checks each file separately first, so that messages name the right file. */
static dt_status check(const named *from, const dt_recipe *recipe, dt_error *err)
{
    dt_dictionary dictionary = {.words = {.size = 0}};
    dt_codes codes = {.end_apart = false};
    dt_status st = DT_OK;

    for (int i = 0; i < 2 && st == DT_OK; i++)
        if (from->paths[i] != NULL) {
            st = dt_dictionary_parse(&dictionary, from->texts[i].data, from->texts[i].length,
                                     from->paths[i], err);
            dt_dictionary_release(&dictionary);
        }
    if (st != DT_OK) {
        dt_error_prefix(err, "data.tokenizer");
        return st;
    }
    if (from->has_codes) {
        st = dt_codes_parse(&codes, from->codes.data, from->codes.length, recipe->data.codes, err);
        dt_codes_release(&codes);
    }
    if (st != DT_OK)
        dt_error_prefix(err, "data.codes");
    return st;
}

static bool is_json(const dt_strbuf *text)
{
    return text->length > 0 && text->data[strspn(text->data, " \t\r\n")] == '{';
}

static bool is_whole(const dt_strbuf *text)
{
    json_t *json = NULL;
    bool out = dt_json_parse(&json, text->data, text->length, "", NULL) == DT_OK &&
               json_is_object(json_object_get(json, "source"));

    json_decref(json);
    return out;
}

static dt_status compose(dt_strbuf *out, const named *from, const dt_recipe *recipe, dt_error *err)
{
    const dt_strbuf *codes = from->has_codes ? &from->codes : NULL;
    json_t *file = json_object();
    dt_status st = DT_OK;

    json_object_set_new(file, "version", json_integer(1));
    if (is_json(&from->texts[0])) {
        if (is_whole(&from->texts[0])) {
            dt_strbuf_add(out, from->texts[0].data, from->texts[0].length);
            goto out;
        }
        if (codes != NULL)
            DT_THROW(err, DT_ERR_RECIPE,
                     "data.codes requires a dictionary, but data.tokenizer is '%s', which splits "
                     "words itself: leave data.codes out",
                     from->paths[0]);
        json_object_set_new(file, "source", dt_side_of_tokenizer(&from->texts[0]));
    } else {
        DT_TRY(check(from, recipe, err));
        json_object_set_new(file, "source", dt_side_of_dictionary(&from->texts[0], codes));
        if (from->paths[1] != NULL)
            json_object_set_new(file, "target", dt_side_of_dictionary(&from->texts[1], codes));
    }
    dt_json_write(out, file);
out:
    json_decref(file);
    return st;
}

dt_status dt_pair_tokenizer_make(dt_tokenizer **out, const dt_recipe *recipe, dt_arena *arena,
                                 dt_error *err)
{
    named from = {.has_codes = false};
    dt_status st = DT_OK;
    dt_strbuf file;

    *out = NULL;
    dt_strbuf_init(&file);
    dt_strbuf_init(&from.codes);
    for (int i = 0; i < 2; i++)
        dt_strbuf_init(&from.texts[i]);
    DT_TRY(find(&from, recipe, arena, err));
    DT_TRY(read_all(&from, recipe, err));
    DT_TRY(compose(&file, &from, recipe, err));
    st = dt_tokenizer_pairs_take(out, file.data, file.length, from.paths[0], err);
    if (st != DT_OK)
        dt_error_prefix(err, "data.tokenizer");
out:
    if (st != DT_OK && st != DT_ERR_NOMEM) {
        st = DT_ERR_RECIPE;
        if (err != NULL)
            err->code = st;
    }
    dt_strbuf_release(&file);
    dt_strbuf_release(&from.codes);
    for (int i = 0; i < 2; i++)
        dt_strbuf_release(&from.texts[i]);
    return st;
}
