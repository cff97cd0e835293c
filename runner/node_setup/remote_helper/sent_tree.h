/* sent_tree: builds a folder of what was sent, and removes from it what was sent and the command did not change. */
#ifndef DT_REMOTE_HELPER_SENT_TREE_H
#define DT_REMOTE_HELPER_SENT_TREE_H

#include "runner/node_setup/workdir/tree.h"

#define DT_SENT_TREE_RECORD \
    ".tree" /* end of the name of the document beside the folder that lists what was sent */

#define DT_SETUPS_FOLDER "setups" /* in CACHE: setup.c */

/* Places an entry whose folder exists; replaces what is there, except a folder that is not empty. */
dt_status dt_sent_tree_place(const char *folder, const dt_tree_entry *entry, const char *cache,
                             dt_error *err);
dt_status dt_sent_tree_build(const char *folder, const dt_tree *tree, const char *cache,
                             dt_error *err);
/* Adds to the folder what a setup created in `from` (as links) and what it changed there (as copies). */
dt_status dt_sent_tree_overlay(const char *folder, const dt_tree *sent, const char *from,
                               dt_error *err);

/* Removes the entries of `sent` that `spared` (may be NULL) does not have, unless they were changed, and folders that
 * are empty then. kept and kept_bytes (may be NULL): files in the folder that stay, without __pycache__, which is
 * removed. */
dt_status dt_sent_tree_remove(const char *folder, const dt_tree *sent, const dt_tree *spared,
                              int64_t *kept, int64_t *kept_bytes, dt_error *err);

#endif
