/* pair_files: the files of sentence pairs that an entry of data.train or data.validation stands for.
 *
 * Languages SOURCE and TARGET are data.source and data.target, "de" and "en" for example. An entry is
 *   NAME.jsonl, NAME.json   objects a line, with the keys "de" and "en"
 *   NAME.csv, NAME.tsv      with columns of those names in the first line; numbers name columns of a file
 *                           whose first line has no names. A .tsv knows no quotes
 *   NAME                    two text files, NAME.de and NAME.en, line n of the one being the translation
 *                           of line n of the other
 *   NAME                    what fairseq-preprocess wrote, NAME.de-en.de.bin, NAME.de-en.en.bin and their
 *                           .idx (recipes/databin.h), or NAME.en-de.*
 * Patterns stand for the first two.
 *
 * Errors  DT_ERR_RECIPE naming field and file, and what was looked for
 */
#ifndef DT_RUNNER_CORPUS_PAIR_FILES_H
#define DT_RUNNER_CORPUS_PAIR_FILES_H

#include "base/arena.h"
#include "engine/data/sentences.h"
#include "recipes/recipe.h"

typedef enum dt_pair_format {
    DT_PAIR_TEXT,
    DT_PAIR_JSONL,
    DT_PAIR_CSV,
    DT_PAIR_TSV,
    DT_PAIR_DATABIN
} dt_pair_format;

typedef struct dt_pair_file {
    dt_pair_format format;
    const char *paths[DT_LANGUAGES]; /* in the arena; the second is NULL where one file has both */
    const char *indexes[DT_LANGUAGES]; /* data-bin: .idx */
    int width_bytes;                   /* data-bin: of an id */
} dt_pair_file;

typedef struct dt_pair_files {
    dt_pair_file *items; /* in the arena */
    int64_t count;
} dt_pair_files;

/* names: of the languages. `field` is "data.train" or "data.validation", for messages. */
dt_status dt_pair_files_find(dt_pair_files *out, const dt_string_list *entries,
                             const char *const names[DT_LANGUAGES], const char *field,
                             dt_arena *arena, dt_error *err);

#endif
