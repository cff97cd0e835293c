/* tags: words that people put on runs, and the names of groups and runs.
 *
 * A tag or group has 1 to 64 letters, digits or one of . _ : / @ -, the first a letter or a digit;
 * several stand in order, with a blank between two.
 */
#ifndef DT_RUNNER_TAGS_H
#define DT_RUNNER_TAGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_TAGS_BYTES 2048 /* all tags of a run */

/* DT_ERR_USAGE; `what` is "tag" or "group". */
dt_status dt_tag_check(const char *what, const char *text, dt_error *err);
/* The name of a run, as recipes have it. */
dt_status dt_run_name_check(const char *name, dt_error *err);

bool dt_tags_have(const char *tags, const char *tag);
/* Takes in "+a" and "a", takes out "-b"; what is there already, or is not, changes nothing. */
dt_status dt_tags_change(const char **out, const char *tags, const char *const *words, size_t count,
                         dt_arena *arena, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
