/* memory: queries the GPUs' memory use before the ranks start, and delays `released` until they use no more than
 * that. devices.c parses the output.
 *
 * A query takes at most 10 s, the check after the end at most 20 s. If there is no nvidia-smi, or it does not
 * answer, the run continues, and `released` says why the memory was not verified.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "runner/agent/rank/helper.h"
#include "runner/times.h"

#define QUESTION_SECONDS 10.0
#define AGAIN_MS         250

static bool uses_devices(const dt_agent *agent)
{
    for (int64_t i = 0; i < agent->rank_count; i++)
        if (strncmp(agent->ranks[i].device, "cuda", 4) == 0)
            return true;
    return false;
}

/* Keeps only the GPUs that the ranks use: another run may use other GPUs at the same time. */
static void keep_used(dt_agent *agent)
{
    static const char kind[] = "cuda:";
    bool used[DT_DEVICES_MAX] = {false};

    for (int64_t i = 0; i < agent->rank_count; i++) {
        const dt_agent_rank *rank = &agent->ranks[i];
        long first;

        if (strncmp(rank->device, kind, strlen(kind)) != 0)
            continue;
        first = strtol(rank->device + strlen(kind), NULL, 10);
        for (int64_t j = 0; j < rank->replicas && first >= 0 && first + j < DT_DEVICES_MAX; j++)
            used[first + j] = true;
    }
    dt_devices_keep_used(&agent->devices, used);
}

static void give_up(dt_agent *agent, const char *why)
{
    agent->devices.count = 0;
    free(agent->devices_note);
    agent->devices_note = dt_strdup(why);
}

/* --- before */

static void on_baseline(void *context, const char *text, const char *problem)
{
    dt_agent *agent = context;
    dt_error err = DT_ERROR_INIT;

    agent->question = NULL;
    if (problem != NULL)
        DT_FAIL(&err, DT_ERR_TIMEOUT, "nvidia-smi: %s", problem);
    else
        dt_devices_parse(&agent->devices, text, &err);
    if (err.code != DT_OK)
        give_up(agent, err.message);
    dt_devices_keep_visible(&agent->devices, agent->devices_visible);
    keep_used(agent);
    agent->memory_known(agent);
}

void dt_agent_memory_before(dt_agent *agent, void (*known)(dt_agent *agent))
{
    dt_error err = DT_ERROR_INIT;

    agent->memory_known = known;
    if (!uses_devices(agent)) {
        give_up(agent, "no rank of this node uses a GPU");
        agent->memory_known(agent);
    } else if (dt_helper_start(&agent->question, agent, dt_devices_question, QUESTION_SECONDS,
                               on_baseline, agent, &err) != DT_OK) {
        give_up(agent, err.message);
        agent->memory_known(agent);
    }
}

/* --- after */

static void ask_again(uv_timer_t *timer);

static void on_used(void *context, const char *text, const char *problem)
{
    dt_agent *agent = context;
    dt_error err = DT_ERROR_INIT;
    dt_devices now;

    agent->question = NULL;
    if (problem != NULL)
        DT_FAIL(&err, DT_ERR_TIMEOUT, "nvidia-smi: %s", problem);
    else if (dt_devices_parse(&now, text, &err) == DT_OK)
        dt_devices_update(&agent->devices, &now);
    if (err.code != DT_OK)
        give_up(agent, err.message);
    if (dt_devices_are_free(&agent->devices) ||
        dt_clock_monotonic_seconds() >= agent->proof_deadline_seconds)
        agent->memory_known(agent);
    else
        uv_timer_start(&agent->proof_timer, ask_again, AGAIN_MS, 0);
}

static void ask_again(uv_timer_t *timer)
{
    dt_agent *agent = timer->data;
    dt_error err = DT_ERROR_INIT;

    if (dt_helper_start(&agent->question, agent, dt_devices_question, QUESTION_SECONDS, on_used,
                        agent, &err) == DT_OK)
        return;
    give_up(agent, err.message);
    agent->memory_known(agent);
}

void dt_agent_memory_after(dt_agent *agent, void (*known)(dt_agent *agent))
{
    agent->memory_known = known;
    if (agent->devices.count == 0) {
        agent->memory_known(agent);
        return;
    }
    agent->proof_deadline_seconds = dt_clock_monotonic_seconds() + dt_times()->gpu_proof_seconds;
    ask_again(&agent->proof_timer);
}
