/* prune: removes old files from the cache.
 *
 * A bundle or an agent is removed if no process of this machine runs from it, no agent of a machine
 * with the same home directory has it pinned (cache_pin.h), and no launch has used it for a day
 * (each launch updates the time of its folder). Data and cached digests are removed after thirty
 * days without use, incomplete files after a day. Errors are ignored: the next launch tries again.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "runner/node_setup/remote_helper/cache_pin.h"
#include "runner/node_setup/remote_helper/remote_helper.h"
#include "runner/node_setup/remote_helper/sent_tree.h"
#include "runner/node_setup/workdir/contents.h"

#define DAY_MS ((int64_t)86400 * 1000)

static void prune_folder(const char *cache, const char *below, int64_t keep_ms)
{
    int64_t now_ms = dt_clock_wall_ms();
    struct dirent *entry;
    char path[PATH_MAX];
    struct stat info;
    DIR *all;

    snprintf(path, sizeof(path), "%s/%s", cache, below);
    all = opendir(path);
    while (all != NULL && (entry = readdir(all)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s/%s", cache, below, entry->d_name);
        if (lstat(path, &info) == 0 && now_ms - (int64_t)info.st_mtime * 1000 > keep_ms &&
            (strcmp(below, DT_CONTENTS_FOLDER) == 0 || /* folders are built of copies */
             !dt_cache_is_used(cache, below, entry->d_name)))
            (void)dt_file_remove_tree(path, NULL);
    }
    if (all != NULL)
        closedir(all);
}

void dt_remote_helper_prune(const char *cache)
{
    dt_cache_pins_prune(cache);
    prune_folder(cache, "agents", DAY_MS);
    prune_folder(cache, "bundles", DAY_MS);
    prune_folder(cache, "data", 30 * DAY_MS);
    prune_folder(cache, DT_CONTENTS_FOLDER, 30 * DAY_MS);
    prune_folder(cache, DT_SETUPS_FOLDER, 30 * DAY_MS);
    prune_folder(cache, "digests", 30 * DAY_MS);
}
