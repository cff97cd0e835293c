/* send: builds the folder of a command on a node, from contents in this machine's CACHE/files. */
#ifndef DT_NODE_SETUP_WORKDIR_SEND_H
#define DT_NODE_SETUP_WORKDIR_SEND_H

#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/workdir/tree.h"

/* Sends what the node lacks, and makes `there` on the node equal to the tree (remote_helper/tree.c). cache: of this
 * machine. DT_ERR_UNSUPPORTED: a content is missing here. */
dt_status dt_workdir_send(const dt_tree *tree, const char *there, const char *agent,
                          const char *cache, const dt_prepare_request *request, dt_error *err);

#endif
