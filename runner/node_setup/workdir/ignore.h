/* ignore: decides which files of a folder are left out: by git's answer, and by the lines of ignore files.
 *
 * git         `git ls-files` lists what git ignores, by all of its sources: .gitignore files, .git/info/exclude and
 *             core.excludesFile. A file that git tracks is not among it
 * Lines       for .dtrunignore, and for .gitignore where git cannot be asked. '#' starts a comment, '!' takes a file in
 *             again, '/' at the end means folders only. A pattern with another '/' is matched against the path from
 *             the folder of its file, else against the name. Each part between two '/' is a pattern of fnmatch(3); the
 *             part "**" stands for any number of folders. The last line that matches decides, and lines of deeper
 *             folders come later
 * Ownership   everything lives in the arena
 * Threads     one thread for each set of lines
 */
#ifndef DT_NODE_SETUP_WORKDIR_IGNORE_H
#define DT_NODE_SETUP_WORKDIR_IGNORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/strbuf.h"

/* --- lines */

typedef struct dt_ignore_line {
    const char *folder;  /* of the file with this line; "" for the root, else "a/b" */
    const char *file;    /* its name, for messages */
    const char *text;    /* the line as it was written */
    const char *pattern; /* without '!', and '/' at the start and end */
    bool takes_in, folders_only, whole_path;
} dt_ignore_line;

typedef struct dt_ignore {
    dt_ignore_line *lines; /* [count], in the order of the files */
    size_t count;
    int64_t capacity;
    dt_arena *arena;
} dt_ignore;

/* Adds the lines of an ignore file. */
void dt_ignore_add(dt_ignore *ignore, const char *folder, const char *file, const char *text,
                   size_t length);
/* Returns the last line that matches, which may take the file in; NULL: none. path: from the root, "a/b/c". The caller
 * does not descend into a folder that is left out. To remove the lines of a folder, set `count` back. */
const dt_ignore_line *dt_ignore_find(const dt_ignore *ignore, const char *path, bool is_folder);

/* --- git */

/* Runs git in the folder, whatever GIT_* variables of this process name another repository. It takes no lock, and
 * starts no program that the repository configures. input: its stdin, may be NULL. DT_ERR_UNSUPPORTED: no git;
 * DT_ERR_TIMEOUT; DT_ERR_IO: it failed, and the message has its first line. */
dt_status dt_git_run(dt_strbuf *out, const char *folder, const char *const *words,
                     const char *input, double seconds, dt_error *err);

typedef struct dt_git_ignored {
    const char *path; /* from the folder that was asked; a folder ends in '/' */
    const char *rule; /* "'data/' of .gitignore" */
} dt_git_ignored;

typedef struct dt_git_ignores {
    dt_git_ignored *items; /* [count], in the order of strcmp */
    size_t count;
} dt_git_ignores;

/* Asks git what it ignores in the folder. taken_in: a folder below of which it lists only what it would ignore if it
 * did not ignore this folder as a whole; NULL: none. DT_ERR_NOT_FOUND: git ignores the folder itself; other errors
 * as of dt_git_run. */
dt_status dt_git_ignores_ask(dt_git_ignores *out, const char *folder, const char *taken_in,
                             dt_arena *arena, dt_error *err);
/* Returns the rule that leaves the path out; NULL: none does. */
const char *dt_git_ignores_find(const dt_git_ignores *ignores, const char *path, bool is_folder);
/* Returns true if git ignores the folder or something in it. */
bool dt_git_ignores_any(const dt_git_ignores *ignores, const char *folder);

/* Returns the path with a backslash before each character that has a meaning in a pattern. */
const char *dt_ignore_escape(const char *path, dt_arena *arena);

#endif
