/* pairs_int: declares the steps from the files of sentence pairs in a recipe to tokens. */
#ifndef DT_RUNNER_CORPUS_PAIRS_INT_H
#define DT_RUNNER_CORPUS_PAIRS_INT_H

#include "base/arena.h"
#include "base/strbuf.h"
#include "engine/data/data.h"
#include "engine/data/mapping.h"
#include "engine/data/sentences.h"
#include "recipes/fields/recipe.h"

/* pair_files: finds the files of sentence pairs that an entry of data.train or data.validation
 * refers to.
 *
 * Languages SOURCE and TARGET are data.source and data.target, "de" and "en" for example. Entries:
 *   NAME.jsonl, NAME.json   one object per line, with the keys "de" and "en"
 *   NAME.csv, NAME.tsv      with columns of those names in the first line; numbers select columns
 *                           of a file whose first line has no names. A .tsv has no quotes
 *   NAME                    two text files, NAME.de and NAME.en; line n of one is the translation
 *                           of line n of the other
 *   NAME                    the output of fairseq-preprocess: NAME.de-en.de.bin, NAME.de-en.en.bin
 *                           and their .idx (recipes/foreign/databin.h), or NAME.en-de.*
 * The first two can be patterns.
 *
 * Errors  DT_ERR_RECIPE naming field and file, and the expected files
 */

typedef enum dt_pair_format {
    DT_PAIR_TEXT,
    DT_PAIR_JSONL,
    DT_PAIR_CSV,
    DT_PAIR_TSV,
    DT_PAIR_DATABIN
} dt_pair_format;

typedef struct dt_pair_file {
    dt_pair_format format;
    const char *paths[DT_LANGUAGES];   /* the second is NULL if one file has both languages */
    const char *indexes[DT_LANGUAGES]; /* data-bin: the .idx files */
    int width_bytes;                   /* data-bin: bytes per id */
} dt_pair_file;

typedef struct dt_pair_files {
    dt_pair_file *items; /* in the arena */
    int64_t count;
} dt_pair_files;

/* names: the two languages. `field` is "data.train" or "data.validation", for messages. */
dt_status dt_pair_files_find(dt_pair_files *out, const dt_string_list *entries,
                             const char *const names[DT_LANGUAGES], const char *field,
                             dt_arena *arena, dt_error *err);

/* pair_reader: reads the sentence pairs of files (above), one after another.
 *
 * A line with a missing or empty side is counted as broken and left out.
 * Errors  DT_ERR_RECIPE with file and line: text that is not UTF-8, files of different length, a .csv
 *         or .tsv without the columns; what `add` returns
 */

/* A pair as text, or as ids without the end token. */
typedef struct dt_pair_text {
    const char *text[DT_LANGUAGES];
    size_t length[DT_LANGUAGES];
} dt_pair_text;

typedef struct dt_pair_sink {
    void *context;
    /* DT_ERR_USAGE: the text of *side is invalid. *empty: the pair was left out, because *side has no word. */
    dt_status (*add_text)(void *context, const dt_pair_text *pair, dt_language *side, bool *empty,
                          dt_error *err);
    dt_status (*add_ids)(void *context, int32_t *const ids[DT_LANGUAGES],
                         const int64_t count[DT_LANGUAGES], bool *empty, dt_error *err);
    int64_t most; /* lines to read, over all files; 0: all */
} dt_pair_sink;

#define DT_PAIRS_NAMED 3

typedef struct dt_pair_tally {
    int64_t lines, pairs, bytes, broken;
    dt_strbuf broken_words; /* the first broken lines: "train.de:3 (it is empty), train.en:8" */
} dt_pair_tally;

/* Returns whether the sink wants no more lines. */
static inline bool dt_pair_sink_is_full(const dt_pair_sink *sink, const dt_pair_tally *read)
{
    return sink->most > 0 && read->lines >= sink->most;
}

/* Reads the pairs of a file into the sink, and adds to the counts of *out, whose broken_words must be initialized. */
dt_status dt_pairs_read(dt_pair_tally *out, const dt_pair_file *file,
                        const char *const names[DT_LANGUAGES], const dt_pair_sink *sink,
                        dt_error *err);

/* pair_tally: counts the pairs and the broken lines of all formats.
 *
 * Counts a line that is left out, with the reason.
 */
void dt_pair_tally_broken(dt_pair_tally *out, const char *path, int64_t line, const char *why);
/* Passes a pair to the sink and counts it. `paths`: the file of each side, or one file and NULL. */
dt_status dt_pair_tally_add(dt_pair_tally *out, const dt_pair_text *pair, const char *const *paths,
                            int64_t line, const dt_pair_sink *sink, dt_error *err);

/* Implementations of dt_pairs_read for each format; text: the content of the file with both sides. */
dt_status dt_pairs_read_lines(dt_pair_tally *out, const dt_pair_file *file,
                              const dt_pair_sink *sink, dt_error *err);
dt_status dt_pairs_read_objects(dt_pair_tally *out, const dt_mapping *text,
                                const dt_pair_file *file, const char *const names[],
                                const dt_pair_sink *sink, dt_error *err);
dt_status dt_pairs_read_table(dt_pair_tally *out, const dt_mapping *text, const dt_pair_file *file,
                              const char *const names[], const dt_pair_sink *sink, dt_error *err);
dt_status dt_pairs_read_databin(dt_pair_tally *out, const dt_pair_file *file,
                                const dt_pair_sink *sink, dt_error *err);

/* pair_tokenizer: combines the tokenizers of both languages in a recipe into one (engine/data/sides.h).
 *
 * data.tokenizer  dict.txt                          of both languages
 *                 tokenizer.json                    of both languages
 *                 a folder with dict.SOURCE.txt and dict.TARGET.txt, or with one of the above
 *                 translation.json                  of a checkpoint
 *                 not set                           the folder of a fairseq data-bin
 * data.codes      codes of subword-nmt, before a dictionary
 *
 * Errors  DT_ERR_RECIPE naming field and file
 */

dt_status dt_pair_tokenizer_make(dt_tokenizer **out, const dt_recipe *recipe, dt_arena *arena,
                                 dt_error *err);

#endif
