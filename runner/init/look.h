/* look: what data there are, as far as a sample of each file tells.
 *
 * Kinds      .npy, and .csv whose lines are numbers: rows. .bin: ids. .jsonl, .json: documents, a JSON
 *            object a line. Other .csv: documents, a record each. All else is text, if it is UTF-8
 * Folders    their files of a known ending, README and LICENSE left out; not those of folders in them.
 *            None given: the folder that this is called in
 * Validation files called val, valid, validation, dev or eval, alone or between - _ . in their name
 * Read       the first SAMPLE_BYTES of a file, and its size; rows of up to 64 MB whole
 * Errors     DT_ERR_USAGE naming the file: missing, not to be read, empty, not text, of several kinds
 */
#ifndef DT_RUNNER_INIT_LOOK_H
#define DT_RUNNER_INIT_LOOK_H

#include "base/arena.h"
#include "base/error.h"
#include "recipes/recipe.h"

typedef enum dt_look_kind {
    DT_LOOK_TEXT,
    DT_LOOK_JSONL,
    DT_LOOK_RECORDS, /* .csv of texts */
    DT_LOOK_ROWS,
    DT_LOOK_IDS
} dt_look_kind;

typedef struct dt_look {
    dt_look_kind kind;
    dt_string_list train, validation; /* paths as they were given, below a folder with it */
    int64_t train_bytes;
    const char *field;        /* of documents: the key of the text */
    const char *tokenizer;    /* tokenizer.json among the files of a folder, or NULL */
    int64_t columns, classes; /* of rows; classes 0: the last column is a number */
} dt_look;

dt_status dt_look_at(dt_look *out, char *const *paths, int count, dt_arena *arena, dt_error *err);

/* "text", "JSON lines", ... */
const char *dt_look_kind_name(dt_look_kind kind);

/* --- look_sample.c */
/* Of one file, from its first bytes. */
typedef struct dt_sample {
    dt_look_kind kind;
    int64_t bytes; /* of the file */
    const char *field;
    int64_t columns, classes;
} dt_sample;

dt_status dt_sample_read(dt_sample *out, const char *path, dt_arena *arena, dt_error *err);

#endif
