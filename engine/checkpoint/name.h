/* name: how checkpoint directories and their files are called.
 *
 *   step-00000100            at least 8 digits
 *   step-00000100-2          a second one of the same step (a run that was resumed from before it);
 *                            an existing whole one is never replaced
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
#define DT_CHECKPOINT_PART      "part" /* the marker of one node's files alone */
#define DT_CHECKPOINT_PARTIAL   ".partial"

typedef struct dt_checkpoint_name {
    int64_t step, copy; /* copy from 1 */
    bool partial;
} dt_checkpoint_name;

/* Into room for DT_CHECKPOINT_NAME_SIZE. */
void dt_checkpoint_name_format(char *out, const dt_checkpoint_name *name);
/* False for anything that format would not have made. */
bool dt_checkpoint_name_parse(dt_checkpoint_name *out, const char *text);

#ifdef __cplusplus
}
#endif
#endif
