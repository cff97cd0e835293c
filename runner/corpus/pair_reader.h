/* pair_reader: the sentence pairs of files (pair_files.h), one after another.
 *
 * A line of which a side is missing or empty is counted as broken and left out.
 * Errors  DT_ERR_RECIPE with file and line: text that is not UTF-8, files of different length, a .csv
 *         or .tsv without the columns; what `add` returns
 */
#ifndef DT_RUNNER_CORPUS_PAIR_READER_H
#define DT_RUNNER_CORPUS_PAIR_READER_H

#include "base/strbuf.h"
#include "runner/corpus/pair_files.h"

/* A pair: text, or ids without the end. Where one side turns out to be empty, *empty says which. */
typedef struct dt_pair_text {
    const char *text[DT_LANGUAGES];
    size_t length[DT_LANGUAGES];
} dt_pair_text;

typedef struct dt_pair_sink {
    void *context;
    /* DT_ERR_USAGE, and *side: what is wrong with the text of that side. *empty: the pair has been left
     * out, as that side has no word. */
    dt_status (*add_text)(void *context, const dt_pair_text *pair, dt_language *side, bool *empty,
                          dt_error *err);
    dt_status (*add_ids)(void *context, int32_t *const ids[DT_LANGUAGES],
                         const int64_t count[DT_LANGUAGES], bool *empty, dt_error *err);
} dt_pair_sink;

#define DT_PAIRS_NAMED 3

typedef struct dt_pair_tally {
    int64_t lines, pairs, bytes, broken;
    dt_strbuf broken_words; /* the first ones: "train.de:3 (it is empty), train.en:8" */
} dt_pair_tally;

/* Adds to *out, whose words are initialized. */
dt_status dt_pairs_read(dt_pair_tally *out, const dt_pair_file *file,
                        const char *const names[DT_LANGUAGES], const dt_pair_sink *sink,
                        dt_error *err);

#endif
