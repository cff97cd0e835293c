/* system: writes a `system` event every ten seconds: what the node's processors, memory, disks, network and GPUs are used
 * for since the event before (process/usage.h), until the ranks have ended.
 *
 * GPUs come from an nvidia-smi that runs as long as the ranks: starting it takes much longer than its look. If it ends, the
 * events go on without GPUs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "runner/agent/agent_int.h"
#include "runner/agent/process/usage.h"
#include "runner/times.h"

struct dt_agent_system {
    dt_usage before;
    dt_helper *gpus; /* NULL: it does not run */
    json_t *seen;    /* index of a GPU → its values since the last event */
};

static dt_usage look(const dt_agent *agent)
{
    dt_usage now;

    dt_usage_read(
        &now, &(dt_usage_question){
                  .root = "", .agent = getpid(), .cgroup = agent->cgroup.folder, .folder = "."});
    return now;
}

/* --- GPUs */

static void on_gpu(void *context, const char *line)
{
    dt_agent *agent = context;
    json_t *values = dt_devices_watched(&agent->devices, line);
    char index[24];

    if (values == NULL)
        return;
    snprintf(index, sizeof(index), "%lld",
             (long long)json_integer_value(json_object_get(values, "index")));
    json_object_set_new(agent->system->seen, index, values);
}

static void on_gpus_end(void *context, const char *text, const char *problem)
{
    dt_agent *agent = context;

    agent->system->gpus = NULL;
    dt_log_warn("nvidia-smi ended: GPUs are no longer recorded");
}

void dt_agent_system_watch_gpus(dt_agent *agent)
{
    dt_error err = DT_ERROR_INIT;

    if (agent->system != NULL && agent->devices.count > 0 &&
        dt_helper_follow(&agent->system->gpus, agent, dt_devices_watch, on_gpu, on_gpus_end, agent,
                         &err) != DT_OK)
        dt_log_warn("GPUs are not recorded: %s", err.message);
}

static json_t *take_gpus(dt_agent_system *system)
{
    json_t *out = json_array(), *values;
    const char *index;

    json_object_foreach(system->seen, index, values)
        json_array_append(out, values);
    json_object_clear(system->seen);
    return out;
}

/* --- events */

#define USUAL_SECONDS \
    0.01 /* of processor time for a look: 0.1 % of a core with one in ten seconds */

static void on_timer(uv_timer_t *timer);

/* Waits until the next event: the usual time, or so long that the look costs no larger share of a core. */
static void wait_for_next(dt_agent *agent, double cost_seconds)
{
    double every = dt_times()->system_seconds, times = cost_seconds / USUAL_SECONDS;

    uv_timer_start(&agent->system_timer, on_timer, dt_times_ms(times > 1 ? every * times : every),
                   0);
}

static void on_timer(uv_timer_t *timer)
{
    dt_agent *agent = timer->data;
    dt_usage now = look(agent);
    json_t *event = json_pack("{s:s, s:o}", "event", "system", "values",
                              dt_usage_values(&agent->system->before, &now));

    agent->system->before = now;
    wait_for_next(agent, now.cost_seconds);
    if (json_object_size(agent->system->seen) > 0)
        json_object_set_new(event, "gpus", take_gpus(agent->system));
    dt_journal_add(&agent->journal, event);
}

void dt_agent_system_begin(dt_agent *agent, const json_t *plan)
{
    const json_t *log = json_object_get(json_object_get(plan, "recipe"), "log");

    if (json_is_false(json_object_get(log, "system")))
        return;
    agent->system = dt_calloc(1, sizeof(*agent->system));
    agent->system->seen = json_object();
    agent->system->before = look(agent);
    wait_for_next(agent, agent->system->before.cost_seconds);
}

void dt_agent_system_end(dt_agent *agent)
{
    if (agent->system == NULL)
        return;
    uv_timer_stop(&agent->system_timer);
    dt_helper_cancel(agent->system->gpus);
    json_decref(agent->system->seen);
    free(agent->system);
    agent->system = NULL;
}
