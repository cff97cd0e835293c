/* files: finds the files that a recipe's list of paths and globs stands for, and maps a file as read-only
 * memory.
 *
 * A path that exists is used literally, even if it looks like a glob. The matches of a glob are
 * sorted by bytes (never by locale: every node must see the same order); the list's order is kept.
 * Errors  DT_ERR_RECIPE naming field and file: no match, missing, a directory, unreadable, empty
 */
#ifndef DT_ENGINE_DATA_FILES_H
#define DT_ENGINE_DATA_FILES_H

#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* mapping: maps a file as read-only memory.
 *
 * Pages come from the page cache, so the ranks of a node share one copy, and a corpus larger
 * than the memory can be read.
 * Invariant  the file must not be truncated while it is mapped (the kernel would send SIGBUS):
 *            replace data files by renaming a new one into place
 */

typedef struct dt_mapping {
    const unsigned char *bytes; /* contents of the file; NULL for an empty file */
    size_t length;
} dt_mapping;

/* DT_ERR_RECIPE naming the file and why it cannot be read. */
dt_status dt_mapping_open(dt_mapping *out, const char *path, dt_error *err);
void dt_mapping_close(dt_mapping *mapping); /* accepts a zeroed mapping */

typedef struct dt_data_file {
    const char *path;    /* path of the file, in the arena */
    dt_tokens_kind kind; /* kind of its tokens; never DT_TOKENS_AUTO */
    int64_t bytes;
} dt_data_file;

typedef struct dt_data_files {
    dt_data_file *items; /* the files, in the arena */
    int64_t count, bytes;
} dt_data_files;

/* Find the files. `field` is "data.train" or "data.validation", for messages. `kind` is the
 * recipe's; AUTO is resolved per file. */
dt_status dt_data_files_find(dt_data_files *out, const dt_string_list *patterns,
                             dt_tokens_kind kind, const char *field, dt_arena *arena,
                             dt_error *err);

/* DT_ERR_RECIPE if text and token files are mixed, within a list or between the lists. */
dt_status dt_data_files_agree(const dt_data_files *train, const dt_data_files *validation,
                              dt_error *err);

/* Kind of the recipe's tokens: data.tokens, or data.tokenizer if that is "char" or "byte". */
dt_tokens_kind dt_tokens_kind_of(const dt_recipe *recipe);
/* Whether data.tokenizer names a file or a folder. */
bool dt_tokenizer_is_file(const dt_recipe *recipe);

/* The recipe's word for a kind other than AUTO, and whether it contains ids instead of text. */
const char *dt_tokens_kind_name(dt_tokens_kind kind);
bool dt_tokens_kind_is_ids(dt_tokens_kind kind);

#ifdef __cplusplus
}
#endif

#endif
