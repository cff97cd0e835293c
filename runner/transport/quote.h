/* quote: quotes a command for any login shell on the node.
 *
 * sshd passes one string to the login shell (bash, dash, zsh, fish, csh, tcsh, ...), and their quoting differs: fish
 * reads backslashes inside single quotes, csh reads '!' and refuses newlines there. So the login shell gets one
 * word in single quotes without these characters, which runs in /bin/sh: a printf that writes the real script,
 * with every special byte as \ooo, and an eval of it.
 *
 *   exec /bin/sh -c 'eval "$(printf "exec /opt/x \047two words\047")"'
 */
#ifndef DT_RUNNER_QUOTE_H
#define DT_RUNNER_QUOTE_H

#include "base/strbuf.h"

/* Appends `word` for POSIX sh: unquoted if that is safe, else in single quotes. */
void dt_quote_word(dt_strbuf *out, const char *word);

/* Appends `script` (POSIX sh, not ending in a newline) as one string for any login shell. */
void dt_quote_script(dt_strbuf *out, const char *script);

#endif
