/* A part is whole where its facts are: its tokens are written first. The folder is whole where
 * facts.json is. */
#define _GNU_SOURCE
#include "runner/corpus/prepared.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "runner/corpus/work.h"
#include "runner/node_setup/transfer/content.h"

#include "base/banned.h"

#define KEY_VERSION  "1" /* of what is in a folder, and of how files are cut */
#define FACTS_MAX    ((size_t)1 << 16)
#define POLL_SECONDS 0.2

/* --- the key */

static dt_status make_key(char *hex, const dt_data_files *files, const dt_prepare_options *options,
                          const char *cache, dt_error *err)
{
    json_t *json = dt_tokenizer_to_json(options->tokenizer);
    dt_status st = DT_OK;
    char digest[DT_DIGEST_SIZE];
    dt_strbuf all;

    dt_strbuf_init(&all);
    dt_strbuf_add_fmt(&all, KEY_VERSION " %s %s\n",
                      json_string_value(json_object_get(json, "xxh3_128")), options->field);
    for (int64_t i = 0; i < files->count; i++) {
        DT_TRY(dt_content_digest(digest, files->items[i].path, cache, NULL, NULL, NULL, err));
        dt_strbuf_add_fmt(&all, "%d %lld %s\n", (int)dt_corpus_kind_of(files->items[i].path),
                          (long long)files->items[i].bytes, digest);
    }
    dt_digest_of(hex, all.data, all.length);
out:
    json_decref(json);
    dt_strbuf_release(&all);
    return st;
}

/* --- what is there */

static dt_status read_facts(dt_prepared *out, const char *folder, dt_arena *arena, dt_error *err)
{
    const char *path = dt_arena_printf(arena, "%s/" DT_CORPUS_FACTS, folder), *name;
    json_t *facts = NULL, *parts, *part;
    const char **items;
    dt_status st = DT_OK;
    size_t i;

    if (path == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    DT_TRY(dt_json_read(&facts, path, DT_CORPUS_FACTS_MAX, err));
    DT_TRY(dt_json_get_int(&out->facts.documents, facts, "documents", path, err));
    DT_TRY(dt_json_get_int(&out->facts.tokens, facts, "tokens", path, err));
    DT_TRY(dt_json_get_int(&out->facts.bytes, facts, "bytes", path, err));
    DT_TRY(dt_json_get_int(&out->facts.broken, facts, "broken", path, err));
    DT_TRY(dt_json_get_array(&parts, facts, "parts", path, err));
    items = dt_arena_alloc_array(arena, json_array_size(parts) + 1, sizeof(*items));
    if (items == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    json_array_foreach(parts, i, part)
    {
        name = json_string_value(part);
        if (name == NULL || strchr(name, '/') != NULL)
            DT_THROW(err, DT_ERR_CORRUPT, "'%s': 'parts' is malformed; remove the folder", path);
        items[i] = dt_arena_printf(arena, "%s/%s", folder, name);
        if (items[i] == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "no memory");
    }
    out->files.items = items;
    out->files.count = out->facts.parts = (int64_t)json_array_size(parts);
out:
    json_decref(facts);
    return st;
}

static bool is_whole(const char *folder)
{
    dt_strbuf path;
    bool out;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/" DT_CORPUS_FACTS, folder);
    out = dt_file_exists(path.data);
    dt_strbuf_release(&path);
    return out;
}

/* --- made */

static dt_status wait_for_lock(int *fd, const char *path, const dt_prepare_options *options,
                               dt_error *err)
{
    dt_error busy = DT_ERROR_INIT;
    bool told = false;
    dt_status st;

    while ((st = dt_file_lock(fd, path, &busy)) == DT_ERR_BUSY) {
        if (!told && options->tell != NULL)
            options->tell("another dtrun makes tokens of the same data: waiting for it");
        told = true;
        dt_error_clear(&busy);
        dt_clock_sleep_seconds(POLL_SECONDS);
    }
    return st == DT_OK ? st : DT_FAIL(err, st, "%s", busy.message);
}

static dt_status make(const char *folder, const dt_data_files *files,
                      const dt_prepare_options *options, dt_arena *arena, dt_error *err)
{
    const char *lock = dt_arena_printf(arena, "%s.lock", folder);
    dt_status st = DT_OK;
    int fd = -1;

    if (lock == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    DT_TRY(dt_file_make_dirs(folder, 0700, err));
    DT_TRY(wait_for_lock(&fd, lock, options, err));
    if (!is_whole(folder))
        DT_TRY(dt_corpus_work(folder, files, options, err));
out:
    if (fd >= 0)
        close(fd);
    return st;
}

dt_status dt_prepared_open(dt_prepared *out, const dt_string_list *patterns, const char *name,
                           const dt_prepare_options *options, bool make_it, dt_arena *arena,
                           dt_error *err)
{
    dt_status st = DT_OK;
    const char *cache, *folder;
    char key[DT_DIGEST_SIZE];
    dt_data_files files;

    *out = (dt_prepared){.vocab = dt_tokenizer_vocab(options->tokenizer)};
    if (patterns->count == 0)
        return DT_OK;
    DT_TRY(dt_data_files_find(&files, patterns, DT_TOKENS_BYTE, name, arena, err));
    DT_TRY(dt_dir_make(&cache, DT_DIR_CACHE, arena, err));
    DT_TRY(make_key(key, &files, options, cache, err));
    folder = dt_arena_printf(arena, "%s/tokens/%s", cache, key);
    if (folder == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    out->found = is_whole(folder);
    if (!out->found && !make_it)
        goto out;
    if (!out->found)
        DT_TRY(make(folder, &files, options, arena, err));
    DT_TRY(read_facts(out, folder, arena, err));
out:
    return st;
}

/* --- of a recipe */

/* Its file by content, so that nothing that happens to the folder it came from matters to a run. */
static dt_status keep_tokenizer(const char **out, const dt_tokenizer *tokenizer, dt_arena *arena,
                                dt_error *err)
{
    json_t *json = dt_tokenizer_to_json(tokenizer);
    const char *cache, *folder, *name, *bytes;
    dt_status st = DT_OK;
    size_t length;

    (void)dt_tokenizer_get_file(tokenizer, &name, &bytes, &length);
    DT_TRY(dt_dir_make(&cache, DT_DIR_CACHE, arena, err));
    folder = dt_arena_printf(arena, "%s/tokens/tokenizers/%s", cache,
                             json_string_value(json_object_get(json, "xxh3_128")));
    *out = folder != NULL ? dt_arena_printf(arena, "%s/%s", folder, name) : NULL;
    if (*out == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    if (dt_file_exists(*out))
        goto out;
    DT_TRY(dt_file_make_dirs(folder, 0700, err));
    DT_TRY(dt_file_write_atomic(*out, bytes, length, 0600, err));
out:
    json_decref(json);
    return st;
}

/* Where data.tokens says something else the dataset says why that cannot be. */
static dt_status is_text(bool *out, const dt_recipe *recipe, dt_arena *arena, dt_error *err)
{
    dt_data_files files;
    dt_status st = DT_OK;

    *out = false;
    DT_TRY(dt_data_files_find(&files, &recipe->data.train, dt_tokens_kind_of(recipe), "data.train",
                              arena, err));
    *out = recipe->data.tokens == DT_TOKENS_AUTO && files.count > 0 &&
           !dt_tokens_kind_is_ids(files.items[0].kind);
out:
    return st;
}

dt_status dt_prepare_recipe(dt_recipe *recipe, bool make_it, void (*tell)(const char *text),
                            dt_prepared *train, dt_prepared *validation, dt_arena *arena,
                            dt_error *err)
{
    dt_prepare_options options = {.field = recipe->data.field, .tell = tell};
    dt_tokenizer *tokenizer = NULL;
    dt_prepared made[2] = {{.found = false}, {.found = false}};
    dt_status st = DT_OK;
    bool text;

    if (!dt_tokenizer_is_file(recipe))
        goto out;
    DT_TRY(dt_tokenizer_read(&tokenizer, recipe->data.tokenizer, err));
    options.tokenizer = tokenizer;
    DT_TRY(keep_tokenizer(&recipe->data.tokenizer, tokenizer, arena, err));
    DT_TRY(is_text(&text, recipe, arena, err));
    if (!text)
        goto out;
    DT_TRY(dt_prepared_open(&made[0], &recipe->data.train, "data.train", &options, make_it, arena,
                            err));
    DT_TRY(dt_prepared_open(&made[1], &recipe->data.validation, "data.validation", &options,
                            make_it, arena, err));
    if (made[0].files.count > 0 &&
        (recipe->data.validation.count == 0 || made[1].files.count > 0)) {
        recipe->data.train = made[0].files;
        recipe->data.validation = made[1].files;
        recipe->data.tokens = DT_TOKENS_LLMC;
    }
out:
    dt_tokenizer_free(tokenizer);
    if (train != NULL)
        *train = made[0];
    if (validation != NULL)
        *validation = made[1];
    return st;
}
