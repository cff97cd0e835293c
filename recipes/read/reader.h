/* reader: reads a recipe from YAML, one or several points of a sweep, and writes a resolved recipe.
 *
 *   gpt.yaml:14:9: unknown key 'batchsize' (did you mean 'batch.sequences'?)
 *
 * Accepts one YAML document of plain maps, lists and scalars, at most 1 MiB. Refused: duplicate
 * keys, tabs in indentation, broken UTF-8, tags, more than one document; aliases are refused rather than expanded,
 * which also rules out anchor bombs. The key "recipe" is the version (fields.h); another version is refused.
 * The key "extends" names the recipes below this one (reading.h); "${env:NAME}" is filled in
 * (read_int.h).
 * `--set a.b=value` takes the same values: YAML if the value begins with '[', '{' or a quote, else plain text.
 * `a.b[0]=value` sets one item of a list. Its errors begin "--set a.b=value: ". Relative paths in it start at the
 * current folder, those of the file at the file's folder; "~/" is HOME.
 */
#ifndef DT_RECIPES_READ_READER_H
#define DT_RECIPES_READ_READER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "recipes/fields/recipe.h"
#include "recipes/foreign/weights.h"
#include "recipes/read/origins.h"
#include "recipes/read/problems.h"

#ifdef __cplusplus
extern "C" {
#endif

/* sweep: reads a recipe with several values for some fields, as one recipe for each point.
 *
 *   sweep: {optimizer.lr: [1e-4, 3e-4], seed: [1, 2]}
 *   search: {kind: grid}        all combinations; the last field changes fastest
 *           {kind: zip}         the first of each, the second of each, ...
 *           {kind: random, count: 8, seed: 1}   8 different points of the grid
 *
 * A reading is of one point, by default the first, so that every command that reads a recipe gets one that
 * can run. The values override all layers, and --set must not set a swept field. If several layers have a
 * sweep, the last wins. An item is a value of the field: for a list field it may be a list.
 */

#define DT_RECIPE_SWEEP_KEY "sweep"
#define DT_SWEEP_AXES       16
#define DT_SWEEP_POINTS     10000

typedef struct dt_sweep {
    int64_t point;  /* in: from 0 */
    int64_t points; /* 0: the recipe has no sweep */
    size_t axes;
    const char *paths[DT_SWEEP_AXES];  /* paths of the fields */
    const char *values[DT_SWEEP_AXES]; /* of this point, as written */
} dt_sweep;

struct dt_reading;

/* Applies the point's values to the recipe, after all other fields. Errors are added to the problems. */
dt_status dt_sweep_apply(struct dt_reading *reading, dt_sweep *sweep);

typedef struct dt_recipe_source {
    const char *path;        /* name in messages; relative data paths start at its folder */
    const char *text;        /* text as written, stored with the run */
    bool unwritten;          /* no file has this text: messages show no position in it */
    const char *const *sets; /* "a.b=value", in order; may be NULL */
    size_t sets_count;
    const dt_problem_source *layers; /* on top of the text, in order (reading.h) */
    size_t layers_count;
    dt_sweep *sweep;             /* in and out: the point to read; NULL: the first */
    dt_origins *origins;         /* out, where each value comes from; may be NULL */
    dt_weights_of_run *find_run; /* model.from: run:NAME; NULL: refused */
} dt_recipe_source;

/* Reads the file into source->text and path (arena); "-" is stdin, with the path "/dev/stdin". */
dt_status dt_recipe_source_read(dt_recipe_source *out, const char *path, dt_arena *arena,
                                dt_error *err);

/* Text → tree → recipe: defaults, presets, shorthand, strict keys, types, ranges, then the checks
 * across fields (rules.c). DT_ERR_RECIPE. */
dt_status dt_recipe_read(dt_recipe *out, const dt_recipe_source *source, dt_arena *arena,
                         dt_error *err);

/* The same, with all errors and warnings in `problems`, and the first error also in `err`. `problems` may be
 * NULL. */
dt_status dt_recipe_read_all(dt_recipe *out, const dt_recipe_source *source, dt_problems *problems,
                             dt_arena *arena, dt_error *err);

/* Prefixes a message about data files with the line of the file that the message quotes, of the field that it names, or
 * of data.train. If the recipe cannot be read, only its path is added. */
void dt_recipe_locate_data(dt_error *err, const dt_recipe_source *source, dt_arena *arena);

/* The same for a message that names lines.run, or that quotes a file of `lines`: prefixes it with the line of that
 * field. */
void dt_recipe_locate_lines(dt_error *err, const dt_recipe_source *source, dt_arena *arena);

/* Applies `sets` to the resolved recipe of an earlier attempt; *out does not point into `from`. A preset in
 * `sets` sets its dimensions. */
dt_status dt_recipe_change(dt_recipe *out, const dt_recipe *from, const char *const *sets,
                           size_t sets_count, dt_arena *arena, dt_error *err);
dt_status dt_recipe_change_all(dt_recipe *out, const dt_recipe *from, const char *const *sets,
                               size_t sets_count, dt_problems *problems, dt_origins *origins,
                               dt_arena *arena, dt_error *err);

/* writer: writes a resolved recipe as a file that reads back the same anywhere. */

/* Adds JSON, which is also YAML, of all fields that differ from their defaults. */
void dt_recipe_write(dt_strbuf *out, const dt_recipe *recipe);

#ifdef __cplusplus
}
#endif

#endif
