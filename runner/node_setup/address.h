/* address: chooses the address of a machine that its ranks use.
 *
 * `interface` (network.interface of the recipe) is a name, an address or a subnet. If it is "", a node uses the address
 * at which ssh reached it, since other machines reach that address too, and the launch machine the address that
 * its connection to a node comes from. Link-local addresses are never used, since they are valid on one link only;
 * they only select an interface.
 *
 * All ranks of a run need addresses of one family, so a node offers one of each family if it can.
 *
 * Ownership  results live in the arena
 * Errors     DT_ERR_UNSUPPORTED naming the node and its addresses
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

/* Sets chosen[i] to the address of all[i] in the family that all nodes have. If they share both families, it is the
 * family that most nodes prefer, or IPv4 if equally many do. DT_ERR_UNSUPPORTED if they share none, naming two nodes. */
dt_status dt_node_addresses_agree(const char **chosen, const dt_node_addresses *all, int64_t count,
                                  dt_error *err);

#endif
