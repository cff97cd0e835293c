/* dataset_int: what a dataset is made of, for dataset.c, check.c, sampler.c and validation.c. */
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
    dt_arena arena; /* paths */
    dt_tokenizer *tokenizer;
    dt_token_stream train, validation; /* validation stays empty where training text is split */
    int64_t train_count;               /* of the train stream: the tokens before the split */
    const dt_token_stream *valid_stream;
    int64_t valid_start, valid_count; /* in valid_stream */
    int64_t limit;        /* tokens are below: model.vocab, or the tokenizer's vocabulary */
    int32_t document_end; /* documents.h */
    bool packed;          /* sequences are these, and not T tokens after T tokens */
    dt_packs packs, valid_packs;
    /* Rows instead of tokens: the counts above are theirs, and valid_start stands in valid_rows. */
    bool has_rows;
    dt_rows rows, validation_rows;
    const dt_rows *valid_rows;
    /* Sentence pairs instead of tokens: the counts above are of groups. */
    bool has_pairs;
    dt_sentences sentences, validation_sentences;
    dt_groups groups, valid_groups;
    dt_pair_ids pair_ids;
};

/* Training and validation files of the recipe, found, looked at, of one kind. */
dt_status dt_dataset_find_files(dt_data_files *train, dt_data_files *validation,
                                const dt_recipe *recipe, dt_arena *arena, dt_error *err);

/* Where the split lies, and whether both sides are long enough for batch.tokens. train_count: all
 * tokens of the training files; valid_count: of the validation files, -1 where there are none. */
dt_status dt_dataset_split(int64_t *before_split, const dt_recipe *recipe, int64_t train_count,
                           int64_t valid_count, dt_error *err);

/* Fill in the streams and the tokenizer; `fixed` (may be NULL) is of that kind. dataset_ids.c and
 * dataset_text.c. */
dt_status dt_dataset_open_ids(dt_dataset *dataset, const dt_data_files *train,
                              const dt_data_files *validation, const dt_recipe *recipe,
                              const dt_tokenizer *fixed, dt_error *err);
dt_status dt_dataset_open_chars(dt_dataset *dataset, const dt_data_files *train,
                                const dt_data_files *validation, const dt_tokenizer *fixed,
                                dt_error *err);
dt_status dt_dataset_open_bytes(dt_dataset *dataset, const dt_data_files *train,
                                const dt_data_files *validation, dt_error *err);

/* dataset_rows.c: the whole of a dataset of rows but its files. */
dt_status dt_dataset_open_rows(dt_dataset *dataset, const dt_data_files *train,
                               const dt_data_files *validation, const dt_recipe *recipe,
                               dt_error *err);

/* dataset_pairs.c: the same of a dataset of sentence pairs. */
dt_status dt_dataset_open_pairs(dt_dataset *dataset, const dt_data_files *train,
                                const dt_data_files *validation, const dt_recipe *recipe,
                                const dt_tokenizer *fixed, dt_error *err);
/* Whether the recipe's pairs are text that has not become ids yet. */
bool dt_dataset_pairs_are_text(const dt_recipe *recipe);
/* The tokenizer's vocabulary, which is what is known of those. */
dt_status dt_dataset_check_pairs_text(dt_dataset_facts *out, const dt_recipe *recipe,
                                      dt_error *err);

/* Of so many rows of training files, those before the split. */
int64_t dt_dataset_split_rows(const dt_recipe *recipe, int64_t count, bool has_validation);

/* The rest of a batch's tensors for the sample at `place`, whose tokens and targets are there; nothing
 * where documents are not told apart. */
void dt_dataset_mark_documents(const dt_dataset *dataset, void *const inputs[], int64_t place,
                               int64_t tokens);

/* Tokens start .. start+have of a stream, and padding behind them, to `place` of a batch of sequences of
 * `tokens`. Each foretells the next one; the last does where that is before `end`, where our part of the
 * stream ends. */
dt_status dt_dataset_fill_tokens(const dt_dataset *dataset, const dt_token_stream *stream,
                                 int64_t start, int64_t have, int64_t end, void *const inputs[],
                                 int64_t place, int64_t tokens, dt_error *err);

/* DT_ERR_RECIPE where model.vocab is given and is less than the data's. */
dt_status dt_dataset_check_vocab(const dt_recipe *recipe, int64_t vocab, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
