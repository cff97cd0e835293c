/* ignore: decides by rules as in .gitignore which files of a folder are left out.
 *
 * Rules       a line is a pattern; '#' starts a comment, '!' takes a file in again, '/' at the end means folders only.
 *             A pattern with another '/' is matched against the path from the folder of its file, else against the
 *             name. '*' and '?' do not match '/'; "**" between slashes matches any number of folders. The last
 *             pattern that matches decides, and rules of deeper folders come later
 * Time        linear in the lengths of pattern and path
 * Ownership   init and release; texts are copied
 * Threads     one thread for each set of rules
 */
#ifndef DT_NODE_SETUP_WORKDIR_IGNORE_H
#define DT_NODE_SETUP_WORKDIR_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct dt_ignore_rule dt_ignore_rule;

typedef struct dt_ignore {
    dt_ignore_rule *rules; /* [count], in the order of the files */
    size_t count, capacity;
} dt_ignore;

void dt_ignore_init(dt_ignore *ignore);
void dt_ignore_release(dt_ignore *ignore);

/* Adds the lines of a file in the folder `base`: "" for the root, else "a/b". file: its name, for messages. */
void dt_ignore_add(dt_ignore *ignore, const char *base, const char *file, const char *text,
                   size_t length);
/* Removes all rules after the first `count`: those of a folder that was left. */
void dt_ignore_cut(dt_ignore *ignore, size_t count);
/* path: from the root, "a/b/c". The caller does not descend into an ignored folder. */
bool dt_ignore_has(const dt_ignore *ignore, const char *path, bool is_folder);
/* The same; returns the rule that leaves it out, until rules are added or removed; NULL: none does. */
const dt_ignore_rule *dt_ignore_find(const dt_ignore *ignore, const char *path, bool is_folder);
/* Return the rule as it was written, and the name of its file, as long as the rule. */
const char *dt_ignore_rule_text(const dt_ignore_rule *rule);
const char *dt_ignore_rule_file(const dt_ignore_rule *rule);

#endif
