/* prepare: tokenizes the data of a recipe (prepared.h). */
#include <string.h>

#include "base/dirs.h"
#include "base/file.h"
#include "runner/corpus/pairs_int.h"
#include "runner/corpus/prepared.h"
#include "runner/corpus/work.h"
#include "runner/term/format.h"

#include "base/banned.h"

void dt_prepared_describe(dt_strbuf *out, const dt_prepared *made)
{
    char tokens[DT_FORMAT_SIZE], bytes[DT_FORMAT_SIZE];
    const dt_prepared_facts *facts = &made->facts;

    dt_strbuf_add_fmt(out, "%lld %s of %s, %s tokens of %lld (%.2f bytes a token)",
                      (long long)facts->documents, made->pairs ? "sentence pairs" : "documents",
                      dt_format_bytes(bytes, sizeof(bytes), (double)facts->bytes),
                      dt_format_count(tokens, sizeof(tokens), (double)facts->tokens),
                      (long long)made->vocab, (double)facts->bytes / (double)facts->tokens);
    dt_strbuf_add_str(out, made->texts != NULL ? made->texts : "");
    if (facts->unknown > 0)
        dt_strbuf_add_fmt(out, ", %.2f %% of them unknown",
                          100.0 * (double)facts->unknown / (double)facts->tokens);
}

/* Copies the tokenizer's file to the cache under its digest, so that later changes of its folder do
 * not affect the run. */
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
    *out = dt_arena_printf(arena, "%s/%s", folder, name);
    if (dt_file_exists(*out))
        goto out;
    DT_TRY(dt_file_make_dirs(folder, 0700, err));
    DT_TRY(dt_file_write_atomic(*out, bytes, length, 0600, err));
out:
    json_decref(json);
    return st;
}

/* Returns true if the recipe's data are text to tokenize. If data.tokens contradicts this, the
 * dataset reports the error later. */
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

static bool has_pairs(const dt_recipe *recipe)
{
    return recipe->data.tokens == DT_TOKENS_PAIRS ||
           (recipe->data.source != NULL && recipe->data.source[0] != '\0');
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

    if (has_pairs(recipe)) {
        DT_TRY(dt_pair_tokenizer_make(&tokenizer, recipe, arena, err));
        DT_TRY(keep_tokenizer(&recipe->data.tokenizer, tokenizer, arena, err));
        DT_TRY(dt_prepare_pairs(recipe, tokenizer, make_it, tell, made, arena, err));
        goto out;
    }
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
