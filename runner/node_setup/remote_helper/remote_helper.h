/* remote_helper: what dtrun-agent does on a node besides serving a run: `dtrun-agent node ...`.
 *
 *   probe BUNDLE           one JSON object: what this machine is and has (probe.c)
 *   receive BUNDLE         a bundle on stdin, to CACHE/bundles/BUNDLE (receive.c)
 *   alike                  a bundle's header on stdin: which of its files others have (dedup.c)
 *   put DIGEST BYTES NAME  a file on stdin, to CACHE/data/DIGEST, from where it broke off (put.c)
 *   put ... NAME FOLDER    the same, to FOLDER
 *   get PATH OFFSET        a file from there on, to stdout
 *   size PATH              "BYTES INODE CHANGED" of a file that can be read, else "-1"
 *   digest PATH            "at BYTES" lines while it is read, then "is DIGEST" (../transfer/content.h)
 *   same PATH TEXT         yes: the file holds that, and its folder can be written to
 *   hold PATH              says "held"; until stdin ends no prune takes the folder
 *   folder PATH            makes it, mode 0700, and prints its absolute name
 *   forget FOLDER CHECKPOINTS
 *                          what a run left here is removed; names on stdin (forget.c)
 *   listen ADDRESS         prints its port and answers connections until stdin ends (connectivity_check.c)
 *   leave                  starts a process that is detached, and prints "PID START" (leftover.c)
 *   look PID START         "alive" or "gone": whether that is still there; ends it
 *   dial ADDRESS PORT ...  makes these connections; prints a line for each
 *
 * CACHE is known by the program's own place, CACHE/agents/HASH. Errors go to stderr, one line, exit
 * code 3; nothing is left half done under its final name.
 */
#ifndef DT_RUNNER_NODE_SETUP_REMOTE_HELPER_REMOTE_HELPER_H
#define DT_RUNNER_NODE_SETUP_REMOTE_HELPER_REMOTE_HELPER_H

#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/strbuf.h"

#define DT_REMOTE_HELPER_HEADER_BYTES ((size_t)1 << 20)
#define DT_REMOTE_HELPER_FILES_MAX    256     /* of a bundle */
#define DT_REMOTE_HELPER_FILES        "files" /* in a bundle: its header */

/* argv[0] is the operation. Prints its own errors. */
int dt_remote_helper_main(int argc, char **argv);

dt_status dt_remote_helper_probe(const char *bundle, dt_error *err);
dt_status dt_remote_helper_receive(const char *bundle, dt_error *err);
dt_status dt_remote_helper_dedup(dt_error *err);
dt_status dt_remote_helper_put(const char *digest, int64_t bytes, const char *name,
                               const char *into, dt_error *err);
dt_status dt_remote_helper_folder(const char *path, dt_error *err);
dt_status dt_remote_helper_forget(const char *folder, const char *checkpoints, dt_error *err);
dt_status dt_remote_helper_leave(dt_error *err);
dt_status dt_remote_helper_look(const char *pid_text, const char *start_text);
dt_status dt_remote_helper_listen(const char *address, dt_error *err);
/* peers: `count` pairs of ADDRESS and PORT. An error only where nothing was tried. */
dt_status dt_remote_helper_dial(int count, char **peers, dt_error *err);

/* devices.c: an array of {name, memory_bytes, free_bytes}, and the driver's version or "". Where
 * nvidia-smi tells nothing, of {name}. */
json_t *dt_remote_helper_devices(char *driver, size_t size);

/* system.c: the absolute path of CACHE. */
dt_status dt_remote_helper_cache(dt_strbuf *out, dt_error *err);
/* DT_ERR_IO, with what is free, where `path`'s file system has less than `bytes`. */
dt_status dt_remote_helper_check_space(const char *path, int64_t bytes, dt_error *err);
/* Whether who asked still waits for the answer. */
bool dt_remote_helper_is_heard(void);

/* prune.c: bundles, agents and data that nothing runs from and that were last used long ago. */
void dt_remote_helper_prune(const char *cache);

#endif
