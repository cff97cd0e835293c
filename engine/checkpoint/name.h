/* name: formats and parses the names of checkpoint directories and their files.
 *
 *   step-00000100            at least 8 digits
 *   step-00000100-2          a second one of the same step (the run was resumed from an earlier one);
 *                            a complete checkpoint is never replaced
 *   step-00000100.partial    being written, or left by a killed save
 */
#ifndef DT_ENGINE_CHECKPOINT_NAME_H
#define DT_ENGINE_CHECKPOINT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DT_CHECKPOINT_NAME_SIZE 64
#define DT_CHECKPOINT_INDEX     "index.json"
#define DT_CHECKPOINT_MARKER    "complete"
#define DT_CHECKPOINT_PART      "part" /* marker of a directory with only one node's files */
#define DT_CHECKPOINT_PARTIAL   ".partial"
#define DT_CHECKPOINT_OPTIMIZER \
    "optimizer-" /* begins the names of files that only training reads */

typedef struct dt_checkpoint_name {
    int64_t step, copy; /* copy counts from 1 */
    bool partial;
} dt_checkpoint_name;

/* `out` has DT_CHECKPOINT_NAME_SIZE bytes. */
void dt_checkpoint_name_format(char *out, const dt_checkpoint_name *name);
/* Returns false for any text that dt_checkpoint_name_format cannot produce. */
bool dt_checkpoint_name_parse(dt_checkpoint_name *out, const char *text);

#ifdef __cplusplus
}
#endif
#endif
