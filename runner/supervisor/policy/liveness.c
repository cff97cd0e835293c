/* liveness: decides what the silence of a node means, and what follows if a node is lost or refuses. */
#include "runner/supervisor/policy/liveness.h"

#include <math.h>

#include "runner/times.h"

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* Returns the time until which the newest step of other nodes counts as a sign of life: a dead
 * node would block the next step. -1: there is none. */
static double steps_speak(const dt_liveness_facts *facts)
{
    return facts->peer_step >= 0 ? facts->peer_step + facts->step_gap : -1;
}

/* True if the connection may still be logging in: the agent has not answered on it and no
 * command has run on the node since it was opened. (The command that connects exits on its own
 * if it cannot log in.) */
static bool may_log_in(const dt_liveness_facts *facts)
{
    return facts->connection && !facts->here && facts->heard <= facts->connected &&
           facts->command < facts->connected &&
           facts->now - facts->connected <= dt_times()->login_seconds;
}

static double newest_sign(const dt_liveness_facts *facts)
{
    double sign = later(facts->heard, facts->command);

    if (facts->stopping) /* only an agent that answers can be stopped */
        return sign;
    sign = later(sign, later(facts->answered, facts->unknown));
    return later(sign, steps_speak(facts));
}

/* True if a local problem kept this machine from contacting the node: then its silence means
 * nothing. */
static bool is_unknown(const dt_liveness_facts *facts)
{
    return facts->unknown >= 0 && facts->now - facts->unknown <= dt_times()->lost_seconds;
}

static bool is_lost(const dt_liveness_facts *facts)
{
    double silent = facts->now - facts->heard;

    if (facts->here)
        return false;
    if (facts->stopping)
        return facts->now - newest_sign(facts) > dt_times()->lost_seconds &&
               !(may_log_in(facts) && facts->answered > facts->heard);
    if (facts->peers == DT_PEERS_SILENT && facts->lease > 0)
        return silent > facts->lease;
    if (facts->peers != DT_PEERS_HEARD)
        return silent > dt_times()->node_patience_seconds && !is_unknown(facts);
    return facts->now - newest_sign(facts) > dt_times()->lost_seconds;
}

/* Returns the newest reason why a replaced agent could not answer. */
static double newest_excuse(const dt_liveness_facts *facts)
{
    return facts->stopping ? facts->heard
                           : later(facts->heard, later(facts->answered, facts->unknown));
}

/* True if the agent was silent for too long although its node could be reached: while the node
 * is unreachable the agent cannot be heard. */
static bool hangs(const dt_liveness_facts *facts)
{
    double heard;

    if (!facts->here && facts->command <= facts->heard)
        return false;
    heard = later(facts->heard, facts->reached);
    if (facts->stopping)
        return facts->now - heard > dt_times()->stopping_hang_seconds;
    return facts->now - later(heard, steps_speak(facts)) > dt_times()->training_hang_seconds;
}

static bool is_stuck(const dt_liveness_facts *facts)
{
    const dt_time_limits *times = dt_times();
    double most = times->silent_seconds;

    /* A first connection may share an existing ssh connection that is stuck, unless that one has
     * just prepared the node. */
    if (may_log_in(facts) && (facts->tries > 0 || !facts->started))
        return false;
    if (facts->heard < facts->connected) {
        most += times->connect_more_seconds * facts->tries; /* the node may be slow */
        most = most < times->connect_most_seconds ? most : times->connect_most_seconds;
    }
    return facts->connection && facts->now - later(facts->heard, facts->connected) > most;
}

static dt_liveness_act act_on(const dt_liveness_facts *facts)
{
    double silent = facts->now - facts->heard;

    if (!facts->started && !facts->idle) {
        bool waits = (facts->waits || is_unknown(facts)) && !facts->stopping;

        if (silent > (waits ? dt_times()->node_patience_seconds : dt_times()->no_agent_seconds) &&
            (facts->stopping || !may_log_in(facts)))
            return DT_LIVENESS_NO_AGENT;
    } else if (is_lost(facts)) {
        return DT_LIVENESS_LOST;
    } else if (facts->replaced &&
               facts->now - newest_excuse(facts) > dt_times()->replaced_seconds &&
               !may_log_in(facts)) {
        return DT_LIVENESS_NO_AGENT;
    } else if (!facts->replaced && hangs(facts)) {
        return DT_LIVENESS_REPLACE;
    }
    return is_stuck(facts) ? DT_LIVENESS_RECONNECT : DT_LIVENESS_WAIT;
}

double dt_liveness_reached(double reached, double proven, double begun, double now, bool ran)
{
    double since = later(begun, now - dt_times()->probe_late_seconds);

    if (!ran)
        return INFINITY;
    if (isinf(reached))
        return now;
    return since - proven > dt_times()->unproven_seconds ? since : reached;
}

dt_liveness_verdict dt_liveness_judge(const dt_liveness_facts *facts)
{
    bool doubt = !facts->here && facts->now - facts->heard > dt_times()->doubt_seconds;

    return (dt_liveness_verdict){.act = act_on(facts),
                                 .probe = doubt && facts->now - facts->probed >
                                                       dt_times()->probe_every_seconds,
                                 .unreachable = doubt};
}

/* --- lost nodes and refusals */

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
