/* task_fields: selects the fields that have an effect on a task. The other fields of a run of generate or score are
 * those of the checkpoint that it uses; those of a command have no value.
 */
#ifndef DT_RECIPES_FIELDS_TASK_FIELDS_H
#define DT_RECIPES_FIELDS_TASK_FIELDS_H

#include "base/arena.h"
#include "base/strbuf.h"
#include "recipes/fields/field_find.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether a recipe with this task may set the field. */
bool dt_field_is_of_task(const dt_field *field, dt_task_kind task);
/* Returns the option of `dtrun-engine generate` that the field sets, as in "top-k" (static);
 * NULL: none. */
const char *dt_field_generate_option(const dt_field *field);
/* Returns whether the task processes the lines of a file with a checkpoint: generate and score. */
bool dt_task_has_lines(dt_task_kind task);

/* Values of `processes` that are not a number. */
enum { DT_PROCESSES_GPU = 0, DT_PROCESSES_NODE = -1, DT_PROCESSES_WRONG = -2 };
/* Returns the processes of a command on each node, or one of these values. GPU for another task. */
int64_t dt_recipe_processes(const dt_recipe *recipe);

/* Appends the words of the recipe's command as one line, in quotes where a word has blanks. */
void dt_command_words(dt_strbuf *out, const dt_recipe *recipe);

/* Appends a word to a command as text, in quotes if the reader of recipes needs them (recipes/read/derive_command.c). */
void dt_command_add_word(dt_strbuf *out, const char *word);
/* Returns whether dtrun sets the environment variable for each process of a command (docs/command.md). */
bool dt_command_sets_variable(const char *name, size_t length);

/* Returns text for a shell: the recipe's `activate`, whose failure ends the shell with its code, and then `then`. In
 * the arena. Run it with DT_ACTIVATE_SHELL and -l -c, where that exists; it works in /bin/sh too. */
const char *dt_command_activated(const char *activate, const char *then, dt_arena *arena);
#define DT_ACTIVATE_SHELL "/bin/bash"

/* Returns the name of a task, as in recipes. */
const char *dt_task_name(dt_task_kind task);

#ifdef __cplusplus
}
#endif
#endif
