/* workdir: the folder of a command: as it is at the launch, sent to nodes that do not have it, and files of
 * it brought back.
 *
 * list.c     which files are sent: all but .git and what git or a .dtrunignore file leaves out. Each repository in the
 *            folder is asked on its own. Where there is none, or git fails, the .gitignore files are read here. The
 *            lines of .dtrunignore override git. A link is sent as a link; sockets, pipes and devices are left out
 * ignore.c   what git ignores, and the lines of ignore files
 * keep.c     what rules leave out, for messages; digests of the files, which are remembered in CACHE/workdirs, and a
 *            copy of each content in CACHE/files, so that nodes get the content of the launch, however late they are
 *            prepared
 * send.c     sends the contents that a node lacks, and has the node build the folder (remote_helper/tree.c)
 *
 * Limits     DT_TREE_ENTRIES_MAX files, and the bytes that the recipe sets
 * Ownership  trees live in the caller's arena
 * Threads    any
 */
#ifndef DT_RUNNER_NODE_SETUP_WORKDIR_WORKDIR_H
#define DT_RUNNER_NODE_SETUP_WORKDIR_WORKDIR_H

#include <stdatomic.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/workdir/tree.h"

#define DT_WORKDIR_IGNORE_FILE ".dtrunignore"
/* Name of the document that lists the folder with this digest, in runs/ID. */
#define DT_WORKDIR_TREE_FILE "workdir-%s.json"
#define DT_WORKDIR_PROBE     ".dtrun-probe-" /* front of a file that shows who shares the folder */

/* Something that a rule leaves out: a file, or a folder with what is below. */
typedef struct dt_workdir_left {
    const char *path, *rule; /* "data", "'data/' of .gitignore" */
    int64_t files, bytes;
} dt_workdir_left;

typedef struct dt_workdir_left_list {
    dt_workdir_left *items;
    int64_t count, capacity;
} dt_workdir_left_list;

/* Lists the folder, without digests. notes: a line for each kind of thing that is left out or may surprise,
 * and for each rule with what it leaves out. DT_ERR_RECIPE: too large (the message names the largest file),
 * or a file cannot be read or named. */
dt_status dt_workdir_list(dt_tree *out, dt_workdir_left_list *left, dt_strbuf *notes,
                          const char *folder, int64_t max_bytes, dt_arena *arena, dt_error *err);
/* Writes what was left out into the folder of a run, and finds a file there that an error message names in quotes:
 * returns "'data' is left out by 'data/' of .gitignore", or NULL. */
dt_status dt_workdir_left_write(const dt_workdir_left_list *left, const char *run_folder,
                                dt_error *err);
const char *dt_workdir_left_hint(const char *run_folder, const char *message, dt_arena *arena);

/* Sets digests, bytes and times, and copies contents to CACHE/files (cache NULL: does not). Files that
 * vanished are removed from the tree; a file that changes meanwhile has the content of one moment. */
dt_status dt_workdir_keep(dt_tree *io, const char *folder, const char *cache, dt_arena *arena,
                          dt_error *err);

/* Appends "3 changes since attempt 1: a.py, b/c.py, old.py (removed)", or nothing. */
void dt_workdir_describe_changes(dt_strbuf *out, const dt_tree *before, const dt_tree *now,
                                 int64_t attempt);

/* Creates a file in the folder whose name nobody else knows, so that a node that sees it shares the folder. *path is
 * the caller's to free and its file to remove; NULL if the folder cannot be written. */
void dt_workdir_mark(char **path, const char *folder);
void dt_workdir_unmark(char *path); /* accepts NULL */

/* send: builds the folder of a command on a node, from contents in this machine's CACHE/files. */

typedef struct dt_send_request {
    const dt_tree *tree;
    const char *what;           /* for messages: "workdir" */
    const char *node, *agent;   /* agent: on the node */
    const char *there;          /* folder on the node */
    const char *mode;           /* of remote_helper/tree.c: a key, "check" or "add" */
    const char *document; /* file of this machine with the document of the tree; NULL: none */
    const char *cache;          /* of this machine: has the contents, unless `sources` is set */
    const char *const *sources; /* [tree->count], files of this machine; NULL: the cache */
    const atomic_bool *cancelled;
    void (*progress)(void *context, const char *text); /* may be NULL */
    void *context;
} dt_send_request;

/* Sends what the node lacks, and gives the node's folder the entries of the tree. DT_ERR_UNSUPPORTED: a content is
 * missing here. DT_ERR_RECIPE: both sides changed a file; the message has the names. */
dt_status dt_workdir_send(const dt_send_request *request, dt_error *err);

/* collect: brings files and folders of a command from a node to the run's folder. */

typedef struct dt_collect_request {
    const char *node, *agent;
    const char *folder;  /* of the command on the node */
    const json_t *paths; /* array of relative paths; a slash at the end has no meaning */
    const char *into;    /* folder on this machine */
    const char *
        first; /* folder with the files of an earlier node; NULL: none. Files that are equal there are not
                          * kept again */
    int64_t max_bytes; /* more are refused with DT_ERR_UNSUPPORTED; -1: no limit */
    int64_t quiet_ms;  /* files that changed later than that are refused with DT_ERR_TIMEOUT */
    const atomic_bool *cancelled;
    void (*progress)(void *context, const char *text); /* may be NULL */
    void *context;
} dt_collect_request;

typedef struct dt_collect_result {
    int64_t files, bytes;
    dt_strbuf problems; /* lines; init by the caller */
    json_t *missing;    /* array of those `paths` that do not exist; new reference */
} dt_collect_result;

/* Adds to *out. A path that is missing, or a file that is refused, is not an error. A file replaces an older one of its
 * name once it is complete. DT_ERR_IO: this machine cannot write it; DT_ERR_PEER: the connection was lost. Both
 * name the files that are not here and where they are. */
dt_status dt_nodes_collect(dt_collect_result *out, const dt_collect_request *request,
                           dt_error *err);

#endif
