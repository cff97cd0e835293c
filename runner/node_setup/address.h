/* address: which of a machine's addresses its ranks talk over.
 *
 * `interface` (network.interface of the recipe) is a name, an address or a subnet; "": the address
 * at which ssh reached it, which others reach too; for the launch machine, the one that a node sees
 * it come from.
 *
 * Ownership  the result lives in the arena
 * Errors     DT_ERR_UNSUPPORTED naming the node and what it has
 */
#ifndef DT_RUNNER_NODE_SETUP_ADDRESS_H
#define DT_RUNNER_NODE_SETUP_ADDRESS_H

#include "base/arena.h"
#include "base/json.h"

/* facts: of this node. seen_from: facts of another node, or NULL. */
dt_status dt_node_address(const char **out, const char *node, const json_t *facts,
                          const json_t *seen_from, const char *interface, dt_arena *arena,
                          dt_error *err);

#endif
