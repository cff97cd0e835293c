/* help: the texts of --help and of docs/commands.md, made from the table of commands. */
#ifndef DT_RUNNER_HELP_H
#define DT_RUNNER_HELP_H

#include "base/strbuf.h"
#include "runner/cli/command.h"

extern const char dt_help_about_runs[], dt_help_about_exit[];

/* What an option is for, with its choices and default; `add` writes it. */
void dt_help_option(dt_strbuf *out, const dt_option *option,
                    void (*add)(dt_strbuf *out, const char *text));

/* `dtrun help`. */
void dt_help_overview(dt_strbuf *out);
/* `dtrun help NAME`. */
dt_status dt_help_command(dt_strbuf *out, const dt_command *command, dt_error *err);
/* docs/commands.md, the whole file. */
dt_status dt_help_markdown(dt_strbuf *out, dt_error *err);

#endif
