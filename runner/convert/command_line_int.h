/* command_line_int: declares what the scanner of a script and the expansion of its variables
 * share. */
#ifndef DT_RUNNER_CONVERT_COMMAND_LINE_INT_H
#define DT_RUNNER_CONVERT_COMMAND_LINE_INT_H

#include "base/strbuf.h"
#include "runner/convert/command_line.h"

/* Limits: variables that are built from each other can double in length with every line. */
#define DT_SHELL_WORDS_MAX 65536
#define DT_SHELL_WORD_MAX  65536 /* bytes */

/* The position in the text, and the word that is being read. */
typedef struct dt_shell_scanner {
    dt_shell_script *script;
    const char *source, *at, *end;
    int line;
    dt_shell_command command;
    dt_strbuf word;
    int word_line;
    bool in_word, open;
    bool quoted;         /* a part of the word was in quotes */
    const char *heredoc; /* the word that ends the here-document after this line; NULL: none */
    dt_error *err;
} dt_shell_scanner;

void dt_shell_add_command(dt_shell_script *script, const dt_shell_command *command);
void dt_shell_define_words(dt_shell_script *script, const char *name, size_t length,
                           const dt_shell_command *value, bool exported);
/* Defines a variable from "NAME=value". */
dt_status dt_shell_define_word(dt_shell_script *script, const dt_shell_word *word, bool exported,
                               dt_error *err);

dt_status dt_shell_end_word(dt_shell_scanner *s);
const dt_shell_variable *dt_shell_find(const dt_shell_script *script, const char *name,
                                       size_t length);
/* At '$' or '`': appends the expansion to the word, or the text unchanged if only a shell can
 * expand it. */
dt_status dt_shell_expand(dt_shell_scanner *s, bool in_quotes);

#endif
