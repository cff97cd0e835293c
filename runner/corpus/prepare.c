/* prepare: tokenizes the data of a recipe (corpus.h). */
#include <string.h>

#include "base/dirs.h"
#include "base/file.h"
#include "recipes/fields/values.h"
#include "runner/corpus/corpus.h"
#include "runner/corpus/corpus_int.h"
#include "runner/term/term.h"

void dt_prepared_describe(dt_strbuf *out, const dt_prepared *made)
{
    char tokens[DT_FORMAT_SIZE], bytes[DT_FORMAT_SIZE];
    const dt_prepared_facts *facts = &made->facts;

    dt_strbuf_add_fmt(out, "%lld %s of %s, %s tokens of %lld (%.2f bytes a token)",
                      (long long)facts->documents,
                      made->pairs   ? "sentence pairs"
                      : made->chats ? "conversations"
                                    : "documents",
                      dt_format_bytes(bytes, sizeof(bytes), (double)facts->bytes),
                      dt_format_count(tokens, sizeof(tokens), (double)facts->tokens),
                      (long long)made->vocab, (double)facts->bytes / (double)facts->tokens);
    dt_strbuf_add_str(out, made->texts != NULL ? made->texts : "");
    if (made->chats)
        dt_strbuf_add_fmt(out, ", %.1f %% of them trained",
                          100.0 * (double)facts->chats.trained / (double)facts->tokens);
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

/* Stores the token that ends documents in the recipe, since a node gets the tokenizer's file alone, without the other
 * files of its folder. */
static dt_status take_end_of_text(dt_recipe *recipe, const dt_tokenizer *tokenizer, bool text,
                                  dt_error *err)
{
    int32_t end = dt_tokenizer_end_of_text(tokenizer);

    if (text && recipe->data.end_of_text >= 0 && recipe->data.end_of_text != end)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "data.end_of_text is %lld, but '%s' has no token with this id",
                       (long long)recipe->data.end_of_text, recipe->data.tokenizer);
    if (recipe->data.end_of_text < 0)
        recipe->data.end_of_text = end;
    return DT_OK;
}

/* Returns whether generation ends at the token that training puts after each document, as far as known. */
static bool waits_for_end(const dt_recipe *recipe)
{
    const dt_string_list *ids = &recipe->model.end_ids;
    double id;

    for (int64_t i = 0; i < ids->count; i++)
        if (dt_text_number(&id, ids->items[i]) && (int64_t)id == recipe->data.end_of_text)
            return true;
    return ids->count == 0 || recipe->data.end_of_text < 0;
}

/* Lists the settings of the tokenizer's folder that were not applied, and an end of documents that differs from the
 * ends of generation. */
static const char *describe_warnings(const dt_recipe *recipe, const dt_tokenizer *tokenizer,
                                     dt_arena *arena)
{
    const char *warnings = dt_bpe_warnings(dt_tokenizer_bpe(tokenizer)), *described;
    dt_strbuf text;

    if (waits_for_end(recipe))
        return dt_arena_strdup(arena, warnings);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "%s%sdocuments end with '", warnings, warnings[0] != '\0' ? "\n" : "");
    dt_tokenizer_decode(&text, tokenizer, (int32_t)recipe->data.end_of_text);
    dt_strbuf_add_fmt(&text, "' (%lld), but generated texts end only at",
                      (long long)recipe->data.end_of_text);
    for (int64_t i = 0; i < recipe->model.end_ids.count; i++)
        dt_strbuf_add_fmt(&text, "%s %s", i > 0 ? "," : "", recipe->model.end_ids.items[i]);
    dt_strbuf_add_str(&text, " ('model.end_ids'): set one of 'data.end_of_text' and "
                             "'model.end_ids' so that the model learns to end");
    described = dt_arena_strdup(arena, text.data);
    dt_strbuf_release(&text);
    return described;
}

static bool knows_tokens(const dt_prepared *made)
{
    return made->files.count > 0 || made->counted;
}

typedef struct text_lists {
    const dt_prepare_options *options;
    const dt_prepared *validation;
    dt_arena *arena;
    bool make_it;
} text_lists;

/* Prepares the training files of a recipe, or of one part, and checks that they are enough. */
static dt_status open_text(dt_prepared *out, const dt_recipe *own, const char *field, void *context,
                           dt_error *err)
{
    const text_lists *lists = context;
    bool has_validation = own->data.validation.count > 0;
    int64_t left;
    dt_status st = DT_OK;

    DT_TRY(dt_prepared_open(out, &own->data.train, field, lists->options, lists->make_it,
                            lists->arena, err));
    if (!knows_tokens(out) || (has_validation && !knows_tokens(lists->validation)))
        goto out;
    st = dt_dataset_split(&left, own, out->facts.tokens,
                          has_validation ? lists->validation->facts.tokens : -1, err);
    if (st != DT_OK && strcmp(field, "data.train") != 0)
        dt_error_prefix(err, "%s", field);
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
    dt_map_list parts;
    text_lists lists;
    bool text;

    if (has_pairs(recipe)) {
        DT_TRY(dt_pair_tokenizer_make(&tokenizer, recipe, arena, err));
        DT_TRY(keep_tokenizer(&recipe->data.tokenizer, tokenizer, arena, err));
        DT_TRY(dt_prepare_pairs(recipe, tokenizer, make_it, tell, made, arena, err));
        goto out;
    }
    if (!dt_tokenizer_is_file(recipe))
        goto out;
    DT_TRY(dt_tokenizer_read(&tokenizer, recipe, err));
    if (recipe->data.format == DT_DATA_CHAT) {
        DT_TRY(dt_prepare_chats(recipe, tokenizer, make_it, tell, made, arena, err));
        DT_TRY(keep_tokenizer(&recipe->data.tokenizer, tokenizer, arena, err));
        DT_TRY(take_end_of_text(recipe, tokenizer, true, err));
        goto out;
    }
    options.tokenizer = tokenizer;
    DT_TRY(keep_tokenizer(&recipe->data.tokenizer, tokenizer, arena, err));
    DT_TRY(is_text(&text, recipe, arena, err));
    DT_TRY(take_end_of_text(recipe, tokenizer, text, err));
    if (!text)
        goto out;
    lists = (text_lists){&options, &made[1], arena, make_it};
    DT_TRY(dt_prepared_open(&made[1], &recipe->data.validation, "data.validation", &options,
                            make_it, arena, err));
    DT_TRY(dt_prepare_parts(&made[0], &parts, recipe, open_text, &lists, arena, err));
    dt_prepared_take(recipe, made, &parts, DT_TOKENS_LLMC);
    made[0].warnings = describe_warnings(recipe, tokenizer, arena);
out:
    dt_tokenizer_free(tokenizer);
    if (train != NULL)
        *train = made[0];
    if (validation != NULL)
        *validation = made[1];
    return st;
}
