/* dataset_int: declares the contents of a dataset for dataset.c, check.c, sampler.c and
 * validation.c. */
#ifndef DT_ENGINE_DATASET_INT_H
#define DT_ENGINE_DATASET_INT_H

#include "base/arena.h"
#include "engine/data/data.h"
#include "engine/data/files.h"
#include "engine/data/groups.h"
#include "engine/data/packs.h"
#include "engine/data/rows.h"
#include "engine/data/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_dataset {
    dt_arena arena; /* owns the paths */
    dt_tokenizer *tokenizer;
    /* validation is empty if data.split divides the training text */
    dt_token_stream train, validation;
    int64_t train_count; /* training tokens before the split */
    const dt_token_stream *valid_stream;
    int64_t valid_start, valid_count; /* range of the validation tokens in valid_stream */
    /* all tokens are below this: model.vocab, or the tokenizer's vocabulary */
    int64_t limit;
    int32_t document_end; /* token that ends documents (documents.h) */
    bool packed;          /* sequences are `packs` instead of every T tokens */
    dt_packs packs, valid_packs;
    /* If the data are rows: the counts above are of rows, and valid_start is in valid_rows. */
    bool has_rows;
    dt_rows rows, validation_rows;
    const dt_rows *valid_rows;
    /* If the data are sentence pairs: the counts above are of groups. */
    bool has_pairs;
    dt_sentences sentences, validation_sentences;
    dt_groups groups, valid_groups;
    dt_pair_ids pair_ids;
};

/* Find the training and validation files of the recipe, and check that they are of one kind. */
dt_status dt_dataset_find_files(dt_data_files *train, dt_data_files *validation,
                                const dt_recipe *recipe, dt_arena *arena, dt_error *err);

/* Open the streams and the tokenizer; `fixed` (can be NULL) has that kind (dataset_ids.c,
 * dataset_text.c). */
dt_status dt_dataset_open_ids(dt_dataset *dataset, const dt_data_files *train,
                              const dt_data_files *validation, const dt_recipe *recipe,
                              const dt_tokenizer *fixed, dt_error *err);
dt_status dt_dataset_open_chars(dt_dataset *dataset, const dt_data_files *train,
                                const dt_data_files *validation, const dt_tokenizer *fixed,
                                dt_error *err);
dt_status dt_dataset_open_bytes(dt_dataset *dataset, const dt_data_files *train,
                                const dt_data_files *validation, dt_error *err);

/* Open a dataset of rows, except finding its files (dataset_rows.c). */
dt_status dt_dataset_open_rows(dt_dataset *dataset, const dt_data_files *train,
                               const dt_data_files *validation, const dt_recipe *recipe,
                               dt_error *err);

/* Open a dataset of sentence pairs, except finding its files (dataset_pairs.c). */
dt_status dt_dataset_open_pairs(dt_dataset *dataset, const dt_data_files *train,
                                const dt_data_files *validation, const dt_recipe *recipe,
                                const dt_tokenizer *fixed, dt_error *err);
/* Whether the recipe's pairs are text that has not been converted to ids yet. */
bool dt_dataset_pairs_are_text(const dt_recipe *recipe);
/* Check the tokenizer's vocabulary, the only fact known about such text. */
dt_status dt_dataset_check_pairs_text(dt_dataset_facts *out, const dt_recipe *recipe,
                                      dt_error *err);

/* Rows before the split, out of `count` rows of the training files. */
int64_t dt_dataset_split_rows(const dt_recipe *recipe, int64_t count, bool has_validation);

/* Fill the tensors for document boundaries of the sample at `place`, whose tokens and targets are
 * set; no effect if documents are not separate. */
void dt_dataset_mark_documents(const dt_dataset *dataset, void *const inputs[], int64_t place,
                               int64_t tokens);

/* Copy tokens start .. start+have of a stream, then padding, to sample `place` of a batch with
 * sequences of `tokens`. The target of each token is the next one; the last has a target only if it
 * is before `end`, the end of our part of the stream. */
dt_status dt_dataset_fill_tokens(const dt_dataset *dataset, const dt_token_stream *stream,
                                 int64_t start, int64_t have, int64_t end, void *const inputs[],
                                 int64_t place, int64_t tokens, dt_error *err);

/* DT_ERR_RECIPE if model.vocab is set and is less than the data's vocabulary. */
dt_status dt_dataset_check_vocab(const dt_recipe *recipe, int64_t vocab, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
