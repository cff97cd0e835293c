#include "runner/supervisor/policy/node_loss.h"

#include "runner/times.h"

#define REFUSALS_MOST   60 /* total weight of refusals that is too much */
#define LASTING_REFUSAL 12 /* weight of a lasting refusal; others weigh 1 */

/* True if the problem may pass. DT_ERR_IO: this machine cannot run ssh now; DT_ERR_TIMEOUT: a
 * home directory that stalls. An earlier attempt of the run has trained on the node, so
 * DT_ERR_UNSUPPORTED (a login shell that ends, a file system that is not mounted yet, a setup that
 * fails) and DT_ERR_CORRUPT (an answer that cannot be parsed) may pass too; only the job that
 * lent the node never comes back. */
static bool may_pass(const dt_preparation_facts *facts)
{
    switch (facts->failed) {
    case DT_ERR_PEER:
    case DT_ERR_IO:
    case DT_ERR_TIMEOUT:
    case DT_ERR_CORRUPT:
        return true;
    case DT_ERR_UNSUPPORTED:
        return !facts->in_job;
    default:
        return false;
    }
}

bool dt_node_loss_waits(const dt_preparation_facts *facts)
{
    bool dispensable = facts->nodes_min > 0 && facts->nodes > facts->nodes_min;

    return may_pass(facts) && facts->preparing && facts->restarts > 0 && !dispensable &&
           facts->waited_seconds <= dt_times()->node_patience_seconds;
}

bool dt_node_loss_is_final(dt_status failed)
{
    return failed == DT_ERR_UNSUPPORTED;
}

bool dt_node_loss_leaves_ranks(const dt_node_loss_facts *facts)
{
    return facts->started && !facts->preempted && !facts->rebooted;
}

bool dt_refusal_is_last(dt_refusals *refusals, int64_t next_event, bool lasting)
{
    if (next_event > refusals->next_event)
        refusals->weight = 0;
    refusals->next_event = next_event;
    refusals->weight += lasting ? LASTING_REFUSAL : 1;
    return refusals->weight >= REFUSALS_MOST;
}
