/* script_int: declares what the reader of a script, the expansion of words and the table of commands share. */
#ifndef DT_RUNNER_CONVERT_SCRIPT_INT_H
#define DT_RUNNER_CONVERT_SCRIPT_INT_H

#include "base/strbuf.h"
#include "runner/convert/script.h"

#define DT_SCRIPT_WORD_MOST \
    65536 /* bytes; variables that are built from each other can double with every line */

typedef struct dt_script_scanner {
    dt_script *script;
    const char *at, *end;
    int line;
    dt_shell_command command; /* the command that is being read */
    dt_strbuf word;
    int word_line;
    bool in_word, in_path;
    size_t plain; /* bytes of the word before its first quote or expansion */
    size_t redirections;
    dt_error *err;
} dt_script_scanner;

/* "SOURCE:LINE: WHAT; 'dtrun import --record ...'". */
dt_status dt_script_refuse(dt_script_scanner *s, int line, const char *what);

void dt_script_begin_word(dt_script_scanner *s);
dt_status dt_script_end_word(dt_script_scanner *s);
/* Marks the word as no longer plain. */
void dt_script_not_plain(dt_script_scanner *s);
/* Adds text that only a shell can expand, with the reason. */
void dt_script_add_open(dt_script_scanner *s, const char *end, const char *reason);
/* At '$' or '`'. */
dt_status dt_script_expand(dt_script_scanner *s, bool in_quotes);
/* Returns the position after the bracket that closes the one at `at`, or NULL. */
const char *dt_script_after_bracket(const char *at, const char *end);
/* Returns the value without marks; *open: the reason of its first open part, or NULL. */
const char *dt_script_plain(const dt_script *script, const char *value, const char **open);

/* script_commands.c: takes a command that has ended. */
dt_status dt_script_take_command(dt_script_scanner *s);

#endif
