/* help: writes the texts of --help and docs/commands.md from the table of commands. */
#ifndef DT_RUNNER_HELP_H
#define DT_RUNNER_HELP_H

#include "base/strbuf.h"
#include "runner/cli/command.h"
#include "runner/term/term.h"

#define DT_HELP_COLUMNS 88 /* width of the help texts */

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

/* A part of a help text: a paragraph, a label with its text, a line that is indented, or a blank line. */
typedef struct dt_help_part {
    const char *label;                   /* not terminated; NULL: none */
    size_t label_length, indent, column; /* column: of the text */
    bool filled;                         /* a paragraph, whose lines can be broken anywhere */
    dt_strbuf text;                      /* in one line; the caller initializes and releases it */
} dt_help_part;

/* Takes the part that begins at `text`. Returns the rest. */
const char *dt_help_next(dt_help_part *part, const char *text);

/* Wraps a help text for a terminal that is narrower than DT_HELP_COLUMNS. */
void dt_help_fit(dt_strbuf *text, const dt_term *term);

#endif
