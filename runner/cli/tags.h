/* tags: checks the names of tags, groups and runs, and changes the tags of a run.
 *
 * A tag or group has 1 to 64 letters, digits or any of . _ : / @ -, the first a letter or a digit. The tags
 * of a run are one text, sorted and separated by one space.
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

/* DT_ERR_USAGE if `text` is not a valid tag or group; `what` is "tag" or "group". */
dt_status dt_tag_check(const char *what, const char *text, dt_error *err);
/* DT_ERR_USAGE if `name` is not a valid run name. */
dt_status dt_run_name_check(const char *name, dt_error *err);

bool dt_tags_have(const char *tags, const char *tag);
/* Adds the tags "+a" and "a", removes "-b". Adding a present tag or removing an absent one does nothing. */
dt_status dt_tags_change(const char **out, const char *tags, const char *const *words, size_t count,
                         dt_arena *arena, dt_error *err);

#ifdef __cplusplus
}
#endif
#endif
