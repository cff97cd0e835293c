/* chats: reads conversations of .jsonl files, makes them ids with the template of their model, and keeps these in
 * the cache (corpus.h).
 *
 *   CACHE/tokens/KEY/part-00000.chats ...   engine/data/chats.h
 *
 * KEY        as for text, with the template's text and the special tokens that it can use
 * Refused    a line that is not a conversation, with its file and number; a conversation that the template refuses, or
 *            of which it leaves out a message of the assistant; files in which nothing is trained. No line is left out
 *            except empty ones
 * Threads    a part of the files each
 */
#ifndef DT_RUNNER_CORPUS_CHATS_H
#define DT_RUNNER_CORPUS_CHATS_H

#include "engine/chat/chat.h"
#include "engine/data/data.h"
#include "recipes/fields/recipe.h"
#include "runner/corpus/corpus.h"

/* Returns the folder of the recipe's tokenizer, and the names of its files that templates depend on; NULL at the end. */
const char *dt_chats_folder(const dt_recipe *recipe, dt_arena *arena);
extern const char *const dt_chats_folder_files[];

/* Opens the recipe's template: data.chat_template, or that of the folder of its tokenizer, whose special tokens it
 * can use. DT_ERR_RECIPE naming what to set. The tokenizer is borrowed. */
dt_status dt_chats_template(dt_chat **out, const dt_recipe *recipe, const dt_tokenizer *tokenizer,
                            dt_arena *arena, dt_error *err);

/* One conversation of a file. All pointers are valid only during the call. */
typedef struct dt_chats_line {
    const char *path;
    int64_t number; /* of the line in the file, from 1 */
    const json_t *line;
    const dt_chat_row *row;
} dt_chats_line;

typedef dt_status dt_chats_line_fn(void *context, const dt_chats_line *line, bool *stop,
                                   dt_error *err);

/* Calls `each` for the conversations of the files in order, until it sets *stop. Errors name file and line. pairs: of
 * each line for the chosen, then for the rejected answer (dpo). */
dt_status dt_chats_each(const dt_data_files *files, const dt_chat *chat, bool pairs,
                        dt_chats_line_fn *each, void *context, dt_error *err);

/* The lines of conversations that a line with 'prompt', 'chosen' and 'rejected' stands for. New references.
 * DT_ERR_RECIPE: the line is not a pair of answers. */
dt_status dt_preference_lines(json_t *out[2], const json_t *line, dt_error *err);

/* The files of a list of the recipe. DT_ERR_RECIPE: one that is not .jsonl or .json. */
dt_status dt_chats_files(dt_data_files *out, const dt_string_list *patterns, const char *field,
                         dt_arena *arena, dt_error *err);

#endif
