/* address: which of a machine's addresses its ranks talk over.
 *
 * `interface` (network.interface of the recipe) is a name, an address or a subnet. Where it is "" the address at which
 * ssh reached the node is taken, which others reach too, and for the launch machine the one from which a node sees it
 * come. A link-local address is never taken: it means something else on each machine. It only says which interface.
 *
 * All ranks of a run need addresses of one family, so that each node has one of each where it can.
 *
 * Ownership  results live in the arena
 * Errors     DT_ERR_UNSUPPORTED naming the node and what it has
 */
#ifndef DT_RUNNER_NODE_SETUP_ADDRESS_H
#define DT_RUNNER_NODE_SETUP_ADDRESS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"

typedef struct dt_node_addresses {
    const char *node;
    const char *preferred; /* NULL: the node has none, and is left out */
    const char *other;     /* of the other family; NULL: none */
} dt_node_addresses;

/* facts: of this node. seen_from: facts of another node, or NULL. */
dt_status dt_node_addresses_find(dt_node_addresses *out, const char *node, const json_t *facts,
                                 const json_t *seen_from, const char *interface, dt_arena *arena,
                                 dt_error *err);

/* Sets chosen[i] to the address of all[i] in the family that all nodes have. If they share both families it is the one
 * that most nodes prefer, and IPv4 for as many. DT_ERR_UNSUPPORTED where they share none, naming two nodes. */
dt_status dt_node_addresses_agree(const char **chosen, const dt_node_addresses *all, int64_t count,
                                  dt_error *err);

#endif
