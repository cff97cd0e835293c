/* Two families: text (char, byte), whose tokenizer comes from the text, and ids (.bin), whose
 * tokens are used where they are mapped. */
#include "engine/data/dataset_int.h"

#include <stdlib.h>
#include <string.h>

#include "engine/data/bin.h"
#include "engine/data/text.h"

#include "base/banned.h"

/* Ids are looked at before training starts, up to this many of a stream: a tenth of a second. Those
 * behind them are looked at when they are drawn. */
#define CHECKED_TOKENS ((int64_t)1 << 26)

dt_status dt_dataset_find_files(dt_data_files *train, dt_data_files *validation,
                                const dt_recipe *recipe, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    if (recipe->data.train.count == 0)
        DT_THROW(err, DT_ERR_RECIPE, "data.train names no file; give it a text or token file");
    DT_TRY(dt_data_files_find(train, &recipe->data.train, recipe->data.tokens, "data.train", arena,
                              err));
    DT_TRY(dt_data_files_find(validation, &recipe->data.validation, recipe->data.tokens,
                              "data.validation", arena, err));
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
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "data.train ('%s') has %lld tokens, of which data.split %g leaves %lld "
                           "for validation; it takes 2: give more text, a larger split, or 0",
                           first, (long long)train_count, recipe->data.split,
                           (long long)valid_count);
    } else if (valid_count < 2) {
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "data.validation ('%s') has 1 token; it takes 2: give more text",
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
    if (recipe->model.vocab > 0 && vocab > recipe->model.vocab)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "model.vocab is %lld, and the data have %lld different tokens; leave "
                       "model.vocab out, or set it to %lld or more",
                       (long long)recipe->model.vocab, (long long)vocab, (long long)vocab);
    return DT_OK;
}

/* --- ids */

static dt_status map_bins(dt_token_stream *out, const dt_data_files *files, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_token_stream_init(out, files->count, err));
    for (int64_t i = 0; i < files->count; i++) {
        dt_token_piece piece = {.path = files->items[i].path};
        dt_data_file file = files->items[i];
        dt_bin_layout layout;

        DT_TRY(dt_mapping_open(&piece.mapping, file.path, err));
        file.bytes = (int64_t)piece.mapping.length; /* what is mapped is what is checked */
        if ((st = dt_bin_layout_read(&layout, &file, err)) != DT_OK) {
            dt_mapping_close(&piece.mapping);
            goto out;
        }
        piece.tokens = piece.mapping.bytes + layout.header_bytes;
        piece.width_bytes = layout.width_bytes;
        piece.count = layout.count;
        dt_token_stream_add(out, &piece);
    }
out:
    return st;
}

static dt_status open_ids(dt_dataset *dataset, const dt_data_files *train,
                          const dt_data_files *validation, const dt_recipe *recipe,
                          const dt_tokenizer *fixed, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t vocab = recipe->model.vocab;

    DT_TRY(map_bins(&dataset->train, train, err));
    DT_TRY(map_bins(&dataset->validation, validation, err));
    if (fixed != NULL) {
        DT_TRY(dt_tokenizer_copy(&dataset->tokenizer, fixed, err));
        goto out;
    }
    if (vocab == 0) {
        int64_t a = dt_token_stream_max(&dataset->train);
        int64_t b = dt_token_stream_max(&dataset->validation);
        vocab = (a > b ? a : b) + 1;
    }
    if (vocab > INT32_MAX)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' or a file beside it holds the token %lld, beyond every vocabulary; set "
                 "data.tokens to what the file holds",
                 train->items[0].path, (long long)vocab - 1);
    DT_TRY(dt_tokenizer_new_ids(&dataset->tokenizer, vocab, err));
out:
    return st;
}

/* --- text */

static dt_status map_texts(dt_token_stream *out, const dt_data_files *files, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_token_stream_init(out, files->count, err));
    for (int64_t i = 0; i < files->count; i++) {
        dt_token_piece piece = {.path = files->items[i].path, .width_bytes = 1};

        DT_TRY(dt_mapping_open(&piece.mapping, piece.path, err));
        piece.tokens = piece.mapping.bytes;
        piece.count = (int64_t)piece.mapping.length;
        dt_token_stream_add(out, &piece);
    }
out:
    return st;
}

/* Bytes of a mapped text are its tokens under "byte"; under "char" they become code points. */
static dt_status scan_texts(dt_char_set *set, dt_token_stream *stream, int64_t *counts,
                            dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < stream->piece_count; i++)
        DT_TRY(
            dt_text_scan(set, &counts[i], stream->pieces[i].path, &stream->pieces[i].mapping, err));
out:
    return st;
}

static dt_status encode_texts(dt_token_stream *out, const dt_token_stream *texts,
                              const int64_t *counts, const dt_tokenizer *tokenizer, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_token_stream_init(out, texts->piece_count, err));
    for (int64_t i = 0; i < texts->piece_count; i++) {
        dt_token_piece piece;

        DT_TRY(dt_text_encode(&piece, counts[i], texts->pieces[i].path, &texts->pieces[i].mapping,
                              tokenizer, err));
        dt_token_stream_add(out, &piece);
    }
out:
    return st;
}

static dt_status open_chars(dt_dataset *dataset, const dt_data_files *train,
                            const dt_data_files *validation, const dt_tokenizer *fixed,
                            dt_error *err)
{
    dt_status st = DT_OK;
    dt_char_set *set = calloc(1, sizeof(*set));
    int64_t *counts = calloc((size_t)(train->count + validation->count), sizeof(*counts));
    dt_token_stream train_text = {0}, validation_text = {0};

    if (set == NULL || counts == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a vocabulary");
    DT_TRY(map_texts(&train_text, train, err));
    DT_TRY(map_texts(&validation_text, validation, err));
    /* One vocabulary for both, so that validation meets no unknown character. */
    DT_TRY(scan_texts(set, &train_text, counts, err));
    DT_TRY(scan_texts(set, &validation_text, counts + train->count, err));
    DT_TRY(fixed != NULL ? dt_tokenizer_copy(&dataset->tokenizer, fixed, err)
                         : dt_tokenizer_new_char(&dataset->tokenizer, set, err));
    DT_TRY(encode_texts(&dataset->train, &train_text, counts, dataset->tokenizer, err));
    DT_TRY(encode_texts(&dataset->validation, &validation_text, counts + train->count,
                        dataset->tokenizer, err));
out:
    dt_token_stream_release(&train_text);
    dt_token_stream_release(&validation_text);
    free(counts);
    free(set);
    return st;
}

static dt_status open_bytes(dt_dataset *dataset, const dt_data_files *train,
                            const dt_data_files *validation, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(map_texts(&dataset->train, train, err));
    DT_TRY(map_texts(&dataset->validation, validation, err));
    DT_TRY(dt_tokenizer_new_byte(&dataset->tokenizer, err));
out:
    return st;
}

/* --- both */

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

    switch (train->items[0].kind) {
    case DT_TOKENS_CHAR:
        DT_TRY(check_fixed(fixed, DT_TOKENIZER_CHAR, err));
        DT_TRY(open_chars(dataset, train, validation, fixed, err));
        break;
    case DT_TOKENS_BYTE:
        DT_TRY(check_fixed(fixed, DT_TOKENIZER_BYTE, err));
        DT_TRY(open_bytes(dataset, train, validation, err));
        break;
    default:
        DT_TRY(check_fixed(fixed, DT_TOKENIZER_IDS, err));
        DT_TRY(open_ids(dataset, train, validation, recipe, fixed, err));
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
    DT_TRY(open_tokens(dataset, &train, &validation, recipe, fixed, err));
    DT_TRY(dt_dataset_check_vocab(recipe, dataset->tokenizer->vocab, err));
    DT_TRY(dt_dataset_split(&dataset->train_count, recipe, dataset->train.count,
                            validation.count > 0 ? dataset->validation.count : -1, err));
    if (validation.count > 0) {
        dataset->valid_stream = &dataset->validation;
        dataset->valid_count = dataset->validation.count;
    } else {
        dataset->valid_stream = &dataset->train;
        dataset->valid_start = dataset->train_count;
        dataset->valid_count = dataset->train.count - dataset->train_count;
    }
    dataset->limit = recipe->model.vocab > 0 ? recipe->model.vocab : dataset->tokenizer->vocab;
    if (dataset->tokenizer->kind == DT_TOKENIZER_IDS)
        DT_TRY(check_tokens(dataset, err));
    *out = dataset; /* caller owns *out */
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
    dt_tokenizer_free(dataset->tokenizer);
    dt_arena_release(&dataset->arena);
    free(dataset);
}

const dt_tokenizer *dt_dataset_tokenizer(const dt_dataset *dataset)
{
    return dataset->tokenizer;
}

int64_t dt_dataset_train_tokens(const dt_dataset *dataset)
{
    return dataset->train_count;
}

int64_t dt_dataset_valid_tokens(const dt_dataset *dataset)
{
    return dataset->valid_count;
}
