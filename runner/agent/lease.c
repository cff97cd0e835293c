/* lease: stops the ranks if there is no supervisor for too long, as the recipe says (failure.launcher_lost).
 *
 * An open connection proves nothing: after a cut it may look open for hours. What counts is a message of the
 * supervisor, which answers every `alive`. Time in which this agent could not receive one (a paused machine) does
 * not count. The ranks die with the agent, so the lease needs no memory beyond it.
 */
#include "base/log.h"
#include "runner/agent/agent_int.h"
#include "runner/times.h"

void dt_agent_lease_begin(dt_agent *agent, const dt_agent_command *start)
{
    const json_t *recipe = json_object_get(start->plan, "recipe");
    const json_t *grace = json_object_get(recipe, "grace_seconds");

    agent->lease_seconds = start->launcher_lost_seconds;
    agent->lease_grace_seconds = json_is_number(grace) && json_number_value(grace) >= 0
                                     ? json_number_value(grace)
                                     : dt_times()->default_grace_seconds;
    agent->heard_seconds = agent->clock.seconds;
}

void dt_agent_lease_check(dt_agent *agent)
{
    double silent = agent->clock.seconds - agent->heard_seconds;

    if (!agent->started || agent->ending != DT_ENDING_NO || agent->lease_seconds <= 0 ||
        silent < agent->lease_seconds)
        return;
    dt_log_warn("no message from the supervisor for %.0f s: stopping the ranks", silent);
    dt_agent_ending_begin(agent, agent->lease_grace_seconds, "launcher_lost");
    dt_agent_ending_advance(agent);
}
