/* init: what `dtrun init` does: it finds data files and their kind, and writes a recipe for them. */
#ifndef DT_RUNNER_INIT_INIT_H
#define DT_RUNNER_INIT_INIT_H

#include "base/error.h"
#include "base/memory.h"
#include "recipes/fields/recipe.h"
#include "runner/launch/estimate.h"

/* look: finds data files and detects their kind from a sample of each.
 *
 * Kinds      .npy, and .csv whose lines are numbers: rows. .bin: token ids. .jsonl, .json: conversations, if the first
 *            lines have one of the forms of engine/chat/chat.h; else documents, one JSON object a line. Other .csv: documents, one a record. Other files: text, if they are UTF-8
 * Folders    their files with a known extension, except README, LICENSE, tokenizer, config and CHANGES; no
 *            subfolders. Default: the current folder
 * Validation files with val, valid, validation, dev or eval as a word of their name (words end at - _ . and space)
 * Read       the first SAMPLE_BYTES of a file, and its size; rows of up to 64 MB completely
 * Errors     DT_ERR_USAGE with the file: missing, unreadable, empty, not text, or of mixed kinds
 */

typedef enum dt_look_kind {
    DT_LOOK_TEXT,
    DT_LOOK_JSONL,
    DT_LOOK_CHATS,   /* .jsonl with a conversation a line (engine/chat/chat.h) */
    DT_LOOK_RECORDS, /* .csv with a column of texts */
    DT_LOOK_ROWS,
    DT_LOOK_IDS
} dt_look_kind;

typedef struct dt_look {
    dt_look_kind kind;
    dt_string_list train, validation; /* paths as given; files of a folder start with its path */
    int64_t train_bytes;
    const char *field;        /* of documents: the key or column of the text */
    const char *tokenizer;    /* tokenizer.json among the files of a folder, or NULL */
    int64_t columns, classes; /* of rows; classes 0: the last column is a value, not a class */
} dt_look;

dt_status dt_look_at(dt_look *out, char *const *paths, int count, dt_arena *arena, dt_error *err);

/* Returns "text", "JSON lines", ... */
const char *dt_look_kind_name(dt_look_kind kind);

/* --- look.c */
/* The kind of one file, from its first bytes. */
typedef struct dt_sample {
    dt_look_kind kind;
    int64_t bytes; /* of the file */
    const char *field;
    int64_t columns, classes;
} dt_sample;

/* recipe: writes the recipe of `dtrun init`, with a model sized for the data and the machine.
 *
 * Model    the largest of `sizes` (recipe.c) for which there are enough tokens, that fits the memory predicted by
 *          recipes/cost/memory.h, and that on CPUs trains within about an hour
 * Length   several passes over the data, within limits that depend on the size
 * Checked  the recipe is read and checked as by `dtrun validate`, which also gives the facts, memory and time in its
 *          comments
 */

typedef struct dt_init_wish {
    const dt_look *look;
    const char *tokenizer; /* a file or folder; NULL: none needed */
    const char *weights;   /* a folder of weights to tune; NULL: a model from random weights */
    const char *nodes;     /* as in a recipe: "a,b"; NULL: this machine */
    const char *gpus_as;   /* value of --gpus-as; NULL: the devices of this machine */
    const char *path;      /* of the recipe, for messages */
    const char *mix;       /* weights of the training files, "0.7,0.3"; NULL: they are one text */
} dt_init_wish;

/* Appends the recipe. DT_ERR_USAGE, or DT_ERR_RECIPE if the data do not fit any recipe. */
dt_status dt_init_recipe(dt_strbuf *out, const dt_init_wish *wish, dt_arena *arena, dt_error *err);

/* --- chat.c */
/* Appends a recipe that tunes wish->weights on conversations, which are measured with the template of the weights. */
dt_status dt_init_chat_recipe(dt_strbuf *out, const dt_init_wish *wish, dt_arena *arena,
                              dt_error *err);

/* --- recipe_parts.c: what recipes have in common */
void dt_init_add_quoted(dt_strbuf *out, const char *text);
void dt_init_add_files(dt_strbuf *out, const char *key, const dt_string_list *files);
/* The training files: a list, or with wish->mix the parts of a mixture. */
void dt_init_add_train(dt_strbuf *out, const dt_init_wish *wish);
/* DT_ERR_USAGE if wish->mix is not a positive number for each training file, or the data cannot be mixed. */
dt_status dt_init_check_mix(const dt_init_wish *wish, dt_error *err);
void dt_init_add_place(dt_strbuf *out, const dt_init_wish *wish, bool gpus);
/* The first lines of the head, and a comment in it. */
void dt_init_add_schema(dt_strbuf *out);
void dt_init_add_comment(dt_strbuf *out, const char *label, const char *text);
/* Reads and checks a recipe as `dtrun validate` does. `text` must stay. */
dt_status dt_init_look_at(dt_preflight *flight, dt_run_estimate *estimate, const dt_init_wish *wish,
                          const char *text, dt_arena *arena, dt_error *err);

#endif
