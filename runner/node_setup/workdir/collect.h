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
        first; /* folder with the files of an earlier node; NULL: none. Files that are equal there are not
                          * kept again */
    int64_t max_bytes; /* more are refused with DT_ERR_UNSUPPORTED; -1: no limit */
    int64_t quiet_ms;  /* files that changed later than that are refused with DT_ERR_TIMEOUT */
    const atomic_bool *cancelled;
    void (*progress)(void *context, const char *text); /* may be NULL */
    void *context;
} dt_collect_request;

typedef struct dt_collect_result {
    int64_t files, bytes;
    dt_strbuf problems; /* lines; init by the caller */
    json_t *missing;    /* array of those `paths` that do not exist; new reference */
} dt_collect_result;

/* Adds to *out. A path that is missing, or a file that is refused, is not an error. A file replaces an older one of its
 * name once it is complete. DT_ERR_IO: this machine cannot write it; DT_ERR_PEER: the connection was lost. Both
 * name the files that are not here and where they are. */
dt_status dt_nodes_collect(dt_collect_result *out, const dt_collect_request *request,
                           dt_error *err);

#endif
