/* label_options: defines and reads --tag, --group and --note of commands that start runs. */
#ifndef DT_RUNNER_LABEL_OPTIONS_H
#define DT_RUNNER_LABEL_OPTIONS_H

#include "runner/cli/command.h"
#include "store/store.h"

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

#endif
