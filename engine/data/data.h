/* data: token streams, and which tokens step s of rank r sees.
 *
 * A source is all training (or validation) tokens in one array in host memory (mapped where the
 * file allows it). A tokenizer turns text into tokens and back; it travels in the checkpoint.
 *
 * Sampler    an epoch cuts the stream into sequences of T tokens (targets: the same, one later),
 *            from an offset in [0, T) drawn from (seed, epoch), in an order drawn from
 *            (seed, epoch). Step s of a run takes the next `sequences * ranks * accumulate` of
 *            them. What is left of an epoch and fills no step runs on into the next one (data.tail
 *            wrap) or is left out (drop); no rank ever lacks a batch. The position is (epoch,
 *            global sample index): it does not depend on the number of ranks.
 * Formats    UTF-8 text; llm.c .bin: 256 int32 of header, magic 20240520 version 1 (uint16) or
 *            20240801 version 7 (uint32), header[2] tokens; nanoGPT .bin: bare uint16;
 *            fairseq's .bin, whose .idx tells the width (recipes/databin.h). Files are
 *            joined in the order of the list, a glob's matches sorted by bytes.
 *            .csv, .npy: rows of numbers (rows.h), each a sample of its own
 * Packed     (data.pack) sequences are cut at the ends of documents (packs.h): no offset, each epoch has the
 *            same ones, and what they do not fill is padding
 * Pairs      of sentences (sentences.h): a sample is a whole batch of pairs of like length (groups.h),
 *            with B, S and T of its own, and what an epoch has is known before: no offset, so that a
 *            step takes the next ranks * accumulate of them
 * Vocabulary char: the code points of training AND validation text, so that validation meets no
 *            unknown one; byte: 256; ids: model.vocab, or the largest id of all files plus 1.
 *            A model.vocab below it is an error, one above it is taken.
 * Errors     DT_ERR_RECIPE naming the file: missing, unreadable, empty, shorter than one
 *            sequence, broken UTF-8 (with the byte offset), a token outside the vocabulary
 *            (the first 64 million are looked at when they are opened, the rest when drawn)
 */
#ifndef DT_ENGINE_DATA_H
#define DT_ENGINE_DATA_H

#include "base/error.h"
#include "base/json.h"
#include "engine/data/groups.h"
#include "engine/tokens/bpe.h"
#include "recipes/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_tokenizer dt_tokenizer;
typedef struct dt_dataset dt_dataset;

/* --- tokenizer.c: kinds "char" (code points, sorted), "byte", "ids" (bin files: no text), "bpe" (learned
 * elsewhere: engine/tokens/bpe.h), "pairs" (of sentence pairs: sides.h; text is a source sentence, and
 * tokens become text as those of a target) */
int64_t dt_tokenizer_vocab(const dt_tokenizer *tokenizer);
/* {"kind":"char","characters":"\n !..."}; new reference */
json_t *dt_tokenizer_to_json(const dt_tokenizer *tokenizer);
/* Appends a tokenizer.json with which transformers encodes a text to the same ids. Returns false and appends nothing
 * unless the tokens are characters or bytes. transformers, too, fails on a character outside the vocabulary. */
bool dt_tokenizer_to_huggingface(dt_strbuf *out, const dt_tokenizer *tokenizer);
dt_status dt_tokenizer_from_json(dt_tokenizer **out, const json_t *json, dt_error *err);
void dt_tokenizer_free(dt_tokenizer *tokenizer);
/* Kind "bpe": from the recipe's data.tokenizer. DT_ERR_RECIPE naming the file. */
dt_status dt_tokenizer_read(dt_tokenizer **out, const char *path, dt_error *err);
/* Kind "pairs": its own file, or what would stand in it. DT_ERR_CORRUPT naming it. */
dt_status dt_tokenizer_pairs_read(dt_tokenizer **out, const char *path, dt_error *err);
dt_status dt_tokenizer_pairs_take(dt_tokenizer **out, const char *bytes, size_t length,
                                  const char *name, dt_error *err);
/* The file that travels with a checkpoint, borrowed, and the name that it has there; false where the
 * JSON tells everything. */
bool dt_tokenizer_get_file(const dt_tokenizer *tokenizer, const char **name, const char **bytes,
                           size_t *length);
/* What stands between documents; -1 where the kind or the file has none. */
int32_t dt_tokenizer_end_of_text(const dt_tokenizer *tokenizer);
/* What stands around each text: dt_bpe_get_around; nothing for the kinds without it. */
dt_bpe_around dt_tokenizer_around(const dt_tokenizer *tokenizer);
/* NULL for other kinds. Borrowed. */
const struct dt_bpe *dt_tokenizer_bpe(const dt_tokenizer *tokenizer);
/* NULL for other kinds. Borrowed. */
const struct dt_sides *dt_tokenizer_sides(const dt_tokenizer *tokenizer);
/* What came from JSON has text only with its file: read from the checkpoint's folder. Nothing for the
 * kinds without one. DT_ERR_CORRUPT where it is another file. */
dt_status dt_tokenizer_load(dt_tokenizer *tokenizer, const char *folder, dt_error *err);
/* Text → tokens; a character that the vocabulary lacks is DT_ERR_USAGE naming it. Ids are written
 * as numbers, "12 7 400". Caller frees. */
dt_status dt_tokenizer_encode(int32_t **tokens, int64_t *count, const dt_tokenizer *tokenizer,
                              const char *text, size_t length, dt_error *err);
/* Appends it; a token beyond the vocabulary becomes U+FFFD. */
void dt_tokenizer_decode(dt_strbuf *out, const dt_tokenizer *tokenizer, int32_t token);

/* --- dataset.c */
/* Reads training and validation files of the recipe (globs expanded and sorted). `fixed`: the
 * tokenizer of the checkpoint that is resumed, or NULL to build one from the training text. */
dt_status dt_dataset_open(dt_dataset **out, const dt_recipe *recipe, const dt_tokenizer *fixed,
                          dt_error *err);
void dt_dataset_close(dt_dataset *dataset);
const dt_tokenizer *dt_dataset_tokenizer(const dt_dataset *dataset); /* lives with the dataset */
int64_t dt_dataset_train_tokens(const dt_dataset *dataset);
int64_t dt_dataset_valid_tokens(const dt_dataset *dataset);

/* What is known of data without training on them; 0 where only a full read can tell. */
typedef struct dt_dataset_facts {
    int64_t vocab;
    int64_t train_tokens;    /* before the split; of pairs: target tokens */
    int64_t train_groups;    /* of pairs: batches of an epoch */
    int64_t train_packs;     /* data.pack: sequences of an epoch */
    int64_t pairs, too_long; /* training pairs in batches, and pairs that were left out */
} dt_dataset_facts;

/* The checks of dt_dataset_open that need no full read, for `dtrun validate`; `fixed` as there. */
dt_status dt_dataset_check(dt_dataset_facts *out, const dt_recipe *recipe,
                           const dt_tokenizer *fixed, dt_error *err);

/* Whether samples are batches of sentence pairs: those functions below that name groups are for these,
 * and dt_sampler_fill and dt_validation_fill for all others. */
bool dt_dataset_has_pairs(const dt_dataset *dataset);
int64_t dt_dataset_valid_pairs(const dt_dataset *dataset);

/* --- sampler.c */
typedef struct dt_sampler {
    const dt_dataset *dataset;
    int64_t train_tokens; /* of the dataset */
    int64_t tokens;       /* T */
    int64_t ahead; /* tokens behind a sequence that it needs: 1, its last target; rows, pairs: 0 */
    bool groups; /* samples are batches of sentence pairs, and train_tokens counts those; T is 1 */
    bool packed; /* samples are packs, and train_tokens counts those; T is 1, of a batch `width` */
    int64_t width;
    int64_t sample_targets;
    uint64_t seed;
    int64_t epoch, sample; /* where the next step starts */
    dt_tail_kind tail;
    int64_t step_samples; /* drop: of a step */
    int64_t *order;       /* permutation of the epoch */
    int64_t order_epoch, order_count, shift;
} dt_sampler;

dt_status dt_sampler_init(dt_sampler *out, const dt_dataset *dataset, int64_t tokens, uint64_t seed,
                          dt_error *err);
void dt_sampler_release(dt_sampler *sampler);
/* One of so many training tokens that counts samples and steps, and draws none. Nothing to release.
 */
void dt_sampler_count(dt_sampler *out, int64_t train_tokens, int64_t tokens, int64_t ahead,
                      uint64_t seed);
/* The same where samples are known before, and all of an epoch: batches of pairs, or packs. */
void dt_sampler_count_known(dt_sampler *out, int64_t samples, bool packs, uint64_t seed);
/* What happens to the end of an epoch; wrap where it is not called. step_samples: of one step of
 * all ranks. DT_ERR_RECIPE where an epoch that is cut down to whole steps would have none. */
dt_status dt_sampler_set_tail(dt_sampler *sampler, dt_tail_kind tail, int64_t step_samples,
                              dt_error *err);
dt_status dt_sampler_seek(dt_sampler *sampler, int64_t epoch, int64_t sample, dt_error *err);

/* Fills the tensors of a batch, tokens and targets (count, T), with starts and positions where
 * documents are apart (documents.h), or rows and targets, with samples
 * first .. first+count of the current step (no move). The caller maps (micro-step, rank) to `first`. */
dt_status dt_sampler_fill(dt_sampler *sampler, void *const inputs[], int64_t first, int64_t count,
                          dt_error *err);
/* The batch of sample `first` of the current step: its shape, and source, previous and targets. */
dt_status dt_sampler_fill_group(dt_sampler *sampler, dt_pair_shape *shape, void *const inputs[],
                                int64_t first, dt_error *err);
/* How many targets count in samples first .. first+count of the current step. A function of the
 * position and the data alone, so that every rank knows a step's divisor before its forward passes. */
int64_t dt_sampler_valid_targets(dt_sampler *sampler, int64_t first, int64_t count);

/* Samples of the epoch that the sampler is in, those that drop leaves out included. Epochs differ
 * by at most one, since each is cut from an offset of its own. */
int64_t dt_sampler_epoch_samples(const dt_sampler *sampler);
/* Steps from the start of the first epoch until `epochs` of them are over: with wrap all of their
 * samples are seen (the last step may run on), with drop only whole steps of each. */
int64_t dt_sampler_epoch_steps(const dt_sampler *sampler, int64_t epochs, int64_t step_samples);

/* Moves on by the samples of one step. */
dt_status dt_sampler_advance(dt_sampler *sampler, int64_t samples, dt_error *err);

/* Validation sequence `index` of dt_validation_count, in file order, every T tokens; the last may
 * be short: its missing targets are -1. */
int64_t dt_validation_count(const dt_dataset *dataset, int64_t tokens);
/* Into place `place` of the tensors of a batch; index -1: a sample none of whose targets counts. */
dt_status dt_validation_fill(const dt_dataset *dataset, int64_t tokens, int64_t index,
                             void *const inputs[], int64_t place, dt_error *err);

/* Of pairs dt_validation_count counts batches. Batch `index`, the shortest pairs first; -1: one none of
 * whose targets counts. */
dt_status dt_validation_fill_group(const dt_dataset *dataset, int64_t index, dt_pair_shape *shape,
                                   void *const inputs[], dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
