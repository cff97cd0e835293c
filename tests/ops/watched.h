/* watched: a device's table of ops, each replaced by one that counts and times its calls.
 *
 * The wrappers are made from engine/ops/list.h: a new op needs no line here. One table at a time is
 * watched; the counts are of the whole program.
 */
#ifndef DT_TESTS_OPS_WATCHED_H
#define DT_TESTS_OPS_WATCHED_H

#include "engine/ops/list.h"
#include "engine/ops/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct watched_op {
    const char *name;
    long calls;
    double seconds;
} watched_op;

extern watched_op watched_ops[DT_OPS_COUNT]; /* in the order of the list */

/* `real` stays in use; members that are NULL stay NULL. Every call returns the same table. */
const dt_ops *watched_table(const dt_ops *real);

#ifdef __cplusplus
}
#endif
#endif
