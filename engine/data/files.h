/* files: the files that a recipe's list of paths and globs stands for.
 *
 * A path that exists is taken as it is, even where it looks like a glob. What a glob matches is
 * sorted by bytes (never by locale: every node must see the same order); the list's own order
 * stays.
 * Errors  DT_ERR_RECIPE naming field and file: no match, missing, a directory, unreadable, empty
 */
#ifndef DT_ENGINE_FILES_H
#define DT_ENGINE_FILES_H

#include "base/arena.h"
#include "recipes/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_data_file {
    const char *path;    /* in the arena */
    dt_tokens_kind kind; /* never DT_TOKENS_AUTO */
    int64_t bytes;
} dt_data_file;

typedef struct dt_data_files {
    dt_data_file *items; /* in the arena */
    int64_t count, bytes;
} dt_data_files;

/* `field` is "data.train" or "data.validation", for messages. `kind` is the recipe's; AUTO is
 * resolved file by file. */
dt_status dt_data_files_find(dt_data_files *out, const dt_string_list *patterns,
                             dt_tokens_kind kind, const char *field, dt_arena *arena,
                             dt_error *err);

/* Text and token files do not mix, in a list or between lists: DT_ERR_RECIPE. */
dt_status dt_data_files_agree(const dt_data_files *train, const dt_data_files *validation,
                              dt_error *err);

/* What the recipe says about tokens: data.tokens, or data.tokenizer where that is "char" or "byte". */
dt_tokens_kind dt_tokens_kind_of(const dt_recipe *recipe);
/* Whether data.tokenizer names a file or a folder. */
bool dt_tokenizer_is_file(const dt_recipe *recipe);

/* Of a kind that is not AUTO: the recipe's word, and whether it holds ids instead of text. */
const char *dt_tokens_kind_name(dt_tokens_kind kind);
bool dt_tokens_kind_is_ids(dt_tokens_kind kind);

#ifdef __cplusplus
}
#endif
#endif
