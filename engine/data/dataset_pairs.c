/* dataset_pairs: opens sentence pairs, which are read in place in the mapping; only their order is
 * in memory. */
#include <stdio.h>

#include "engine/data/dataset_int.h"
#include "engine/data/tokenizer_int.h"

static dt_status open_file(dt_sentences *out, const dt_data_files *files, const char *field,
                           dt_error *err)
{
    if (files->count > 1)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "%s names %lld files of sentence pairs (expected one); prepare all text "
                       "into one file with 'dtrun data prepare'",
                       field, (long long)files->count);
    return files->count == 0 ? DT_OK : dt_sentences_open(out, files->items[0].path, err);
}

/* Report pairs over the length limit, and the length of the first. */
static dt_status check_long(const dt_groups *groups, const char *field, const dt_recipe *recipe,
                            int64_t count, dt_error *err)
{
    const dt_sentences *sentences = groups->sentences;
    int64_t first = groups->first_dropped;
    int64_t longest = recipe->batch.tokens < recipe->batch.max_tokens ? recipe->batch.tokens
                                                                      : recipe->batch.max_tokens;
    const char *limit = longest < recipe->batch.tokens ? "batch.max_tokens" : "batch.tokens";
    char words[256];

    if (groups->dropped == 0)
        return DT_OK;
    snprintf(
        words, sizeof(words),
        "%s: %lld of %lld sentence pairs are longer than %s %lld; the first is pair %lld, with "
        "%lld source and %lld target tokens",
        field, (long long)groups->dropped, (long long)count, limit, (long long)longest,
        (long long)first + 1, (long long)dt_sentence_length(sentences, DT_SOURCE, first),
        (long long)dt_sentence_length(sentences, DT_TARGET, first));
    if (recipe->data.too_long == DT_TOO_LONG_REFUSE)
        return DT_FAIL(err, DT_ERR_RECIPE, "%s: raise it, or set data.too_long: drop", words);
    return groups->kept > 0 ? DT_OK : DT_FAIL(err, DT_ERR_RECIPE, "%s: none is left", words);
}

static dt_status make_groups(dt_groups *out, const dt_sentences *sentences, int64_t first,
                             int64_t count, const char *field, const dt_recipe *recipe,
                             dt_error *err)
{
    dt_group_limits limits = {recipe->batch.max_tokens, recipe->batch.tokens};
    dt_status st = DT_OK;

    DT_TRY(dt_groups_make(out, sentences, first, count, &limits, (uint64_t)recipe->seed, err));
    DT_TRY(check_long(out, field, recipe, count, err));
out:
    return st;
}

static dt_status open_tokenizer(dt_dataset *dataset, const dt_recipe *recipe,
                                const dt_tokenizer *fixed, dt_error *err)
{
    const dt_sides *sides;
    dt_status st = DT_OK;

    if (!dt_tokenizer_is_file(recipe))
        DT_THROW(err, DT_ERR_RECIPE,
                 "data.tokenizer is not set; sentence pairs need the tokenizer that they were "
                 "prepared with");
    st = dt_tokenizer_pairs_read(&dataset->tokenizer, recipe->data.tokenizer, err);
    if (st != DT_OK)
        goto out;
    if (fixed != NULL)
        DT_TRY(dt_tokenizer_bpe_same(fixed, dataset->tokenizer, err));
    DT_TRY(dt_dataset_check_vocab(recipe, dataset->tokenizer->vocab, err));
    sides = dataset->tokenizer->sides;
    dataset->pair_ids = (dt_pair_ids){.pad = sides->target->pad,
                                      .end = sides->target->end,
                                      .source_limit = sides->source->vocab,
                                      .target_limit = sides->target->vocab};
out:
    return st;
}

dt_status dt_dataset_open_pairs(dt_dataset *dataset, const dt_data_files *train,
                                const dt_data_files *validation, const dt_recipe *recipe,
                                const dt_tokenizer *fixed, dt_error *err)
{
    const dt_sentences *valid = &dataset->sentences;
    int64_t kept, first = 0, count;
    dt_status st = DT_OK;

    dataset->has_pairs = true;
    if (recipe->batch.max_tokens <= 0)
        DT_THROW(err, DT_ERR_RECIPE, "sentence pairs need batch.max_tokens (for example 4096)");
    DT_TRY(open_tokenizer(dataset, recipe, fixed, err));
    DT_TRY(open_file(&dataset->sentences, train, "data.train", err));
    DT_TRY(open_file(&dataset->validation_sentences, validation, "data.validation", err));
    kept = dt_dataset_split_rows(recipe, dataset->sentences.count, validation->count > 0);
    if (kept == 0)
        DT_THROW(err, DT_ERR_RECIPE, "data.train has no sentence pair%s",
                 dataset->sentences.count > 0 ? " before data.split" : "");
    if (validation->count > 0) {
        valid = &dataset->validation_sentences;
        count = valid->count;
    } else {
        first = kept;
        count = valid->count - kept;
    }
    DT_TRY(make_groups(&dataset->groups, &dataset->sentences, 0, kept, "data.train", recipe, err));
    DT_TRY(make_groups(&dataset->valid_groups, valid, first, count,
                       validation->count > 0 ? "data.validation" : "data.train, after data.split",
                       recipe, err));
    dataset->train_count = dataset->groups.count;
    dataset->valid_count = dataset->valid_groups.count;
out:
    return st;
}

/* --- checks before a run */

bool dt_dataset_pairs_are_text(const dt_recipe *recipe)
{
    return recipe->data.source != NULL && recipe->data.source[0] != '\0' &&
           recipe->data.tokens != DT_TOKENS_PAIRS;
}

dt_status dt_dataset_check_pairs_text(dt_dataset_facts *out, const dt_recipe *recipe, dt_error *err)
{
    dt_tokenizer *tokenizer = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_tokenizer_pairs_read(&tokenizer, recipe->data.tokenizer, err));
    out->vocab = dt_tokenizer_vocab(tokenizer);
    DT_TRY(dt_dataset_check_vocab(recipe, out->vocab, err));
out:
    dt_tokenizer_free(tokenizer);
    return st;
}
