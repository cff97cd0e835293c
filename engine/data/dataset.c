/* dataset: opens datasets of rows, of sentence pairs, and, with dataset_tokens.c, of text and token ids. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/data/data_int.h"
#include "engine/data/stream.h"
#include "recipes/architecture/architecture.h"

/* dataset_rows: opens rows, which are read into memory; each row is a sample. */

static dt_status refuse_empty(const char *field, const dt_data_files *files, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "%s ('%s') has no row%s: give more rows, or another data.split", field,
                   files->items[0].path, files->count > 1 ? " in any of its files" : "");
}

int64_t dt_dataset_split_rows(const dt_recipe *recipe, int64_t count, bool has_validation)
{
    return has_validation ? count : (int64_t)((double)count * (1.0 - recipe->data.split));
}

/* Open a dataset of rows, except finding its files. */
static dt_status dataset_open_rows(dt_dataset *dataset, const dt_data_files *train,
                                   const dt_data_files *validation, const dt_recipe *recipe,
                                   dt_error *err)
{
    int64_t count;
    dt_status st = DT_OK;

    dataset->has_rows = true;
    dt_rows_init(&dataset->rows, recipe);
    dt_rows_init(&dataset->validation_rows, recipe);
    DT_TRY(dt_tokenizer_new_rows(&dataset->tokenizer, err));
    DT_TRY(dt_rows_read(&dataset->rows, train, err));
    DT_TRY(dt_rows_read(&dataset->validation_rows, validation, err));
    count = dataset->rows.count;
    dataset->train_count = dt_dataset_split_rows(recipe, count, validation->count > 0);
    if (validation->count > 0) {
        dataset->valid_rows = &dataset->validation_rows;
        dataset->valid_count = dataset->validation_rows.count;
        if (dataset->valid_count == 0)
            return refuse_empty("data.validation", validation, err);
    } else {
        dataset->valid_rows = &dataset->rows;
        dataset->valid_start = dataset->train_count;
        dataset->valid_count = count - dataset->train_count;
    }
    if (dataset->train_count == 0)
        return refuse_empty("data.train", train, err);
out:
    return st;
}

/* dataset_pairs: opens sentence pairs, which are read in place in the mapping; only their order is
 * in memory. */

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

/* Open a dataset of sentence pairs, except finding its files. */
static dt_status dataset_open_pairs(dt_dataset *dataset, const dt_data_files *train,
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

/* dataset_chats: opens conversations, which are read in place in the mapping; only their places in rows are in
 * memory. */

static dt_status open_chat_tokenizer(dt_dataset *dataset, const dt_recipe *recipe,
                                     const dt_tokenizer *fixed, dt_error *err)
{
    dt_status st = DT_OK;

    if (!dt_tokenizer_is_file(recipe))
        DT_THROW(err, DT_ERR_RECIPE,
                 "data.tokenizer is not set; conversations need the tokenizer that they were "
                 "prepared with");
    DT_TRY(dt_tokenizer_read(&dataset->tokenizer, recipe, err));
    if (fixed != NULL)
        DT_TRY(dt_tokenizer_bpe_same(fixed, dataset->tokenizer, err));
    DT_TRY(dt_dataset_check_vocab(recipe, dataset->tokenizer->vocab, err));
    dataset->limit = dataset->tokenizer->vocab;
out:
    return st;
}

/* Open a dataset of conversations, except finding its files. */
static dt_status dataset_open_chats(dt_dataset *dataset, const dt_data_files *train,
                                    const dt_data_files *validation, const dt_recipe *recipe,
                                    const dt_tokenizer *fixed, dt_error *err)
{
    dt_chat_limits limits = dt_chat_limits_of(recipe);
    const dt_chats *valid = &dataset->chats;
    int64_t kept, first = 0, count;
    dt_status st = DT_OK;

    dataset->has_chats = dataset->packed = true;
    DT_TRY(open_chat_tokenizer(dataset, recipe, fixed, err));
    DT_TRY(dt_chats_open(&dataset->chats, train, err));
    DT_TRY(dt_chats_open(&dataset->validation_chats, validation, err));
    DT_TRY(dt_chats_check(&dataset->chats, dataset->limit, err));
    DT_TRY(dt_chats_check(&dataset->validation_chats, dataset->limit, err));
    DT_TRY(dt_chats_split(&kept, recipe, dataset->chats.count,
                          validation->count > 0 ? dataset->validation_chats.count : -1, err));
    if (validation->count > 0) {
        valid = &dataset->validation_chats;
        count = valid->count;
    } else {
        first = kept;
        count = valid->count - kept;
    }
    if (recipe->data.mixture.count > 0)
        DT_TRY(dt_dataset_place_parts(dataset, train, recipe, validation->count > 0, err));
    else
        DT_TRY(dt_chat_rows_make(&dataset->chat_rows, &dataset->chats, 0, kept, &limits,
                                 "data.train", err));
    if (recipe->data.mixture.count == 0 || validation->count > 0)
        DT_TRY(dt_chat_rows_make(
            &dataset->valid_chat_rows, valid, first, count, &limits,
            validation->count > 0 ? "data.validation" : "data.train, after data.split", err));
    dataset->train_count = dataset->chat_rows.count;
    dataset->valid_count = dataset->valid_chat_rows.count;
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

/* Ids of a stream that are checked before training starts, which takes a tenth of a second. The
 * rest are checked when they are drawn. */
#define CHECKED_TOKENS ((int64_t)1 << 26)

/* Refuse fields that contradict each other about tokens. */
static dt_status check_fields(const dt_recipe *recipe, dt_tokens_kind kind, dt_error *err)
{
    bool has_file = dt_tokenizer_is_file(recipe);
    bool has_word =
        has_file || (recipe->data.tokenizer != NULL && recipe->data.tokenizer[0] != '\0');

    if (kind == DT_TOKENS_ROWS && has_word)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "data.tokenizer ('%s') cannot be combined with a model that reads rows of "
                       "numbers; leave it out",
                       recipe->data.tokenizer);
    if (has_word && recipe->data.tokens != DT_TOKENS_AUTO && recipe->data.tokens != kind)
        has_file = true;
    if (has_file &&
        (recipe->data.tokens == DT_TOKENS_CHAR || recipe->data.tokens == DT_TOKENS_BYTE ||
         kind == DT_TOKENS_CHAR || kind == DT_TOKENS_BYTE))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "data.tokenizer ('%s') and data.tokens ('%s') cannot be combined; leave "
                       "data.tokens out",
                       recipe->data.tokenizer, dt_tokens_kind_name(recipe->data.tokens));
    return DT_OK;
}

dt_status dt_dataset_find_files(dt_data_files *train, dt_data_files *validation,
                                const dt_recipe *recipe, dt_arena *arena, dt_error *err)
{
    dt_tokens_kind kind = dt_architecture_find(recipe->model.kind)->reads_rows
                              ? DT_TOKENS_ROWS
                              : dt_tokens_kind_of(recipe);
    dt_status st = DT_OK;

    if (recipe->data.format == DT_DATA_CHAT && kind != DT_TOKENS_CHATS)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'data' names conversations that are text; convert them to "
                 "tokens with 'dtrun data prepare'");
    if (dt_architecture_find(recipe->model.kind)->reads_pairs && kind != DT_TOKENS_PAIRS &&
        recipe->data.source[0] == '\0')
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "a model of kind '%s' trains on sentence pairs, but 'data' names files without "
                 "translations",
                 dt_architecture_find(recipe->model.kind)->name);
    if (recipe->data.train.count == 0)
        DT_THROW(err, DT_ERR_RECIPE, "data.train names no file; give it a file of %s",
                 kind == DT_TOKENS_ROWS ? "rows" : "text or tokens");
    DT_TRY(check_fields(recipe, kind, err));
    DT_TRY(dt_data_files_find(train, &recipe->data.train, kind,
                              recipe->data.mixture.count > 0 ? "data.mixture" : "data.train", arena,
                              err));
    DT_TRY(dt_data_files_find(validation, &recipe->data.validation, kind, "data.validation", arena,
                              err));
    DT_TRY(dt_data_files_agree(train, validation, err));
out:
    return st;
}

/* Fill the tensors for document boundaries of the sample at `place`, whose tokens and targets are
 * set; no effect if documents are not separate. */
static void dataset_mark_documents(const dt_dataset *dataset, void *const inputs[], int64_t place,
                                   int64_t tokens)
{
    int64_t at = place * tokens;

    if (dataset->document_end != DT_DOCUMENTS_CROSSED)
        dt_documents_mark((int32_t *)inputs[1] + at, (int32_t *)inputs[2] + at,
                          (int32_t *)inputs[3] + at, (const int32_t *)inputs[0] + at, tokens,
                          dataset->document_end);
}

dt_status dt_dataset_fill_tokens(const dt_dataset *dataset, const dt_token_stream *stream,
                                 int64_t start, int64_t have, int64_t end, void *const inputs[],
                                 int64_t place, int64_t tokens, dt_error *err)
{
    int32_t *ids = (int32_t *)inputs[0] + place * tokens;
    int32_t *targets = (int32_t *)inputs[1] + place * tokens;
    int64_t predicted = start + have < end ? have : have - 1;
    dt_status st = DT_OK;

    DT_ASSERT(have >= 0 && have <= tokens);
    if (have == 0)
        predicted = 0;
    /* large files are not checked completely on opening */
    DT_TRY(dt_token_stream_check(stream, start, predicted < have ? have : have + 1, dataset->limit,
                                 err));
    dt_token_stream_read(ids, stream, start, have);
    dt_token_stream_read(targets, stream, start + 1, predicted);
    for (int64_t i = have; i < tokens; i++) /* padding: each is a document of its own */
        ids[i] = dataset->packed ? dataset->document_end : 0;
    for (int64_t i = predicted; i < tokens; i++)
        targets[i] = -1;
    dataset_mark_documents(dataset, inputs, place, tokens);
out:
    return st;
}

/* --- opening */

static dt_status check_fixed(const dt_tokenizer *fixed, dt_tokenizer_kind kind, dt_error *err)
{
    if (fixed != NULL && fixed->kind != kind)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "the checkpoint was trained on '%s' tokens, and the recipe's data are read "
                       "as '%s'; resume with the same data and data.tokens",
                       dt_tokenizer_kind_name(fixed->kind), dt_tokenizer_kind_name(kind));
    return DT_OK;
}

static dt_status open_tokens(dt_dataset *dataset, const dt_data_files *train,
                             const dt_data_files *validation, const dt_recipe *recipe,
                             const dt_tokenizer *fixed, dt_error *err)
{
    dt_status st = DT_OK;

    if (dt_tokenizer_is_file(recipe) && !dt_tokens_kind_is_ids(train->items[0].kind))
        DT_THROW(err, DT_ERR_RECIPE, "'%s' is text; convert it to tokens with 'dtrun data prepare'",
                 train->items[0].path);
    switch (train->items[0].kind) {
    case DT_TOKENS_CHAR:
        DT_TRY(check_fixed(fixed, DT_TOKENIZER_CHAR, err));
        DT_TRY(dt_dataset_open_chars(dataset, train, validation, fixed, err));
        break;
    case DT_TOKENS_BYTE:
        DT_TRY(check_fixed(fixed, DT_TOKENIZER_BYTE, err));
        DT_TRY(dt_dataset_open_bytes(dataset, train, validation, err));
        break;
    default:
        DT_TRY(check_fixed(
            fixed, dt_tokenizer_is_file(recipe) ? DT_TOKENIZER_BPE : DT_TOKENIZER_IDS, err));
        DT_TRY(dt_dataset_open_ids(dataset, train, validation, recipe, fixed, err));
        break;
    }
out:
    return st;
}

static dt_status check_tokens(const dt_dataset *dataset, dt_error *err)
{
    const dt_token_stream *streams[] = {&dataset->train, &dataset->validation};
    dt_status st = DT_OK;

    for (int i = 0; i < 2; i++) {
        int64_t count = streams[i]->count < CHECKED_TOKENS ? streams[i]->count : CHECKED_TOKENS;

        DT_TRY(dt_token_stream_check(streams[i], 0, count, dataset->limit, err));
    }
out:
    return st;
}

static dt_status pack(dt_dataset *dataset, int64_t tokens, dt_error *err)
{
    dt_status st = DT_OK;

    dataset->packed = true;
    if (dataset->mixture.count > 0)
        DT_TRY(dt_dataset_pack_parts(dataset, tokens, err));
    else
        DT_TRY(dt_packs_make(&dataset->packs, &dataset->train, 0, dataset->train_count, tokens,
                             dataset->document_end, err));
    DT_TRY(dt_packs_make(&dataset->valid_packs, dataset->valid_stream, dataset->valid_start,
                         dataset->valid_count, tokens, dataset->document_end, err));
out:
    return st;
}

static dt_status open_text(dt_dataset *dataset, const dt_data_files *train,
                           const dt_data_files *validation, const dt_recipe *recipe,
                           const dt_tokenizer *fixed, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(open_tokens(dataset, train, validation, recipe, fixed, err));
    DT_TRY(dt_dataset_check_vocab(recipe, dataset->tokenizer->vocab, err));
    if (recipe->data.mixture.count > 0)
        DT_TRY(dt_dataset_divide_text(dataset, train, recipe, validation->count > 0, err));
    else
        DT_TRY(dt_dataset_split(&dataset->train_count, recipe, dataset->train.count,
                                validation->count > 0 ? dataset->validation.count : -1, err));
    if (validation->count > 0 || recipe->data.mixture.count > 0) {
        dataset->valid_stream = &dataset->validation;
        dataset->valid_count = dataset->validation.count;
    } else {
        dataset->valid_stream = &dataset->train;
        dataset->valid_start = dataset->train_count;
        dataset->valid_count = dataset->train.count - dataset->train_count;
    }
    dataset->limit = dataset->tokenizer->vocab; /* a model can have rows that no token uses */
    if (recipe->model.vocab > 0 && dataset->tokenizer->kind != DT_TOKENIZER_BPE)
        dataset->limit = recipe->model.vocab;
    if (dt_tokens_kind_is_ids(train->items[0].kind))
        DT_TRY(check_tokens(dataset, err));
    DT_TRY(
        dt_documents_end(&dataset->document_end, recipe, dataset->tokenizer, dataset->limit, err));
    if (dt_packs_asked(recipe))
        DT_TRY(pack(dataset, recipe->batch.tokens, err));
    if (dataset->mixture.count > 0)
        DT_TRY(dt_mixture_divide(&dataset->mixture, dataset->packed ? 1 : recipe->batch.tokens,
                                 dataset->packed ? 0 : 1, err));
out:
    return st;
}

dt_status dt_dataset_open(dt_dataset **out, const dt_recipe *recipe, const dt_tokenizer *fixed,
                          dt_error *err)
{
    dt_status st = DT_OK;
    dt_dataset *dataset = calloc(1, sizeof(*dataset));
    dt_data_files train, validation;

    *out = NULL;
    if (dataset == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a dataset");
    dt_arena_init(&dataset->arena, 0);
    DT_TRY(dt_dataset_find_files(&train, &validation, recipe, &dataset->arena, err));
    if (train.items[0].kind == DT_TOKENS_PAIRS) {
        DT_TRY(check_fixed(fixed, DT_TOKENIZER_PAIRS, err));
        DT_TRY(dataset_open_pairs(dataset, &train, &validation, recipe, fixed, err));
    } else if (train.items[0].kind == DT_TOKENS_CHATS) {
        DT_TRY(check_fixed(fixed, DT_TOKENIZER_BPE, err));
        DT_TRY(dataset_open_chats(dataset, &train, &validation, recipe, fixed, err));
    } else if (train.items[0].kind == DT_TOKENS_ROWS) {
        DT_TRY(check_fixed(fixed, DT_TOKENIZER_ROWS, err));
        DT_TRY(dataset_open_rows(dataset, &train, &validation, recipe, err));
    } else {
        DT_TRY(open_text(dataset, &train, &validation, recipe, fixed, err));
    }
    *out = dataset;
    dataset = NULL;
out:
    dt_dataset_close(dataset);
    return st;
}

void dt_dataset_close(dt_dataset *dataset)
{
    if (dataset == NULL)
        return;
    dt_token_stream_release(&dataset->train);
    dt_token_stream_release(&dataset->validation);
    dt_rows_release(&dataset->rows);
    dt_rows_release(&dataset->validation_rows);
    dt_packs_release(&dataset->packs);
    dt_packs_release(&dataset->valid_packs);
    dt_groups_release(&dataset->groups);
    dt_groups_release(&dataset->valid_groups);
    dt_chat_rows_release(&dataset->chat_rows);
    dt_chat_rows_release(&dataset->valid_chat_rows);
    dt_chats_close(&dataset->chats);
    dt_chats_close(&dataset->validation_chats);
    dt_sentences_close(&dataset->sentences);
    dt_sentences_close(&dataset->validation_sentences);
    dt_tokenizer_free(dataset->tokenizer);
    dt_arena_release(&dataset->arena);
    free(dataset);
}

const dt_tokenizer *dt_dataset_tokenizer(const dt_dataset *dataset)
{
    return dataset->tokenizer;
}

static int64_t count_targets(const dt_groups *groups)
{
    int64_t tokens = 0;

    for (int64_t i = 0; i < groups->count; i++)
        tokens += groups->targets[i];
    return tokens;
}

int64_t dt_dataset_train_tokens(const dt_dataset *dataset)
{
    return dataset->has_pairs   ? count_targets(&dataset->groups)
           : dataset->has_chats ? dataset->chat_rows.tokens
                                : dataset->train_count;
}

int64_t dt_dataset_valid_tokens(const dt_dataset *dataset)
{
    return dataset->has_pairs   ? count_targets(&dataset->valid_groups)
           : dataset->has_chats ? dataset->valid_chat_rows.tokens
                                : dataset->valid_count;
}

bool dt_dataset_has_pairs(const dt_dataset *dataset)
{
    return dataset->has_pairs;
}

int64_t dt_dataset_valid_pairs(const dt_dataset *dataset)
{
    return dataset->valid_groups.kept;
}
