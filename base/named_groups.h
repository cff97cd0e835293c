/* named_groups: compiles a regular expression with named groups, and finds them in lines.
 *
 * The expression is a POSIX extended one (regcomp) with the parts of Python's syntax that lines of logs need:
 * (?P<name>...), (?<name>...), (?:...), and \d, \D, \s, \S, \w, \W, also \d, \s and \w inside [...].
 * Lazy repetitions, lookarounds and flags are refused. The longest match counts, as always in POSIX.
 *
 * Threads  one at a time
 * Errors   DT_ERR_RECIPE: not such an expression, a group without a name, or two with the same name
 */
#ifndef DT_BASE_NAMED_GROUPS_H
#define DT_BASE_NAMED_GROUPS_H

#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_named_groups dt_named_groups;

dt_status dt_named_groups_open(dt_named_groups **out, const char *pattern, dt_error *err);
void dt_named_groups_close(dt_named_groups *groups); /* accepts NULL */

/* Number of named groups, and the name of each (as long as the groups). */
int dt_named_groups_count(const dt_named_groups *groups);
const char *dt_named_groups_name(const dt_named_groups *groups, int index);
/* Returns the group's index; -1: none. */
int dt_named_groups_find(const dt_named_groups *groups, const char *name);

/* Finds the expression in the text (ended by NUL). Returns whether it occurs. */
bool dt_named_groups_match(dt_named_groups *groups, const char *text);
/* Returns where the group begins in the text of the last match; NULL: it did not take part. */
const char *dt_named_groups_text(const dt_named_groups *groups, int index, const char *text,
                                 size_t *length);

#ifdef __cplusplus
}
#endif
#endif
