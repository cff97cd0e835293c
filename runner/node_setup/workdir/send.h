/* send: builds the folder of a command on a node, from contents in this machine's CACHE/files. */
#ifndef DT_NODE_SETUP_WORKDIR_SEND_H
#define DT_NODE_SETUP_WORKDIR_SEND_H

#include "runner/node_setup/node_setup_int.h"
#include "runner/node_setup/workdir/tree.h"

typedef struct dt_send_request {
    const dt_tree *tree;
    const char *what;           /* for messages: "workdir" */
    const char *node, *agent;   /* agent: on the node */
    const char *there;          /* folder on the node */
    const char *mode;           /* of remote_helper/tree.c: "build", "check" or "add" */
    const char *cache;          /* of this machine: has the contents, unless `sources` is set */
    const char *const *sources; /* [tree->count], files of this machine; NULL: the cache */
    const atomic_bool *cancelled;
    void (*progress)(void *context, const char *text); /* may be NULL */
    void *context;
} dt_send_request;

/* Sends what the node lacks, and gives the node's folder the entries of the tree. DT_ERR_UNSUPPORTED: a content is
 * missing here. DT_ERR_RECIPE: both sides changed a file; the message has the names. */
dt_status dt_workdir_send(const dt_send_request *request, dt_error *err);

#endif
