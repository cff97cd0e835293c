/* man: writes manual pages (man(7)) from the table of commands. */
#ifndef DT_RUNNER_MAN_H
#define DT_RUNNER_MAN_H

#include "base/strbuf.h"
#include "runner/cli/command.h"

/* Adds the page dtrun(1). */
void dt_man_overview(dt_strbuf *out);
/* Adds the page dtrun-NAME(1). */
void dt_man_command(dt_strbuf *out, const dt_command *command);

#endif
