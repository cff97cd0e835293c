/* gather_int: declares what gather.c and download.c share. */
#ifndef DT_RUNNER_NODE_SETUP_TRANSFER_GATHER_INT_H
#define DT_RUNNER_NODE_SETUP_TRANSFER_GATHER_INT_H

#include "runner/node_setup/node_setup_int.h"
#include "runner/transport/remote.h"

#define DT_GATHER_ASK_SECONDS 20.0

typedef struct dt_gathering {
    const dt_gather_request *request;
    const char *folder; /* CHECKPOINTS/NAME.partial on this machine */
    char *piece;        /* DT_GATHER_PIECE_BYTES */
} dt_gathering;

#define DT_GATHER_PIECE_BYTES ((size_t)262144)

/* Returns true if the node's checkpoints are on its own disk. */
bool dt_gather_is_far(const dt_node_layout *layout);

/* Reads NAME/`file` of the node's checkpoints. */
dt_status dt_gather_read_there(dt_strbuf *out, const dt_gathering *all,
                               const dt_node_layout *layout, const char *file, dt_error *err);

/* Keeps the checkpoint from being removed on the node until *out is closed. DT_ERR_NOT_FOUND: it was removed. */
dt_status dt_gather_keepalive(dt_remote *out, const dt_gathering *all, const dt_node_layout *layout,
                              dt_error *err);

/* Downloads one of the index's files into the folder, from any node that has it, unless it is there. */
dt_status dt_gather_download(const dt_gathering *all, const json_t *item, dt_error *err);

#endif
