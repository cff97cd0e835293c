/* help: writes the texts of --help and docs/commands.md from the table of commands. */
#ifndef DT_RUNNER_HELP_H
#define DT_RUNNER_HELP_H

#include "base/strbuf.h"
#include "runner/cli/command.h"

extern const char dt_help_about_runs[], dt_help_about_exit[];

/* Writes the help of an option with its choices and default, by `add`. */
void dt_help_option(dt_strbuf *out, const dt_option *option,
                    void (*add)(dt_strbuf *out, const char *text));

/* Adds the text of `dtrun help`. */
void dt_help_overview(dt_strbuf *out);
/* Adds the text of `dtrun help NAME`. */
void dt_help_command(dt_strbuf *out, const dt_command *command);
/* Adds the whole file docs/commands.md. */
void dt_help_markdown(dt_strbuf *out);

#endif
