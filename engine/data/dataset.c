/* dataset: opens datasets of four families: text (char, byte), with a tokenizer built from the
 * text; token ids (.bin), used in place in the mapped file; rows of numbers; and sentence pairs. */
#include "engine/data/dataset_int.h"
#include "engine/data/documents.h"

#include <stdlib.h>
#include <string.h>

#include "engine/data/tokenizer_int.h"
#include "recipes/architecture/architecture.h"

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
    DT_TRY(dt_data_files_find(train, &recipe->data.train, kind, "data.train", arena, err));
    DT_TRY(dt_data_files_find(validation, &recipe->data.validation, kind, "data.validation", arena,
                              err));
    DT_TRY(dt_data_files_agree(train, validation, err));
out:
    return st;
}

dt_status dt_dataset_split(int64_t *before_split, const dt_recipe *recipe, int64_t train_count,
                           int64_t valid_count, dt_error *err)
{
    int64_t need = recipe->batch.tokens + 1; /* a sequence and the target of its last token */
    const char *first = recipe->data.train.items[0];

    *before_split = train_count;
    if (valid_count < 0) {
        *before_split = (int64_t)((double)train_count * (1.0 - recipe->data.split));
        valid_count = train_count - *before_split;
        if (recipe->data.split > 0 && valid_count < 2)
            return DT_FAIL(
                err, DT_ERR_RECIPE,
                "data.train ('%s') has %lld tokens, of which data.split %g leaves %lld for "
                "validation, which needs at least 2: give more text, a larger split, or 0",
                first, (long long)train_count, recipe->data.split, (long long)valid_count);
    } else if (valid_count < 2) {
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "data.validation ('%s') has 1 token and needs at least 2: give more text",
                       recipe->data.validation.items[0]);
    }
    if (*before_split < need)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "data.train ('%s') has %lld tokens%s, fewer than the %lld that one sequence "
                       "takes (batch.tokens + 1); give more text, or fewer batch.tokens",
                       first, (long long)*before_split,
                       *before_split < train_count ? " after the split" : "", (long long)need);
    return DT_OK;
}

dt_status dt_dataset_check_vocab(const dt_recipe *recipe, int64_t vocab, dt_error *err)
{
    if (recipe->model.vocab > 0 && vocab > recipe->model.vocab && dt_tokenizer_is_file(recipe))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "model.vocab is %lld, and data.tokenizer has %lld tokens; leave model.vocab "
                       "out, set it to %lld or more, or name the model's tokenizer",
                       (long long)recipe->model.vocab, (long long)vocab, (long long)vocab);
    if (recipe->model.vocab > 0 && vocab > recipe->model.vocab)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "model.vocab is %lld, and the data have %lld different tokens; leave "
                       "model.vocab out, or set it to %lld or more",
                       (long long)recipe->model.vocab, (long long)vocab, (long long)vocab);
    return DT_OK;
}

void dt_dataset_mark_documents(const dt_dataset *dataset, void *const inputs[], int64_t place,
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
    dt_dataset_mark_documents(dataset, inputs, place, tokens);
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
    DT_TRY(dt_dataset_split(&dataset->train_count, recipe, dataset->train.count,
                            validation->count > 0 ? dataset->validation.count : -1, err));
    if (validation->count > 0) {
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
        DT_TRY(dt_dataset_open_pairs(dataset, &train, &validation, recipe, fixed, err));
    } else if (train.items[0].kind == DT_TOKENS_ROWS) {
        DT_TRY(check_fixed(fixed, DT_TOKENIZER_ROWS, err));
        DT_TRY(dt_dataset_open_rows(dataset, &train, &validation, recipe, err));
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
    return dataset->has_pairs ? count_targets(&dataset->groups) : dataset->train_count;
}

int64_t dt_dataset_valid_tokens(const dt_dataset *dataset)
{
    return dataset->has_pairs ? count_targets(&dataset->valid_groups) : dataset->valid_count;
}

bool dt_dataset_has_pairs(const dt_dataset *dataset)
{
    return dataset->has_pairs;
}

int64_t dt_dataset_valid_pairs(const dt_dataset *dataset)
{
    return dataset->valid_groups.kept;
}
