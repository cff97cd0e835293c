/* stamps: knows which entries of a folder nobody has touched since they were placed.
 *
 *   FOLDER.stamps   "KEY BOOT COUNT", and for each entry of FOLDER.tree the inode, the time of change (ctime), permissions
 *                   and group that it had when the build ended. The command starts after that
 *
 * An entry is untouched if it still has its stamp: the kernel changes the ctime at each change of content, permissions,
 * attributes or links, and no program can set it. An entry that changed since the kernel's last tick has no stamp, since
 * a change in the same tick could not be seen. Stamps count in the boot in which they were taken: a power loss can
 * damage files. They are not synced.
 */
#ifndef DT_REMOTE_HELPER_STAMPS_H
#define DT_REMOTE_HELPER_STAMPS_H

#include <sys/stat.h>

#include "base/memory.h"
#include "runner/node_setup/remote_helper/sent_tree.h"
#include "runner/node_setup/workdir/tree.h"

#define DT_STAMPS_RECORD ".stamps"

typedef struct dt_stamp {
    uint64_t inode;
    int64_t changed_ns; /* 0: not known */
    uint32_t mode, group;
} dt_stamp;

/* A list of entries with their stamps. */
typedef struct dt_stamped {
    const char *key; /* NULL: there are no stamps */
    dt_tree tree;
    dt_stamp *stamps; /* [tree.count] */
} dt_stamped;

/* Waits until the tick is later than now, so that what was done before can be stamped. */
void dt_stamps_pass_tick(void);
dt_stamp dt_stamp_of(const struct stat *info);
/* The same, but not known if a change in the current tick could not be seen. */
dt_stamp dt_stamp_settled(const struct stat *info);

/* Returns true if the kernel itself keeps the times of change on the file system of a folder. */
bool dt_stamps_are_kept(int folder);

/* Read a list from two files, or FOLDER.tree and FOLDER.stamps. Of another boot there are no stamps. */
void dt_stamps_read(dt_stamped *out, const char *tree, const char *stamps, dt_arena *arena);
void dt_stamps_read_folder(dt_stamped *out, const char *folder, dt_arena *arena);
bool dt_stamps_write(const char *path, const char *key, const dt_stamp *stamps, int64_t count);

/* Writes FOLDER.stamps after a build. acts: what the build did with each entry; one that it kept has a stamp only if it
 * is untouched since the build `before`. checked: it has been looked at just now. A failure is ignored: then there are no
 * stamps. */
void dt_stamps_write_folder(const char *folder, const char *key, const dt_tree *tree,
                            const dt_sent_act *acts, const dt_stamped *before, bool checked);

typedef enum dt_entry_state {
    DT_ENTRY_ABSENT,
    DT_ENTRY_UNTOUCHED,
    DT_ENTRY_TOUCHED
} dt_entry_state;

/* What is in a folder. */
typedef struct dt_survey {
    int fd; /* of the folder; -1: not open */
    const dt_stamped *all;
    dt_entry_state *states; /* [all->tree.count] */
    int64_t *
        names; /* [1 + all->tree.count]: how many entries are in the folder, and in each one below */
    int64_t touched;
    int64_t files, bytes; /* that are untouched */
} dt_survey;

/* Returns false if the folder, or one in it, is not as a build makes it. The caller closes *out. */
bool dt_survey_open(dt_survey *out, const dt_stamped *all, const char *folder, dt_arena *arena);
void dt_survey_close(dt_survey *of);
/* Returns true if the folder has nothing but the entries. */
bool dt_survey_is_all(const dt_survey *of);

#endif
