/* reboot: a node that was booted again since the ranks of this attempt were started on it.
 *
 * Nothing of the earlier boot can be left there, so nothing needs to be proved. Where the node kept
 * its journal its agent says how each rank ended (reason `rebooted`); where it did not, the agent
 * is idle, and the actions say it (actions.c).
 */
#define _GNU_SOURCE
#include "base/boot.h"
#include "base/log.h"
#include "runner/supervisor/state.h"

#include "base/banned.h"

bool dt_node_has_started(const dt_supervised_node *node)
{
    for (int64_t i = 0; i < node->session->world_size; i++)
        if (node->session->ranks[i].row.node == node->row.node &&
            node->session->ranks[i].row.pid != 0)
            return true;
    return false;
}

void dt_reboot_hear(dt_supervised_node *node, const char *boot_id)
{
    bool started = dt_node_has_started(node);

    node->rebooted = started && dt_boot_differs(node->row.boot_id, boot_id);
    if (node->rebooted)
        dt_log_warn("%s: it was rebooted", node->row.name);
    else if (boot_id[0] != '\0') /* that of the ranks stays */
        node->row.boot_id = dt_arena_strdup(&node->session->arena, boot_id);
}
