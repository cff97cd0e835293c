/* nanogpt: what the parts of nanoGPT's conversion share: its table, and how its settings are read into it. */
#ifndef DT_RUNNER_CONVERT_NANOGPT_H
#define DT_RUNNER_CONVERT_NANOGPT_H

#include "runner/convert/launcher.h"

extern const dt_flag_table dt_nanogpt_flags;

/* What stands behind train.py: the files, also those that lie in `folder` (NULL: none), and the options. A later
 * one counts. What only a shell or Python knows goes into what the draft does not carry. */
dt_status dt_nanogpt_read_settings(dt_flags *flags, dt_draft *draft, const dt_launcher *launcher,
                                   const char *folder, dt_error *err);

#endif
