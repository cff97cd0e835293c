/* data: opens datasets and tokenizers, selects the samples of each step and rank, and computes the number
 * of steps from the epochs.
 *
 * A source is all training (or validation) tokens in one array in host memory (memory-mapped if
 * possible). A tokenizer converts text to tokens and back; it is stored in checkpoints.
 *
 * Sampler    an epoch cuts the stream into sequences of T tokens (targets: the same, one later),
 *            from an offset in [0, T) drawn from (seed, epoch), in an order drawn from
 *            (seed, epoch). Each step takes the next `sequences * ranks * accumulate` of
 *            them. The rest of an epoch that does not fill a step is completed from the next epoch
 *            (data.tail wrap) or dropped (drop); no rank ever lacks a batch. The position is (epoch,
 *            global sample index): it does not depend on the number of ranks.
 * Formats    UTF-8 text; llm.c .bin: 256 int32 of header, magic 20240520 version 1 (uint16) or
 *            20240801 version 7 (uint32), header[2] tokens; nanoGPT .bin: uint16 without a header;
 *            fairseq's .bin, whose .idx gives the width (recipes/foreign/databin.h). Files are
 *            joined in the order of the list, a glob's matches sorted by bytes.
 *            .csv, .npy: rows of numbers (data_int.h), each of which is a sample
 * Packed     (data.pack) sequences are cut at the ends of documents (stream.h): there is no offset, each
 *            epoch has the same sequences, and they are filled up with padding
 * Chats      (data.format chat, chats.h) a sample is a row of whole conversations, as with packs, and has a
 *            weight for each target
 * Pairs      of sentences (sentences.h): a sample is a whole batch of pairs of similar length,
 *            with its own B, S and T, and the batches of an epoch are fixed: there is no offset, and a
 *            step takes the next ranks * accumulate of them
 * Vocabulary char: the code points of training AND validation text, so that validation has no
 *            unknown one; byte: 256; ids: model.vocab, or the largest id of all files plus 1.
 *            A smaller model.vocab is an error, a larger one is used.
 * Errors     DT_ERR_RECIPE naming the file: missing, unreadable, empty, shorter than one
 *            sequence, broken UTF-8 (with the byte offset), a token outside the vocabulary
 *            (the first 64 million are checked on opening, the rest when drawn)
 */
#ifndef DT_ENGINE_DATA_DATA_H
#define DT_ENGINE_DATA_DATA_H

#include "base/error.h"
#include "base/json.h"
#include "engine/data/sentences.h"
#include "engine/tokens/bpe.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_tokenizer dt_tokenizer;
typedef struct dt_dataset dt_dataset;

/* --- tokenizer.c: kinds "char" (code points, sorted), "byte", "ids" (bin files: no text), "bpe" (trained
 * by another program: engine/tokens/bpe.h), "pairs" (for sentence pairs: sides.h; encodes text as a source
 * sentence, and decodes tokens as those of a target) */
int64_t dt_tokenizer_vocab(const dt_tokenizer *tokenizer);
/* {"kind":"char","characters":"\n !..."}; new reference */
json_t *dt_tokenizer_to_json(const dt_tokenizer *tokenizer);
/* Append a tokenizer.json with which Hugging Face transformers encodes a text to the same ids.
 * Returns false and appends nothing unless the tokens are characters or bytes. Like dtrun,
 * transformers fails on a character outside the vocabulary. */
bool dt_tokenizer_to_huggingface(dt_strbuf *out, const dt_tokenizer *tokenizer);
dt_status dt_tokenizer_from_json(dt_tokenizer **out, const json_t *json, dt_error *err);
void dt_tokenizer_free(dt_tokenizer *tokenizer);
/* Read a tokenizer of kind "bpe" from the recipe's data.tokenizer, with what the other files of its folder say
 * (dt_bpe_read_folder); data.end_of_text overrides them. DT_ERR_RECIPE naming the file. */
dt_status dt_tokenizer_read(dt_tokenizer **out, const dt_recipe *recipe, dt_error *err);
/* Read a tokenizer of kind "pairs" from its file, or from the contents of such a file.
 * DT_ERR_CORRUPT naming it. */
dt_status dt_tokenizer_pairs_read(dt_tokenizer **out, const char *path, dt_error *err);
dt_status dt_tokenizer_pairs_take(dt_tokenizer **out, const char *bytes, size_t length,
                                  const char *name, dt_error *err);
/* The file to store in a checkpoint, borrowed, and its name there; false if the JSON is sufficient. */
bool dt_tokenizer_get_file(const dt_tokenizer *tokenizer, const char **name, const char **bytes,
                           size_t *length);
/* For kind "bpe", after its file was read: data.end_of_text, if set, becomes the token that ends documents. Returns
 * false and changes nothing if the tokenizer has no such token: token files can have more ids. */
bool dt_tokenizer_set_end_of_text(dt_tokenizer *tokenizer, const dt_recipe *recipe);
/* The token that ends documents; -1 if the kind or the file has none. */
int32_t dt_tokenizer_end_of_text(const dt_tokenizer *tokenizer);
/* tokenizer_ends.c: append the tokens that end a text: model.end_ids, or the end-of-text token; can be none. */
dt_status dt_tokenizer_ends(dt_ids *out, const dt_tokenizer *tokenizer, const dt_recipe *recipe,
                            dt_error *err);
/* The tokens that start a text without a prompt: the begin tokens, else the end-of-text token, else a line break, else
 * token 0. The caller frees `out`. Not for kind "ids", of which no such token is known. */
dt_status dt_tokenizer_first_tokens(int32_t **out, int64_t *count, const dt_tokenizer *tokenizer,
                                    dt_error *err);
/* The special tokens around each text: dt_bpe_get_around; none for other kinds. */
dt_bpe_around dt_tokenizer_around(const dt_tokenizer *tokenizer);
/* The tokenizer as a dt_bpe, borrowed; NULL for other kinds than "bpe". */
const struct dt_bpe *dt_tokenizer_bpe(const dt_tokenizer *tokenizer);
/* The tokenizers of both sides, borrowed; NULL for other kinds than "pairs". */
const struct dt_sides *dt_tokenizer_sides(const dt_tokenizer *tokenizer);
/* Read the tokenizer's file from the checkpoint's folder: a tokenizer made from JSON needs it for
 * text. No effect for kinds without a file. DT_ERR_CORRUPT if the file differs from the saved one. */
dt_status dt_tokenizer_load(dt_tokenizer *tokenizer, const char *folder, dt_error *err);
/* Convert text to tokens. DT_ERR_USAGE naming a character that is not in the vocabulary. Ids are
 * given as numbers, "12 7 400". Caller frees. */
dt_status dt_tokenizer_encode(int32_t **tokens, int64_t *count, const dt_tokenizer *tokenizer,
                              const char *text, size_t length, dt_error *err);
/* Append the token's text; U+FFFD for a token outside the vocabulary. */
void dt_tokenizer_decode(dt_strbuf *out, const dt_tokenizer *tokenizer, int32_t token);

/* --- dataset.c */
/* Open the training and validation files of the recipe (globs expanded and sorted). `fixed`: the
 * tokenizer of the checkpoint to resume from, or NULL to build one from the training text. */
dt_status dt_dataset_open(dt_dataset **out, const dt_recipe *recipe, const dt_tokenizer *fixed,
                          dt_error *err);
void dt_dataset_close(dt_dataset *dataset);
/* lives as long as the dataset */
const dt_tokenizer *dt_dataset_tokenizer(const dt_dataset *dataset);
int64_t dt_dataset_train_tokens(const dt_dataset *dataset);
int64_t dt_dataset_valid_tokens(const dt_dataset *dataset);

/* Conversations, and the rows that they became (chats.h). */
typedef struct dt_chat_facts {
    int64_t conversations, tokens; /* of the files */
    int64_t rows, row_tokens;      /* row_tokens: without padding */
    int64_t targets;               /* that are trained */
    int64_t untrained, cut, too_long;
} dt_chat_facts;

/* A part of a mixture. */
typedef struct dt_part_facts {
    int64_t tokens;  /* that are trained */
    int64_t samples; /* in an epoch of the part */
} dt_part_facts;

/* What is known about data without training on them; 0 if only a full read could determine it. */
typedef struct dt_dataset_facts {
    int64_t vocab;
    int64_t train_tokens;    /* training tokens before the split; for pairs: target tokens */
    int64_t train_groups;    /* for pairs: training batches per epoch */
    int64_t train_packs;     /* with data.pack, and of conversations: sequences per epoch */
    int64_t pairs, too_long; /* training pairs in batches, and pairs that were dropped */
    dt_chat_facts chats;     /* training conversations, after the split; 0 rows: not known */
    dt_chat_facts valid_chats;
    dt_part_facts parts[DT_MIXTURE_MOST]; /* of data.mixture, in its order */
} dt_dataset_facts;

/* The checks of dt_dataset_open that need no full read, for `dtrun validate`; `fixed` as for
 * dt_dataset_open. */
dt_status dt_dataset_check(dt_dataset_facts *out, const dt_recipe *recipe,
                           const dt_tokenizer *fixed, dt_error *err);

/* DT_ERR_RECIPE if so many tokens are fewer than training and validation need. valid_count -1: data.split takes the
 * validation from the training tokens. *before_split: training tokens that are left. */
dt_status dt_dataset_split(int64_t *before_split, const dt_recipe *recipe, int64_t train_count,
                           int64_t valid_count, dt_error *err);

/* Whether samples are batches of sentence pairs. Functions below that name groups are for these;
 * dt_sampler_fill and dt_validation_fill are for all others. */
bool dt_dataset_has_pairs(const dt_dataset *dataset);
int64_t dt_dataset_valid_pairs(const dt_dataset *dataset);

/* Pairs of answers (dpo): rows of training (or validation) pairs, in their order in the files. */
int64_t dt_dataset_pair_rows(const dt_dataset *dataset, bool validation);
/* Fill sample `place` of a batch's tensors with a row; -1: with one that does not count. */
void dt_dataset_fill_pair_row(const dt_dataset *dataset, bool validation, int64_t row,
                              void *const inputs[], int64_t place);
/* The log ratios of these rows by the reference, which batches then have. Takes the array. */
void dt_dataset_set_reference(dt_dataset *dataset, bool validation, float *reference);

/* --- sampler.c */
typedef struct dt_sampler {
    const dt_dataset *dataset;
    int64_t train_tokens; /* number of training tokens */
    int64_t tokens;       /* T: tokens per sequence */
    int64_t ahead;        /* tokens needed after a sequence: 1, its last target; rows, pairs: 0 */
    bool groups; /* samples are batches of sentence pairs, and train_tokens counts these; T is 1 */
    /* samples are packs, and train_tokens counts these; T is 1, and `width` in a batch */
    bool packed;
    int64_t width;
    int64_t sample_targets;
    uint64_t seed;
    int64_t epoch, sample; /* sampler position where the next step starts */
    dt_tail_kind tail;
    int64_t step_samples; /* samples per step, for data.tail drop */
    int64_t *order; /* permutation of the current epoch's samples; of a mixture their starts */
    bool mixed;     /* the data are a mixture (mixture.h) */
    int64_t *picks; /* of a mixture: memory to make an order */
    int64_t order_epoch, order_count, shift;
} dt_sampler;

dt_status dt_sampler_init(dt_sampler *out, const dt_dataset *dataset, int64_t tokens, uint64_t seed,
                          dt_error *err);
void dt_sampler_release(dt_sampler *sampler);
/* A sampler that counts the samples and steps of so many training tokens, and draws none. Nothing
 * to release. */
void dt_sampler_count(dt_sampler *out, int64_t train_tokens, int64_t tokens, int64_t ahead,
                      uint64_t seed);
/* The same if the samples of an epoch are fixed: batches of pairs, or packs. */
void dt_sampler_count_known(dt_sampler *out, int64_t samples, bool packs, uint64_t seed);
/* Set what happens to the end of an epoch; wrap if it is not called. step_samples: samples per step
 * over all ranks. DT_ERR_RECIPE if an epoch has fewer samples than a step, with drop. */
dt_status dt_sampler_set_tail(dt_sampler *sampler, dt_tail_kind tail, int64_t step_samples,
                              dt_error *err);
dt_status dt_sampler_seek(dt_sampler *sampler, int64_t epoch, int64_t sample, dt_error *err);

/* Fill the tensors of a batch with samples first .. first+count of the current step, without
 * advancing: tokens and targets (count, T), with starts and positions if documents are separate
 * (stream.h); or rows and targets. The caller maps (micro-step, rank) to `first`. */
dt_status dt_sampler_fill(dt_sampler *sampler, void *const inputs[], int64_t first, int64_t count,
                          dt_error *err);
/* Fill a batch with sample `first` of the current step: its shape, and source, previous and
 * targets. */
dt_status dt_sampler_fill_group(dt_sampler *sampler, dt_pair_shape *shape, void *const inputs[],
                                int64_t first, dt_error *err);
/* The number of targets that count in samples first .. first+count of the current step; of
 * conversations the sum of their weights. Depends only on position and data, so every rank knows a
 * step's divisor before its forward passes. */
double dt_sampler_valid_targets(dt_sampler *sampler, int64_t first, int64_t count);

/* Appends "wiki 5600 sequences (1.4 epochs), code 2400 (0.2 epochs)": what was drawn of each part of a mixture up to
 * the position. Appends nothing if the data are not a mixture. */
void dt_sampler_describe_parts(dt_strbuf *out, dt_sampler *sampler);
/* Samples of the current epoch, including those that drop leaves out. Epochs differ by at most one,
 * since each is cut from its own offset. */
int64_t dt_sampler_epoch_samples(const dt_sampler *sampler);
/* Steps from the start of the first epoch to the end of epoch `epochs`. With wrap all samples are
 * seen (the last step may extend into the next epoch), with drop only whole steps of each epoch. */
int64_t dt_sampler_epoch_steps(const dt_sampler *sampler, int64_t epochs, int64_t step_samples);

/* Advance by the samples of one step. */
dt_status dt_sampler_advance(dt_sampler *sampler, int64_t samples, dt_error *err);

/* Number of validation sequences. Sequences are in file order, T tokens apart; the last can be
 * short: its missing targets are -1. */
int64_t dt_validation_count(const dt_dataset *dataset, int64_t tokens);
/* Fill sample `place` of a batch's tensors with validation sequence `index`; -1: a sample whose
 * targets do not count. */
dt_status dt_validation_fill(const dt_dataset *dataset, int64_t tokens, int64_t index,
                             void *const inputs[], int64_t place, dt_error *err);

/* For pairs, dt_validation_count counts batches. Fills batch `index`, shortest pairs first; -1: a
 * batch whose targets do not count. */
dt_status dt_validation_fill_group(const dt_dataset *dataset, int64_t index, dt_pair_shape *shape,
                                   void *const inputs[], dt_error *err);

/* budget: computes the number of steps of a run whose recipe gives epochs.
 *
 * Rule       schedule.steps, or the steps of schedule.epochs, or the lower of the two
 * Resumed    the completed steps, plus the steps for the rest of the epochs from the sampler's position:
 *            the same total as before if the samples per step have not changed. Otherwise the
 *            schedule is stretched to the new total, so its learning rates equal those of neither
 *            the old nor a new run
 * Skipped    fp16 steps with an overflow (engine/optim/schedule.h) use samples without counting as steps: each
 *            reduces the steps from epochs by one, but not schedule.steps. An epoch is a pass over the
 *            data, and the run ends with the last one
 */

/* Position of a run: completed steps, and the sampler's position. */
typedef struct dt_budget_place {
    int64_t step, epoch, sample;
} dt_budget_place;

/* Total steps of the run, as known at position `start`; NULL: at its start. */
int64_t dt_budget_steps(const dt_recipe *recipe, const dt_sampler *sampler, int64_t step_samples,
                        const dt_budget_place *start);

#ifdef __cplusplus
}
#endif

#endif
