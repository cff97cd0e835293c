/* sweep: one recipe that stands for several, each with values of its own.
 *
 *   sweep: {optimizer.lr: [1e-4, 3e-4], seed: [1, 2]}
 *   search: {kind: grid}        every value of one with every value of the others; the last moves fastest
 *           {kind: zip}         the first of each, the second of each, ...
 *           {kind: random, count: 8, seed: 1}   so many of the grid, none twice
 *
 * A reading is of one point; without being asked for another it is of the first, so that every command that
 * reads a recipe has one that can be run. The values are laid over all layers, and --set may not give a field
 * that is swept. Of several layers with a sweep the last counts. An item is what the field takes: of a
 * field that is a list an item may be a list.
 */
#ifndef DT_RECIPES_SWEEP_H
#define DT_RECIPES_SWEEP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_RECIPE_SWEEP_KEY "sweep"
#define DT_SWEEP_AXES       16
#define DT_SWEEP_POINTS     10000

typedef struct dt_sweep {
    int64_t point;  /* in: from 0 */
    int64_t points; /* 0: the recipe has no sweep */
    size_t axes;
    const char *paths[DT_SWEEP_AXES];  /* of the fields */
    const char *values[DT_SWEEP_AXES]; /* of this point, as written */
} dt_sweep;

struct dt_reading;

/* The point's values into the recipe, after all else was given. What is wrong is reported. */
dt_status dt_sweep_apply(struct dt_reading *reading, dt_sweep *sweep);

#ifdef __cplusplus
}
#endif
#endif
