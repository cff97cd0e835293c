/* nanogpt: declares the table of nanoGPT's settings, and reads them. */
#ifndef DT_RUNNER_CONVERT_NANOGPT_H
#define DT_RUNNER_CONVERT_NANOGPT_H

#include "runner/convert/launcher.h"

extern const dt_flag_table dt_nanogpt_flags;

/* Reads the words after train.py: files, which can be in `folder` (NULL: none), and options. A later setting replaces an
 * earlier one. Values that only a shell or Python can evaluate go to the draft's `left`. */
dt_status dt_nanogpt_read_settings(dt_flags *flags, dt_draft *draft, const dt_launcher *launcher,
                                   const char *folder, dt_error *err);

/* Reads a file of settings, of the current folder or else of `folder` (NULL: only there). */
dt_status dt_nanogpt_read_text(dt_strbuf *out, const char *path, const char *folder, dt_error *err);

#endif
