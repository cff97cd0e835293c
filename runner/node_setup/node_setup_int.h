/* node_setup_int: what the files of node_setup/ and its folders share: the bundle, commands on nodes, steps
 * of the preparation, and steps of the probe. */
#ifndef DT_RUNNER_NODE_SETUP_NODE_SETUP_INT_H
#define DT_RUNNER_NODE_SETUP_NODE_SETUP_INT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "engine/checkpoint/digest.h"
#include "runner/node_setup/glibc.h"
#include "runner/node_setup/node_setup.h"
#include "runner/node_setup/probe/probe.h"
#include "runner/node_setup/program_files.h"
#include "runner/transport/remote.h"

/* bundle: collects the engine and its libraries except glibc from this machine, and copies them to nodes.
 *
 * For nodes whose ranks use GPUs it includes the GPU part: libdtrun-cuda.so and CUDA's libraries (0.9 GB, 0.6
 * compressed). The driver is the node's.
 *
 * On a node the bundle is CACHE/bundles/HASH/bin/dtrun-engine and .../lib/, where the engine's run path finds the
 * libraries. HASH covers all names and contents, so that the same programs are the same bundle from any launch machine.
 * The node's glibc is used, since loader and libc must match.
 *
 * Ownership  everything lives in the arena
 * Threads    send may run for several nodes at once
 */

typedef struct dt_bundle_file {
    const char *name; /* "bin/dtrun-engine", "lib/libdnnl.so.2" */
    const char *path; /* on this machine */
    int64_t bytes;
    char digest[DT_DIGEST_SIZE];
} dt_bundle_file;

typedef struct dt_bundle {
    char hash[DT_DIGEST_SIZE];
    char glibc[DT_GLIBC_SIZE]; /* the oldest version that its programs run with */
    int64_t bytes, file_count;
    dt_bundle_file *files;
    dt_program_files *known; /* while the bundle is made */
} dt_bundle;

/* Reads files that are new or have changed: all of them take about ten milliseconds, or a second with `gpus`.
 * DT_ERR_IO: the installation is incomplete; DT_ERR_UNSUPPORTED: it has no GPU part. */
dt_status dt_bundle_make(dt_bundle *out, bool gpus, dt_arena *arena, dt_error *err);

/* Copies the bundle to the node, through the agent on the node. */
dt_status dt_upload_bundle(const dt_bundle *bundle, const char *node, const char *agent,
                           void (*progress)(void *context, const char *text), void *context,
                           const atomic_bool *cancelled, dt_error *err);

/* --- commands, steps and files */

/* Returns true for this machine: "localhost", or "localhost#2" for a second node on it. */
bool dt_nodes_is_here(const char *node);

/* node_command.c: runs a command and returns its whole output. A command that fails is not an error:
 * `problem` gets the last line of its stderr, *code its exit code. An unreachable node and a timeout are
 * errors. */
dt_status dt_nodes_ask_code(dt_strbuf *answer, int *code, dt_error *problem, const char *node,
                            const char *const *words, const void *input, size_t input_length,
                            double timeout_seconds, const atomic_bool *cancelled, dt_error *err);

/* As dt_nodes_ask_code, but a command that fails is DT_ERR_IO with the last line of its stderr. */
dt_status dt_nodes_ask(dt_strbuf *answer, const char *node, const char *const *words,
                       const void *input, size_t input_length, double timeout_seconds,
                       const atomic_bool *cancelled, dt_error *err);

/* prepare.c: checks that a bundle that needs this glibc version runs on the node with these facts. */
dt_status dt_nodes_check_glibc(const char *node, const json_t *facts, const char *needed,
                               dt_error *err);

/* node_command.c: reads the next line of the command's output, without its line feed; "" at the end. */
dt_status dt_nodes_line(dt_strbuf *line, dt_remote *remote, double timeout_seconds, dt_error *err);

/* node_command.c: asks the agent on a node one thing after the other, over one connection that the first question
 * opens. One thread at a time. */
typedef struct dt_talk {
    const char *node, *agent; /* the agent's path on the node; both borrowed */
    const atomic_bool *cancelled;
    dt_remote remote;
    bool open;
} dt_talk;

/* words: a request of a talk (remote_helper/remote_helper.h), ended by NULL. *answer: what it prints, reset first.
 * stall_seconds: most between two lines. DT_ERR_IO: the request failed, with the node's error. */
dt_status dt_talk_ask(dt_talk *talk, dt_strbuf *answer, const char *const *words,
                      double stall_seconds, dt_error *err);
/* Returns the size of the file `path` on the node; -1 if it is not a readable file. */
dt_status dt_talk_size(int64_t *bytes, dt_talk *talk, const char *path, dt_error *err);
/* Reads a file from `offset` on, and passes its bytes to `take` as they come. DT_ERR_IO: the node cannot read it. */
typedef dt_status dt_talk_take(void *context, const void *bytes, size_t length, dt_error *err);
dt_status dt_talk_get(dt_talk *talk, const char *path, int64_t offset, dt_talk_take *take,
                      void *context, dt_error *err);
void dt_talk_end(dt_talk *talk); /* accepts one that was never opened */

/* node_layout.c: appends CHECKPOINTS/node-K, where ranks of a node that shares the run's folder write their part of a
 * checkpoint if other nodes do not share the folder. */
void dt_nodes_parts(dt_strbuf *out, const dt_node_layout *layout);

/* place.c: turns the request's node, which may stand for one that is yet to be lent ("slurm:4#2"), into a machine
 * ("slurm:12/gpu-b"). */
dt_status dt_nodes_place(const char **node, const dt_prepare_request *request, dt_arena *arena,
                         dt_error *err);
/* place.c: starts the agent, if its transport does that. */
dt_status dt_nodes_start_agent(const dt_node_layout *layout, const dt_prepare_request *request,
                               dt_arena *arena, dt_error *err);

/* transfer/upload.c: sends bytes to the command `to` as one zstd stream. The caller frees it with dt_packer_free. */
typedef struct dt_packer dt_packer;
dt_status dt_packer_new(dt_packer **out, dt_remote *to, double stall_seconds, dt_error *err);
/* last: ends the stream. */
dt_status dt_packer_put(dt_packer *packer, const void *bytes, size_t length, bool last,
                        dt_error *err);
void dt_packer_free(dt_packer *packer);

/* transfer/upload.c: copies a file to CACHE/data on the node, or into the folder `into` on the node;
 * resumes an interrupted upload. digest: of its content, NULL if unknown. *there: its path on the node. */
dt_status dt_upload_file(const char **there, const char *path, const char *digest, const char *into,
                         dt_talk *talk, const dt_prepare_request *request, dt_arena *arena,
                         dt_error *err);
/* transfer/upload.c: compares a file of the launch machine with the file of the same path on the node. */
typedef enum dt_same { DT_SAME, DT_OTHER, DT_MISSING } dt_same;
dt_status dt_nodes_compare(dt_same *out, const char *path, dt_talk *talk,
                           const dt_prepare_request *request, dt_arena *arena, dt_error *err);
/* transfer/stage.c: copies the plan's data and weights; adds files with another path on the node to `paths`.
 * folder: of this attempt on the node. */
dt_status dt_stage_data(json_t *paths, const char *folder, dt_talk *talk,
                        const dt_prepare_request *request, dt_arena *arena, dt_error *err);

/* workdir/send.c: returns the folder of the plan's command if nodes that do not share it get it; NULL: another task, or
 * the folder must be on the nodes. */
const char *dt_stage_workdir_folder(const json_t *plan);
/* Builds the folder on a node that does not share it, and sets layout->workdir. facts: of a probe with `seen`. */
dt_status dt_stage_workdir(dt_node_layout *layout, const json_t *facts,
                           const dt_prepare_request *request, dt_arena *arena, dt_error *err);

/* workdir/setup.c: runs the recipe's setup on the node, with its output in request->here/setup.log, and sets
 * layout->setup. cache: CACHE of the node; NULL: of this machine. DT_ERR_UNSUPPORTED: it failed. */
dt_status dt_stage_setup(dt_node_layout *layout, const char *cache,
                         const dt_prepare_request *request, dt_arena *arena, dt_error *err);

/* Copies the checkpoint that the plan resumes from to the node's checkpoints, its `complete` marker last. */
dt_status dt_stage_checkpoint(const dt_node_layout *layout, dt_talk *talk,
                              const dt_prepare_request *request, dt_arena *arena, dt_error *err);

/* transfer/stage.c: gives the node the checkpoint of a command's program that the plan continues from, if it was
 * brought to this machine. Sets layout->saved if it is not placed where the program saved it. */
dt_status dt_stage_saved(dt_node_layout *layout, const dt_prepare_request *request, dt_arena *arena,
                         dt_error *err);

/* --- probe/: faults and checks of all nodes */

/* --- node_command.c */
/* Calls `work` for 0 to count - 1, on at most 32 threads at once, and waits for all. */
void dt_probe_parallel(int64_t count, void (*work)(void *context, int64_t i), void *context);

/* --- probe/faults.c */
int64_t dt_probe_faults_max(int64_t nodes); /* capacity of `faults`; more are left out */
void dt_probe_add_fault(dt_probe_report *report, dt_arena *arena, const char *node, bool fatal,
                        dt_status status, const char *fmt, ...) DT_PRINTF(6, 7);

/* The bundles for nodes without and with GPUs. */
typedef struct dt_probe_bundles {
    dt_bundle plain, gpus;
} dt_probe_bundles;

/* faults.c: adds the faults that follow from the nodes' answers. */
void dt_probe_judge(dt_probe_report *report, const dt_probe_wish *wish,
                    const dt_probe_bundles *bundles, const json_t *here, dt_arena *arena);

/* connectivity_check.c: tests connections in both directions between every pair of up to 8 nodes; between
 * neighbours in a ring for more nodes. */
void dt_probe_connectivity(dt_probe_report *report, const dt_probe_wish *wish,
                           const dt_bootstrap *bootstrap, dt_arena *arena);

#endif
