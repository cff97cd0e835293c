/* pair_tokenizer: the tokenizers of sentence pairs that a recipe names, as one (engine/data/sides.h).
 *
 * data.tokenizer  dict.txt                          of both languages
 *                 tokenizer.json                    of both languages
 *                 a folder with dict.SOURCE.txt and dict.TARGET.txt, or with one of the above
 *                 translation.json                  what a checkpoint has beside it
 *                 left out                          the folder of a fairseq data-bin
 * data.codes      codes of subword-nmt, before a dictionary
 *
 * Errors  DT_ERR_RECIPE naming field and file
 */
#ifndef DT_RUNNER_CORPUS_PAIR_TOKENIZER_H
#define DT_RUNNER_CORPUS_PAIR_TOKENIZER_H

#include "base/arena.h"
#include "engine/data/data.h"

dt_status dt_pair_tokenizer_make(dt_tokenizer **out, const dt_recipe *recipe, dt_arena *arena,
                                 dt_error *err);

#endif
