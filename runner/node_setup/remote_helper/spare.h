/* spare: keeps the folder of an ended run for the next run of the same workdir, which then places only the files that
 * differ.
 *
 *   CACHE/spare/KEY-N/   folder, tree and stamps (stamps.h) of an ended run. KEY stands for the workdir on the launch
 *                        machine
 *
 * Only entries that are untouched and that `forget` would remove anyway come into a spare folder, and none comes while a
 * process of this user has its current folder or an open file there. A spare folder takes at most a quarter of the free
 * space, is removed if space is needed (cache.c), and after a day.
 *
 * Crashes    names of unfinished folders begin with a dot, and nothing takes them. A folder that was given has lost
 *            entries that are built again; a folder that was taken has its final name when it is complete
 * Threads    any, in any number of processes: a spare folder is renamed before it is used or removed
 */
#ifndef DT_REMOTE_HELPER_SPARE_H
#define DT_REMOTE_HELPER_SPARE_H

#include "base/memory.h"
#include "runner/node_setup/remote_helper/stamps.h"

#define DT_SPARE_FOLDER "spare" /* in CACHE */

typedef struct dt_spare {
    const char *path;   /* CACHE/spare/NAME; NULL: none was taken */
    const char *folder; /* in it */
} dt_spare;

/* Makes the untouched entries of the folder a spare folder: the folder itself if it has nothing else. Returns false if
 * nothing was given. */
bool dt_spare_give(const char *folder, const char *cache, dt_arena *arena);

/* Takes a spare folder that has at least half of the files of the tree. Removes what is not in the tree, sets
 * permissions and times, and sets acts[i] to what is left to do. *before: the entries that are kept. Returns false if
 * there is none. The caller renames out->folder and calls dt_spare_release. */
bool dt_spare_take(dt_spare *out, dt_stamped *before, dt_sent_act *acts, const dt_tree *tree,
                   const char *key, const char *cache, dt_arena *arena);
/* Removes what is left of a spare folder that was taken. */
void dt_spare_release(dt_spare *spare);

/* Removes spare folders that were given before `keep_ms`; 0: all. Unfinished ones are removed after a day. */
void dt_spare_prune(const char *cache, int64_t keep_ms);

#endif
