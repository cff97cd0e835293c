/* nodes_int: what the files of nodes/ share. */
#ifndef DT_RUNNER_NODES_INT_H
#define DT_RUNNER_NODES_INT_H

#include "runner/nodes/nodes.h"

/* "localhost", or "localhost#2": this machine, once more. */
bool dt_nodes_is_here(const char *node);

#endif
