/* rotation: which part of what a rank holds is digested after which step.
 *
 * The parameters that a rank holds are cut into pieces, and the pieces are dealt out to rounds of at most `budget_bytes`
 * and `pieces_most` pieces. Step s has the round (s - 1) mod rounds: after `rounds` steps everything was digested once.
 * Pure functions of sizes, so that a replay on ranks of the same arrangement has the same rounds.
 *
 * Piece      within one parameter, so that a difference has a name
 * Units      first, elems: elements of what the rank holds of the parameter
 */
#ifndef DT_ENGINE_RECORD_ROTATION_H
#define DT_ENGINE_RECORD_ROTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The part of a parameter that a rank holds. */
typedef struct dt_rotation_part {
    int param;
    int64_t first, elems;
    int64_t elem_bytes; /* digested for an element: value, gradient and moments */
} dt_rotation_part;

typedef struct dt_rotation_piece {
    int param;
    int64_t first, elems;
} dt_rotation_piece;

typedef struct dt_rotation {
    dt_rotation_piece *pieces;
    int64_t *starts; /* [rounds + 1]: round r has the pieces starts[r] .. starts[r + 1] */
    int64_t piece_count, rounds;
    int64_t most; /* pieces of the largest round */
} dt_rotation;

/* budget_bytes, pieces_most: above 0. Without parts there is one round, without pieces. */
dt_status dt_rotation_make(dt_rotation *out, const dt_rotation_part *parts, int64_t count,
                           int64_t budget_bytes, int64_t pieces_most, dt_error *err);
void dt_rotation_release(dt_rotation *rotation); /* accepts a zeroed struct */

/* The round of a step, from 1. */
int64_t dt_rotation_round(const dt_rotation *rotation, int64_t step);

/* The part of a buffer of `elems` elements that belongs to a round. */
void dt_rotation_window(int64_t *start, int64_t *end, const dt_rotation *rotation, int64_t round,
                        int64_t elems);

/* Bytes to digest in a step of `flops` floating point operations, so that it takes less than a hundredth of the step.
 * host: the host reads the memory of the device. */
int64_t dt_rotation_budget(double flops, bool host);

#ifdef __cplusplus
}
#endif
#endif
