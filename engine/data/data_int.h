/* data_int: declares what the files of this folder share: headers of token files, shuffles, rows of
 * numbers, the contents of a tokenizer, text as tokens, and the contents of a dataset. */
#ifndef DT_ENGINE_DATA_DATA_INT_H
#define DT_ENGINE_DATA_DATA_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/display.h"
#include "base/memory.h"
#include "engine/data/chats.h"
#include "engine/data/data.h"
#include "engine/data/files.h"
#include "engine/data/mixture.h"
#include "engine/data/sentences.h"
#include "engine/data/sides.h"
#include "engine/data/stream.h"
#include "engine/philox.h"
#include "engine/tokens/bpe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* bin: reads the headers of files of token ids.
 *
 *   llm.c     header of 256 int32: magic, version, token count, zeros; then the tokens.
 *             magic 20240520 version 1: uint16 (GPT-2); 20240801 version 7: uint32 (Llama 3)
 *   nanoGPT   uint16 without a header
 *   fairseq   and Megatron: uint8, uint16, int32 or int64 without a header (recipes/foreign/databin.h)
 *
 * All little-endian.
 */

#define DT_BIN_HEADER_BYTES 1024

typedef struct dt_bin_layout {
    int64_t header_bytes, count;
    int width_bytes; /* bytes per token: 1, 2, 4 or 8 */
} dt_bin_layout;

/* Read the header and check it against the file's size. DT_ERR_RECIPE naming the file. */
dt_status dt_bin_layout_read(dt_bin_layout *out, const dt_data_file *file, dt_error *err);

/* shuffle: shuffles by Fisher and Yates (Knuth, TAOCP 2, algorithm P) over Philox. The order depends only
 * on the key, so every rank can compute it again when needed.
 */

/* Purpose of a draw: Philox's `layer`, so that draws for different purposes are independent. */
typedef enum dt_draw_kind { DT_DRAW_SHIFT, DT_DRAW_ORDER, DT_DRAW_TIES } dt_draw_kind;

dt_philox_key dt_shuffle_key(uint64_t seed, int64_t epoch, dt_draw_kind draw);

/* Number `index` of a stream of 64-bit draws; a Philox block has two. */
static inline uint64_t dt_shuffle_draw(const dt_philox_key *key, uint64_t index)
{
    dt_philox_block block = dt_philox_draw(key, index / 2);
    const uint32_t *word = &block.word[index % 2 * 2];

    return (uint64_t)word[1] << 32 | word[0];
}

/* Write a random permutation of 0 .. count-1. */
void dt_shuffle(int64_t *out, int64_t count, const dt_philox_key *key);

/* rows: reads tables of numbers from .csv and .npy files into host memory, to train models on rows.
 *
 * A row      the inputs, then the target or targets
 * .csv       a row per line: decimal numbers with commas between them, spaces around them allowed. A
 *            first line that does not start with a number contains column names and is skipped, as are
 *            empty lines. "\n" or "\r\n"
 * .npy       recognized by its first bytes; a row per row (npy.h). Bit-identical to the numbers from .csv:
 *            both are converted through double precision to fp32
 * Targets    a class, 0 .. outputs-1; or `outputs` numbers
 * Files      joined in the order of the list, in either format
 * Errors     DT_ERR_RECIPE with file, line and column, or the element's index as in NumPy: not a number,
 *            not finite, too few or too many numbers, a class out of range
 */

typedef struct dt_rows {
    int64_t inputs, outputs; /* number of inputs and outputs per row */
    bool classes;            /* the target is a class; else `outputs` numbers */
    int64_t count, capacity; /* number of rows, and rows allocated */
    float *values;           /* (count, inputs): the inputs of all rows */
    int32_t *class_ids;      /* (count): the targets, if they are classes */
    float *numbers;          /* (count, outputs): the targets, if they are numbers */
} dt_rows;

/* Set the shape of a row from the recipe; nothing to release. */
void dt_rows_init(dt_rows *out, const dt_recipe *recipe);
/* Append the rows of all files. */
dt_status dt_rows_read(dt_rows *rows, const dt_data_files *files, dt_error *err);
/* Number of rows of the files, from their headers; -1 if only reading them determines it. */
dt_status dt_rows_count(int64_t *count, const dt_rows *rows, const dt_data_files *files,
                        dt_error *err);
void dt_rows_release(dt_rows *rows);

/* Copy row `row` to sample `place` of a batch's tensors (rows, targets). */
void dt_rows_copy(void *const inputs[], int64_t place, const dt_rows *rows, int64_t row);
/* Fill a sample with a row that does not count. */
void dt_rows_blank(void *const inputs[], int64_t place, const dt_rows *rows);

/* chars: collects the code points of a text, the vocabulary of a "char" tokenizer.
 *
 * Uses one bit per code point: 136 KB for any text.
 */

typedef struct dt_char_set {
    uint64_t bits[DT_UTF8_CODES / 64];
} dt_char_set;

void dt_char_set_add(dt_char_set *set, uint32_t code);

/* tokenizer_int: declares what only the dataset knows about a tokenizer. */

typedef enum dt_tokenizer_kind {
    DT_TOKENIZER_CHAR,
    DT_TOKENIZER_BYTE,
    DT_TOKENIZER_IDS,
    DT_TOKENIZER_ROWS, /* no tokenizer: samples are rows of numbers */
    DT_TOKENIZER_BPE,  /* trained by another program; has a file of its own */
    DT_TOKENIZER_PAIRS /* for sentence pairs; `vocab` is the target's */
} dt_tokenizer_kind;

struct dt_tokenizer {
    dt_tokenizer_kind kind;
    int64_t vocab;
    uint32_t *characters; /* [vocab] code points, ascending; NULL unless CHAR */
    int32_t ascii[128];   /* code point → token, -1 if it has none; CHAR only */
    dt_bpe *bpe;          /* tokenizer of kind BPE; NULL until its file is read */
    dt_sides *sides;      /* tokenizers of kind PAIRS; NULL until its file is read */
    dt_strbuf file;       /* contents of the tokenizer's file; BPE and PAIRS */
    char file_name[64];   /* name of the file in a checkpoint */
    char digest[33];      /* XXH3-128 digest of the file */
};

/* Create a tokenizer; the caller owns *out. The set must not be empty; vocab 1 to 2^31-1. */
dt_status dt_tokenizer_new_char(dt_tokenizer **out, const dt_char_set *set, dt_error *err);
dt_status dt_tokenizer_new_byte(dt_tokenizer **out, dt_error *err);
dt_status dt_tokenizer_new_ids(dt_tokenizer **out, int64_t vocab, dt_error *err);
dt_status dt_tokenizer_new_rows(dt_tokenizer **out, dt_error *err);
/* Allocate a tokenizer; `characters`: with zeroed memory for them. */
dt_status dt_tokenizer_make(dt_tokenizer **out, dt_tokenizer_kind kind, int64_t vocab,
                            bool characters, dt_error *err);
dt_status dt_tokenizer_copy(dt_tokenizer **out, const dt_tokenizer *from, dt_error *err);

/* Whether its kind has a file. */
static inline bool dt_tokenizer_has_file(const dt_tokenizer *tokenizer)
{
    return tokenizer->kind == DT_TOKENIZER_BPE || tokenizer->kind == DT_TOKENIZER_PAIRS;
}

/* DT_ERR_RECIPE if the checkpoint's tokenizer differs from the recipe's. */
dt_status dt_tokenizer_bpe_same(const dt_tokenizer *checkpoint, const dt_tokenizer *recipe,
                                dt_error *err);

const char *dt_tokenizer_kind_name(dt_tokenizer_kind kind);

/* The token of a code point, -1 if it has none. CHAR only. */
int32_t dt_tokenizer_find(const dt_tokenizer *tokenizer, uint32_t code);

/* text: converts UTF-8 in a mapped file to code points and tokens, in two passes, so that a text is never
 * in memory as 32-bit numbers.
 *
 * NUL is refused: it never occurs in text, but does in UTF-16 and binary files.
 * Errors  DT_ERR_RECIPE naming the file and the byte
 */

/* Count code points and add them to the set. */
dt_status dt_text_scan(dt_char_set *set, int64_t *count, const char *path, const dt_mapping *text,
                       dt_error *err);

/* --- the contents of a dataset */

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
    int32_t document_end; /* token that ends documents (stream.h) */
    bool packed;          /* sequences are `packs` instead of every T tokens */
    dt_packs packs, valid_packs;
    /* If the data are a mixture: `train` has the training tokens of all parts, and `validation` what data.split keeps of
     * them, or the validation files. */
    dt_mixture mixture;
    /* If the data are rows: the counts above are of rows, and valid_start is in valid_rows. */
    bool has_rows;
    dt_rows rows, validation_rows;
    const dt_rows *valid_rows;
    /* If the data are conversations: the counts above are of their rows, which are packs. */
    bool has_chats;
    dt_chats chats, validation_chats;
    dt_chat_rows chat_rows, valid_chat_rows;
    /* If the data are sentence pairs: the counts above are of groups. */
    bool has_pairs;
    dt_sentences sentences, validation_sentences;
    dt_groups groups, valid_groups;
    dt_pair_ids pair_ids;
};

/* Find the training and validation files of the recipe, and check that they are of one kind. */
dt_status dt_dataset_find_files(dt_data_files *train, dt_data_files *validation,
                                const dt_recipe *recipe, dt_arena *arena, dt_error *err);

/* Open the streams and the tokenizer; `fixed` (can be NULL) has that kind (dataset_tokens.c). */
dt_status dt_dataset_open_ids(dt_dataset *dataset, const dt_data_files *train,
                              const dt_data_files *validation, const dt_recipe *recipe,
                              const dt_tokenizer *fixed, dt_error *err);
dt_status dt_dataset_open_chars(dt_dataset *dataset, const dt_data_files *train,
                                const dt_data_files *validation, const dt_tokenizer *fixed,
                                dt_error *err);
dt_status dt_dataset_open_bytes(dt_dataset *dataset, const dt_data_files *train,
                                const dt_data_files *validation, dt_error *err);

/* dataset_parts.c: the parts of a mixture. `train`: the files of all. */

/* Divide the tokens of each part by data.split, and set the ranges of the parts. */
dt_status dt_dataset_divide_text(dt_dataset *dataset, const dt_data_files *train,
                                 const dt_recipe *recipe, bool has_validation, dt_error *err);
/* Pack the training tokens of each part, whose ranges are then of packs. */
dt_status dt_dataset_pack_parts(dt_dataset *dataset, int64_t tokens, dt_error *err);
/* Place the conversations of each part in rows of their own. */
dt_status dt_dataset_place_parts(dt_dataset *dataset, const dt_data_files *train,
                                 const dt_recipe *recipe, bool has_validation, dt_error *err);
/* The end of the training tokens that a sequence with this token may read. */
int64_t dt_dataset_train_end(const dt_dataset *dataset, int64_t token);

/* Whether the recipe's pairs are text that has not been converted to ids yet. */
bool dt_dataset_pairs_are_text(const dt_recipe *recipe);
/* Check the tokenizer's vocabulary, the only fact known about such text. */
dt_status dt_dataset_check_pairs_text(dt_dataset_facts *out, const dt_recipe *recipe,
                                      dt_error *err);

/* Rows before the split, out of `count` rows of the training files. */
int64_t dt_dataset_split_rows(const dt_recipe *recipe, int64_t count, bool has_validation);

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
