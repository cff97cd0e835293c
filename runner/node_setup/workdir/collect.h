/* collect: brings files and folders of a command from a node to the run's folder. */
#ifndef DT_NODE_SETUP_WORKDIR_COLLECT_H
#define DT_NODE_SETUP_WORKDIR_COLLECT_H

#include <stdatomic.h>

#include "base/json.h"
#include "base/strbuf.h"

typedef struct dt_collect_request {
    const char *node, *agent;
    const char *folder;  /* of the command on the node */
    const json_t *paths; /* array of relative paths; a slash at the end has no meaning */
    const char *into;    /* folder on this machine */
    const char *
        first; /* folder with the files of an earlier node; NULL: none. Files that are equal there are not kept
                          * again */
    const atomic_bool *cancelled;
} dt_collect_request;

typedef struct dt_collect_result {
    int64_t files, bytes;
    dt_strbuf problems; /* lines; init by the caller */
} dt_collect_result;

/* Adds to *out. What is missing or refused is a problem, not an error. A file replaces an older one of its name once it
 * is complete. DT_ERR_IO: this machine cannot write it; DT_ERR_PEER: the connection was lost. */
dt_status dt_nodes_collect(dt_collect_result *out, const dt_collect_request *request,
                           dt_error *err);

#endif
