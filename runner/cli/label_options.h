/* label_options: --tag, --group and --note, as launch and fork have them. */
#ifndef DT_RUNNER_LABEL_OPTIONS_H
#define DT_RUNNER_LABEL_OPTIONS_H

#include "runner/cli/command.h"
#include "store/store.h"

#define DT_LABEL_OPTIONS                                                    \
    {.name = "tag",                                                         \
     .kind = DT_OPTION_LIST,                                                \
     .value = "TAG",                                                        \
     .help = "put a tag on the run, by which 'dtrun list --tag' finds it"}, \
        {.name = "group",                                                   \
         .kind = DT_OPTION_TEXT,                                            \
         .value = "GROUP",                                                  \
         .help = "the group it belongs to"},                                \
    {                                                                       \
        .name = "note", .kind = DT_OPTION_TEXT, .value = "TEXT",            \
        .help = "a note, for 'dtrun show'"                                  \
    }

dt_status dt_label_options_read(dt_labels *out, const dt_call *call, dt_error *err);

#endif
