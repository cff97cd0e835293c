/* remote_helper: the part of dtrun-agent that looks at a node and takes files there; and the cache's marks
 * of entries in use, which `dtrun gc` and a serving agent use too.
 *
 *   probe BUNDLE [PATH]    prints facts of this machine as a JSON object (probe.c)
 *   receive BUNDLE         stores a bundle from stdin in CACHE/bundles/BUNDLE (receive.c)
 *   alike                  reads a bundle's header from stdin; prints which files other bundles have (receive.c)
 *   put DIGEST BYTES NAME  stores a file from stdin in CACHE/data/DIGEST; resumes a partial upload (main.c)
 *   put ... NAME FOLDER    the same, in FOLDER
 *   get PATH OFFSET        writes a file from OFFSET to stdout
 *   tree FOLDER [KEY | check | add]
 *                          gives the folder of a command the files of a list on stdin (tree.c)
 *   collect FOLDER         sends files of FOLDER, whose paths are on stdin (collect.c)
 *   setup ENTRY FOLDER     runs a setup command once; the request is on stdin (setup.c)
 *   end_setup ENTRY        ends what a setup that was killed has left
 *   forget FOLDER CHECKPOINTS WORKDIR
 *                          removes the files of a run; names on stdin (forget.c)
 *   wipe FOLDER            removes STATE/nodes/RUN of an ended run (forget.c)
 *   listen ADDRESS         prints its port and answers connections until stdin ends (connectivity_check.c)
 *   gpus [watch]           prints what uses the GPUs, with watch again at each change (gpu_uses.c)
 *   leave                  starts a detached process, and prints "PID START" (probe.c)
 *   look PID START         prints "alive" or "gone" for that process, and ends it
 *   dial ADDRESS PORT ...  makes these connections; prints a line for each
 *   talk                   answers requests on stdin, one after the other (main.c)
 *
 * Requests of a talk:
 *
 *   size PATH              prints "BYTES INODE CHANGED" of a readable file, else "-1"
 *   digest PATH            prints "at BYTES" lines while it reads, then "is DIGEST" (../workdir/contents.h)
 *   same PATH TEXT         prints yes if the file contains TEXT and its folder is writable
 *   have DIGEST NAME       prints "have" if CACHE/data/DIGEST/NAME exists, else "no"
 *   hold PATH              prints "held"; until the talk ends the folder is not pruned
 *   folder PATH            creates it and the folders above it, mode 0700
 *   get PATH OFFSET        prints how many bytes the file has from OFFSET on; then these follow
 *
 * Each word of a request ends with a NUL, and a request with one more. An answer is what is printed above, then
 * a line of DT_TALK_END, 0 or 1 if it failed, a space and the error.
 *
 * CACHE is derived from the program's own path, CACHE/agents/HASH. Errors are one line on stderr, with exit code 3, or
 * DT_REMOTE_HELPER_CONFLICT (tree); no incomplete file gets its final name.
 */
#ifndef DT_RUNNER_NODE_SETUP_REMOTE_HELPER_REMOTE_HELPER_H
#define DT_RUNNER_NODE_SETUP_REMOTE_HELPER_REMOTE_HELPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cache_pin: marks cache entries that are in use, for other machines with the same home and other containers, which
 * cannot see the processes.
 *
 *   CACHE/uses/KIND-NAME.HOST.XXXXXX      KIND is agents, bundles, data or setups; NAME is the entry. The file
 *                                         contains the boot id of the machine that created it
 *
 * Every user of an entry refreshes the time of its mark once an hour, and removes the mark at the end. A mark
 * is stale after a week. It is stale after two hours if its host name is this machine's and its boot is not:
 * two machines with one host name can share a home, and the mark of the other one is refreshed.
 */

#define DT_CACHE_PIN_REFRESH_SECONDS 3600

/* Creates a mark; *mark is its path, which the caller frees; NULL if `path` is not in this cache. */
dt_status dt_cache_pin(char **mark, const char *cache, const char *path, dt_error *err);
void dt_cache_pin_refresh(const char *mark);
void dt_cache_pin_release(char *mark); /* removes the mark and frees its path; accepts NULL */

/* Returns true if the entry is pinned, or a process of this machine runs from it. */
bool dt_cache_is_used(const char *cache, const char *kind, const char *name);

#define DT_TALK_END                   "\036" /* begins no line of an operation's output */
#define DT_REMOTE_HELPER_HEADER_BYTES ((size_t)1 << 20)
#define DT_REMOTE_HELPER_CONFLICT \
    4 /* exit code: stderr has the names of files that both sides changed */
#define DT_REMOTE_HELPER_FILES_MAX 256     /* files of a bundle */
#define DT_REMOTE_HELPER_FILES     "files" /* in a bundle: its header */

/* argv[0] is the operation. Prints its own errors. */
int dt_remote_helper_main(int argc, char **argv);

dt_status dt_remote_helper_probe(const char *bundle, const char *seen, dt_error *err);
dt_status dt_remote_helper_collect(const char *folder, dt_error *err);
dt_status dt_remote_helper_setup(const char *entry, const char *folder, dt_error *err);
dt_status dt_remote_helper_end_setup(const char *entry, dt_error *err);
dt_status dt_remote_helper_tree(const char *folder, const char *mode, dt_error *err);
dt_status dt_remote_helper_receive(const char *bundle, dt_error *err);
dt_status dt_remote_helper_dedup(dt_error *err);
dt_status dt_remote_helper_forget(const char *folder, const char *checkpoints, const char *workdir,
                                  dt_error *err);
dt_status dt_remote_helper_wipe(const char *folder, dt_error *err);
/* Adds to the error about a full disk the ended runs that have files beside the run of this folder, with
 * their sizes. */
void dt_remote_helper_name_ended(dt_error *err, const char *folder);
dt_status dt_remote_helper_leave(dt_error *err);
dt_status dt_remote_helper_look(const char *pid_text, const char *start_text);
dt_status dt_remote_helper_listen(const char *address, dt_error *err);
/* peers: `count` pairs of ADDRESS and PORT. Fails only if no connection was tried. */
dt_status dt_remote_helper_dial(int count, char **peers, dt_error *err);

/* cache.c: returns the absolute path of CACHE. */
dt_status dt_remote_helper_cache(dt_strbuf *out, dt_error *err);
/* DT_ERR_IO, with the free space, if `path`'s file system has less than `bytes` free, even without spare folders
 * (spare.h). */
dt_status dt_remote_helper_check_space(const char *path, int64_t bytes, dt_error *err);
/* Returns true while the caller of this operation still waits. */
bool dt_remote_helper_is_heard(void);
/* Reads a line of JSON with at most `most` bytes from stdin, and nothing after it. */
dt_status dt_remote_helper_request(json_t **out, const char *operation, size_t most, dt_error *err);

/* receive.c: decompresses the zstd stream on stdin. */
typedef struct dt_unpacker dt_unpacker;
/* what: names the content in errors, as in "the bundle". The caller frees it with dt_unpacker_free. */
dt_status dt_unpacker_new(dt_unpacker **out, const char *what, dt_error *err);
/* Reads exactly `length` decompressed bytes. */
dt_status dt_unpacker_take(dt_unpacker *from, void *bytes, size_t length, dt_error *err);
void dt_unpacker_free(dt_unpacker *from);

/* cache.c: removes bundles, agents and data that are not in use and were last used long ago. */
void dt_remote_helper_prune(const char *cache);

#ifdef __cplusplus
}
#endif

#endif
