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
#ifndef DT_RECIPES_READ_SWEEP_H
#define DT_RECIPES_READ_SWEEP_H

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
    const char *paths[DT_SWEEP_AXES];  /* paths of the fields */
    const char *values[DT_SWEEP_AXES]; /* of this point, as written */
} dt_sweep;

struct dt_reading;

/* Applies the point's values to the recipe, after all other fields. Errors are added to the problems. */
dt_status dt_sweep_apply(struct dt_reading *reading, dt_sweep *sweep);

#ifdef __cplusplus
}
#endif
#endif
