/* sent_tree: knows what was placed in a run's folder, and what is the command's own there.
 *
 * FOLDER.tree        what the folder was last built of. It stays as long as the folder does, also after the end of the
 *                    run, so that a resume can tell a file that was sent from one that the command changed
 * FOLDER.tree.new    what an unfinished build places
 * FOLDER.setup       what a setup changed or created there
 *
 * A file or link is placed if its size and time of change, or its target, are those of one of these documents.
 * Everything else is the command's own: it is neither replaced nor removed. Nothing below a link or a file that
 * replaces a folder is looked at.
 */
#ifndef DT_REMOTE_HELPER_SENT_TREE_H
#define DT_REMOTE_HELPER_SENT_TREE_H

#include "base/strbuf.h"
#include "runner/node_setup/workdir/tree.h"

#define DT_SENT_TREE_RECORD     ".tree"
#define DT_SENT_TREE_UNFINISHED ".tree.new"
#define DT_SENT_TREE_SETUP      ".setup"
#define DT_SENT_TREE_PLACING \
    ".placing" /* end of the name of a file that is being placed, beside the folder */

#define DT_SETUPS_FOLDER "setups" /* in CACHE: setup.c */

typedef struct dt_sent_tree {
    const char *folder;
    dt_tree
        sent; /* from both documents: for each path the entry that is there, else the one of FOLDER.tree */
    dt_tree setup; /* from FOLDER.setup */
    bool
        adds; /* there are no documents, and `sent` is the new tree: its size and time show that a file is there */
    dt_strbuf parent; /* last folder that was looked at */
    bool parent_good;
} dt_sent_tree;

typedef enum dt_sent_state {
    DT_SENT_ABSENT,
    DT_SENT_PLACED,  /* as it was sent */
    DT_SENT_SETUP,   /* as a setup made it */
    DT_SENT_FOLDER,  /* a folder */
    DT_SENT_OWN,     /* the command's */
    DT_SENT_BLOCKED, /* below something of the command's that is not a folder */
} dt_sent_state;

/* Reads the documents; one that is missing or damaged counts as empty. */
void dt_sent_tree_read(dt_sent_tree *out, const char *folder, dt_arena *arena);
void dt_sent_tree_release(dt_sent_tree *tree);
dt_sent_state dt_sent_tree_state(dt_sent_tree *tree, const char *path);

typedef enum dt_sent_act {
    DT_SENT_KEEP,     /* it is there, or the command changed it and the entry did not change */
    DT_SENT_DATE,     /* it is there with another time of change */
    DT_SENT_PLACE,    /* nothing is there, or what was placed is replaced */
    DT_SENT_CONFLICT, /* the command changed or made it, and the entry changed too */
} dt_sent_act;

/* Decides what a build does with an entry of a new tree. */
dt_sent_act dt_sent_tree_decide(dt_sent_tree *tree, const dt_tree_entry *entry);

/* Removes what was placed, except entries of `spared` (may be NULL), and folders that are empty then. */
dt_status dt_sent_tree_remove(dt_sent_tree *tree, const dt_tree *spared, dt_error *err);

/* Gives the file at `path` the time of the entry. */
dt_status dt_sent_tree_date(const char *path, const dt_tree_entry *entry, dt_error *err);
/* Places an entry at `path`: a file is made at `unfinished` first, where nothing is, and replaces what is
 * there. move: the store gives its content away. */
dt_status dt_sent_tree_place(const char *path, const char *unfinished, const dt_tree_entry *entry,
                             const char *cache, bool move, dt_error *err);

#endif
