/* remote_helper: implements `dtrun-agent node ...`, the agent's operations on a node besides serving a run.
 *
 *   probe BUNDLE [PATH]    prints facts of this machine as a JSON object (probe.c)
 *   receive BUNDLE         stores a bundle from stdin in CACHE/bundles/BUNDLE (receive.c)
 *   alike                  reads a bundle's header from stdin; prints which files other bundles have (dedup.c)
 *   put DIGEST BYTES NAME  stores a file from stdin in CACHE/data/DIGEST; resumes a partial upload (put.c)
 *   put ... NAME FOLDER    the same, in FOLDER
 *   get PATH OFFSET        writes a file from OFFSET to stdout
 *   size PATH              prints "BYTES INODE CHANGED" of a readable file, else "-1"
 *   digest PATH            prints "at BYTES" lines while it reads, then "is DIGEST" (../transfer/content.h)
 *   same PATH TEXT         prints yes if the file contains TEXT and its folder is writable
 *   hold PATH              prints "held"; until stdin ends the folder is not pruned
 *   folder PATH            creates it, mode 0700, and prints its absolute name
 *   tree FOLDER [check | add]
 *                          gives the folder of a command the files of a list on stdin (tree.c)
 *   collect FOLDER         sends files of FOLDER, whose paths are on stdin (collect.c)
 *   setup ENTRY FOLDER     runs a setup command once; the request is on stdin (setup.c)
 *   end_setup ENTRY        ends what a setup that was killed has left
 *   forget FOLDER CHECKPOINTS WORKDIR
 *                          removes the files of a run; names on stdin (forget.c)
 *   wipe FOLDER            removes STATE/nodes/RUN of an ended run (wipe.c)
 *   listen ADDRESS         prints its port and answers connections until stdin ends (connectivity_check.c)
 *   leave                  starts a detached process, and prints "PID START" (leftover.c)
 *   look PID START         prints "alive" or "gone" for that process, and ends it
 *   dial ADDRESS PORT ...  makes these connections; prints a line for each
 *
 * CACHE is derived from the program's own path, CACHE/agents/HASH. Errors are one line on stderr, with exit code 3, or
 * DT_REMOTE_HELPER_CONFLICT (tree); no incomplete file gets its final name.
 */
#ifndef DT_RUNNER_NODE_SETUP_REMOTE_HELPER_REMOTE_HELPER_H
#define DT_RUNNER_NODE_SETUP_REMOTE_HELPER_REMOTE_HELPER_H

#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/strbuf.h"

#define DT_REMOTE_HELPER_HEADER_BYTES ((size_t)1 << 20)
#define DT_REMOTE_HELPER_CONFLICT \
    4 /* exit code: stderr has the names of files that both sides changed */
#define DT_REMOTE_HELPER_FILES_MAX 256     /* of a bundle */
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
dt_status dt_remote_helper_put(const char *digest, int64_t bytes, const char *name,
                               const char *into, dt_error *err);
dt_status dt_remote_helper_folder(const char *path, dt_error *err);
dt_status dt_remote_helper_forget(const char *folder, const char *checkpoints, const char *workdir,
                                  dt_error *err);
dt_status dt_remote_helper_wipe(const char *folder, dt_error *err);
/* Adds to the error about a full disk the ended runs that have files beside the run of this folder, with their sizes. */
void dt_remote_helper_name_ended(dt_error *err, const char *folder);
dt_status dt_remote_helper_leave(dt_error *err);
dt_status dt_remote_helper_look(const char *pid_text, const char *start_text);
dt_status dt_remote_helper_listen(const char *address, dt_error *err);
/* peers: `count` pairs of ADDRESS and PORT. Fails only if no connection was tried. */
dt_status dt_remote_helper_dial(int count, char **peers, dt_error *err);

/* devices.c: returns an array of {name, memory_bytes, free_bytes}, or of {name} if nvidia-smi fails, and the driver's
 * version or "". */
json_t *dt_remote_helper_devices(char *driver, size_t size);

/* system.c: returns the absolute path of CACHE. */
dt_status dt_remote_helper_cache(dt_strbuf *out, dt_error *err);
/* DT_ERR_IO, with the free space, if `path`'s file system has less than `bytes` free. */
dt_status dt_remote_helper_check_space(const char *path, int64_t bytes, dt_error *err);
/* Returns true while the caller of this operation still waits. */
bool dt_remote_helper_is_heard(void);
/* Reads a line of JSON with at most `most` bytes from stdin, and nothing after it. */
dt_status dt_remote_helper_request(json_t **out, const char *operation, size_t most, dt_error *err);

/* unpack.c: decompresses the zstd stream on stdin. */
typedef struct dt_unpacker dt_unpacker;
/* what: names the content in errors, as in "the bundle". The caller frees it with dt_unpacker_free. */
dt_status dt_unpacker_new(dt_unpacker **out, const char *what, dt_error *err);
/* Reads exactly `length` decompressed bytes. */
dt_status dt_unpacker_take(dt_unpacker *from, void *bytes, size_t length, dt_error *err);
void dt_unpacker_free(dt_unpacker *from);

/* prune.c: removes bundles, agents and data that are not in use and were last used long ago. */
void dt_remote_helper_prune(const char *cache);

#endif
