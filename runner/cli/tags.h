/* tags: checks and changes tags, groups and names of runs, and reads the options that set them.
 *
 * A tag or group has 1 to 64 letters, digits or any of . _ : / @ -, the first a letter or a digit. The tags
 * of a run are one text, sorted and separated by one space.
 */
#ifndef DT_RUNNER_CLI_TAGS_H
#define DT_RUNNER_CLI_TAGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"
#include "runner/cli/command.h"
#include "store/run.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_TAGS_BYTES 2048 /* all tags of a run */

/* DT_ERR_USAGE if `name` is not a valid run name. */
dt_status dt_run_name_check(const char *name, dt_error *err);

bool dt_tags_have(const char *tags, const char *tag);
/* Adds the tags "+a" and "a", removes "-b". Adding a present tag or removing an absent one does nothing. */
dt_status dt_tags_change(const char **out, const char *tags, const char *const *words, size_t count,
                         dt_arena *arena, dt_error *err);

/* label_options: defines and reads --tag, --group and --note of commands that start runs. */

#define DT_LABEL_OPTIONS                                         \
    {.name = "tag",                                              \
     .kind = DT_OPTION_LIST,                                     \
     .value = "TAG",                                             \
     .help = "tag the run; 'dtrun list --tag' finds it"},        \
        {.name = "group",                                        \
         .kind = DT_OPTION_TEXT,                                 \
         .value = "GROUP",                                       \
         .help = "put the run in this group"},                   \
    {                                                            \
        .name = "note", .kind = DT_OPTION_TEXT, .value = "TEXT", \
        .help = "note on the run, printed by 'dtrun show'"       \
    }

dt_status dt_label_options_read(dt_labels *out, const dt_call *call, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
