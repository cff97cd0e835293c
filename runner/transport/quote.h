/* quote: words through whatever shell a user has on the node.
 *
 * sshd hands one string to the login shell (bash, dash, zsh, fish, csh, tcsh, ...), and these agree
 * on very little: fish reads backslashes inside single quotes, csh reads '!' and refuses newlines
 * there. So the login shell sees one word in single quotes that has none of these, and what is in
 * it runs in /bin/sh: a printf that writes the true script with every byte that any shell could
 * take for its own as \ooo, and an eval of that.
 *
 *   exec /bin/sh -c 'eval "$(printf "exec /opt/x \047two words\047")"'
 */
#ifndef DT_RUNNER_QUOTE_H
#define DT_RUNNER_QUOTE_H

#include "base/strbuf.h"

/* `word` for POSIX sh: as it is where that is safe, else in single quotes. */
void dt_quote_word(dt_strbuf *out, const char *word);

/* `script` (POSIX sh, not ending in a newline) as one string for any login shell. */
void dt_quote_script(dt_strbuf *out, const char *script);

#endif
