/* databin: reads the index of token files that fairseq-preprocess and Megatron-LM's preprocess_data write:
 * PREFIX.bin has the ids of all sentences, PREFIX.idx their width, and fairseq's dict.txt a line for each
 * symbol.
 *
 *   PREFIX.idx   "MMIDIDX\0\0", uint64 version 1, uint8 type of the ids, uint64 sentences, [Megatron:
 *                uint64 documents,] int32 tokens of each sentence, int64 byte in PREFIX.bin at which each
 *                begins[, int64 first sentence of each document]
 *   type         1 uint8  2 int8  3 int16  4 int32  5 int64  6, 7 float64  8 uint16  9 uint32  10 uint64
 *   dict.txt     "symbol count" a line; its ids follow the four that every dictionary has:
 *                0 <s>, 1 <pad>, 2 </s>, 3 <unk>
 *
 * All little-endian. Source: fairseq/data/indexed_dataset.py, MMapIndexedDataset, and dictionary.py;
 * megatron/core/datasets/indexed_dataset.py.
 */
#ifndef DT_RECIPES_FOREIGN_DATABIN_H
#define DT_RECIPES_FOREIGN_DATABIN_H

#include "base/error.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_DATABIN_SPECIALS 4 /* ids that are not in dict.txt */

typedef struct dt_databin {
    dt_tokens_kind kind; /* type of the ids; DT_TOKENS_AUTO: there is no such index */
    int64_t vocab;       /* size of the vocabulary of dict.txt in the folder; 0: no dict.txt */
} dt_databin;

/* Returns the recipe's word for a kind of bare ids. */
const char *dt_databin_word(dt_tokens_kind kind);

/* Looks for the index and dict.txt of `bin`, a path that ends in ".bin". DT_ERR_RECIPE naming the file: an
 * index that is cut off, of another version, not of integers, of another .bin, or in an older fairseq format. */
dt_status dt_databin_look(dt_databin *out, const char *bin, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
