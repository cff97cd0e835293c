/* recipe: writes the recipe of `dtrun init`, with a model sized for the data and the machine.
 *
 * Model    the largest of `sizes` (recipe.c) for which there are enough tokens, that fits the memory predicted by
 *          recipes/cost/memory.h, and that on CPUs trains within about an hour
 * Length   several passes over the data, within limits that depend on the size
 * Checked  the recipe is read and checked as by `dtrun validate`, which also gives the facts, memory and time in its
 *          comments
 */
#ifndef DT_RUNNER_INIT_RECIPE_H
#define DT_RUNNER_INIT_RECIPE_H

#include "runner/init/look.h"
#include "runner/launch/fit.h"

typedef struct dt_init_wish {
    const dt_look *look;
    const char *tokenizer; /* a file or folder; NULL: none needed */
    const char *nodes;     /* as in a recipe: "a,b"; NULL: this machine */
    const char *gpus_as;   /* value of --gpus-as; NULL: the devices of this machine */
    const char *path;      /* of the recipe, for messages */
} dt_init_wish;

/* Appends the recipe. DT_ERR_USAGE, or DT_ERR_RECIPE if the data do not fit any recipe. */
dt_status dt_init_recipe(dt_strbuf *out, const dt_init_wish *wish, dt_arena *arena, dt_error *err);

#endif
