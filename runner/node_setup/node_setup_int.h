/* node_setup_int: what the files of node_setup/ share. */
#ifndef DT_RUNNER_NODE_SETUP_NODE_SETUP_INT_H
#define DT_RUNNER_NODE_SETUP_NODE_SETUP_INT_H

#include "runner/node_setup/node_setup.h"
#include "runner/transport/remote.h"

/* "localhost", or "localhost#2": this machine, once more. */
bool dt_nodes_is_here(const char *node);

/* ask.c: a command's whole output. It failed: `problem` has the last line of its stderr, *code its
 * exit code, and the status is good; only a node that was not reached, or does not end, is an
 * error. */
dt_status dt_nodes_ask_code(dt_strbuf *answer, int *code, dt_error *problem, const char *node,
                            const char *const *words, const void *input, size_t input_length,
                            double timeout_seconds, const atomic_bool *cancelled, dt_error *err);

/* The same; a command that failed is DT_ERR_IO with that line. */
dt_status dt_nodes_ask(dt_strbuf *answer, const char *node, const char *const *words,
                       const void *input, size_t input_length, double timeout_seconds,
                       const atomic_bool *cancelled, dt_error *err);

/* prepare.c: whether a bundle that needs this version runs on the node that gave these facts. */
dt_status dt_nodes_check_glibc(const char *node, const json_t *facts, const char *needed,
                               dt_error *err);

/* ask.c: the next line of what runs there, without its end; "" at the end of all. */
dt_status dt_nodes_line(dt_strbuf *line, dt_remote *remote, double timeout_seconds, dt_error *err);

/* ask.c: of the file `path` there; -1 where it is none. */
dt_status dt_nodes_size(int64_t *bytes, const char *node, const char *agent, const char *path,
                        const atomic_bool *cancelled, dt_error *err);

/* node_plan.c: adds where ranks of a node that shares the run's folder write their part of a
 * checkpoint while other nodes do not share it: CHECKPOINTS/node-K. */
void dt_nodes_parts(dt_strbuf *out, const dt_node_layout *layout);

/* keepalive.c: starts the agent where what a connection starts would be ended with it; elsewhere
 * nothing. */
dt_status dt_nodes_keepalive_agent(const dt_node_layout *layout, const dt_prepare_request *request,
                                   dt_arena *arena, dt_error *err);

/* upload_file.c: a file to CACHE/data on the node, or into the folder `into` there; resumed where
 * it broke off. digest: of its content where that is known, else NULL. *there: its path. */
dt_status dt_upload_file(const char **there, const char *path, const char *digest, const char *into,
                         const char *agent, const dt_prepare_request *request, dt_arena *arena,
                         dt_error *err);
/* compare.c: a file of the launch machine and what has the same path on the node. */
typedef enum dt_same { DT_SAME, DT_OTHER, DT_MISSING } dt_same;
dt_status dt_nodes_compare(dt_same *out, const char *path, const char *agent,
                           const dt_prepare_request *request, dt_arena *arena, dt_error *err);
/* stage_inputs.c: the plan's data and weights: adds to `paths` what lies elsewhere there. */
dt_status dt_stage_data(json_t *paths, const char *agent, const dt_prepare_request *request,
                        dt_arena *arena, dt_error *err);

/* What the plan resumes from, whole, to the node's checkpoints; its marker last. */
dt_status dt_stage_checkpoint(const dt_node_layout *layout, const dt_prepare_request *request,
                              dt_arena *arena, dt_error *err);

#endif
