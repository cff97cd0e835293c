/* recover: starts an agent on the journal of a previous one.
 *
 * The ranks died with the agent that started them (spawn.h). Processes that they left, and a rank that is still
 * alive, are ended here. Then the journal records that, and is served.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "runner/agent/agent_int.h"
#include "runner/agent/process/process.h"
#include "runner/channel/protocol.h"

typedef struct past_rank {
    int64_t rank, pid, start_ticks;
    bool exited;
} past_rank;

struct dt_agent_past {
    past_rank *ranks;
    int64_t capacity;
    size_t count;
    char *cgroup;  /* folder of the cgroup; NULL: there was none */
    char *boot_id; /* boot id when the ranks were started; NULL: unknown */
    bool any_started, stopping, released;
    int64_t other_version; /* version of a journal that this agent cannot read; else 0 */
};

dt_agent_past *dt_agent_past_new(void)
{
    dt_agent_past *past = dt_calloc(1, sizeof(*past));

    return past;
}

void dt_agent_past_free(dt_agent_past *past)
{
    free(past->ranks);
    free(past->cgroup);
    free(past->boot_id);
    free(past);
}

static void add_started(dt_agent_past *past, const json_t *event)
{
    const char *cgroup = json_string_value(json_object_get(event, "cgroup"));
    const char *boot_id = json_string_value(json_object_get(event, "boot_id"));
    past_rank rank = {0};

    if (dt_json_get_int(&rank.rank, event, "rank", "journal", NULL) != DT_OK ||
        dt_json_get_int(&rank.pid, event, "pid", "journal", NULL) != DT_OK ||
        dt_json_get_int(&rank.start_ticks, event, "start_ticks", "journal", NULL) != DT_OK)
        return;
    past->ranks =
        dt_array_room(past->ranks, past->count + 1, &past->capacity, sizeof(past->ranks[0]));
    past->ranks[past->count++] = rank;
    if (cgroup != NULL && past->cgroup == NULL) {
        past->cgroup = dt_strdup(cgroup);
    }
    if (boot_id != NULL && past->boot_id == NULL) {
        past->boot_id = dt_strdup(boot_id);
    }
}

static void add_exited(dt_agent_past *past, const json_t *event)
{
    int64_t rank;

    if (dt_json_get_int(&rank, event, "rank", "journal", NULL) != DT_OK)
        return;
    for (size_t i = 0; i < past->count; i++)
        past->ranks[i].exited = past->ranks[i].exited || past->ranks[i].rank == rank;
}

void dt_agent_past_add_event(void *context, const json_t *event)
{
    dt_agent_past *past = context;
    const char *kind = json_string_value(json_object_get(event, "event"));

    int64_t version = json_integer_value(json_object_get(event, "journal"));

    if (version != 0 && version != DT_PROTOCOL_JOURNAL_VERSION)
        past->other_version = version;
    if (kind == NULL)
        return;
    if (strcmp(kind, "started") == 0)
        add_started(past, event);
    if (strcmp(kind, "exited") == 0)
        add_exited(past, event);
    past->any_started =
        past->any_started || strcmp(kind, "started") == 0 || strcmp(kind, "exited") == 0;
    past->stopping = past->stopping || strcmp(kind, "stopping") == 0;
    past->released = past->released || strcmp(kind, "released") == 0;
}

dt_status dt_agent_past_check(const dt_agent_past *past, dt_error *err)
{
    if (past->other_version == 0)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   DT_PROTOCOL_OTHER "the journal has version %lld, this agent reads version %d",
                   (long long)past->other_version, DT_PROTOCOL_JOURNAL_VERSION);
}

void dt_agent_recover(dt_agent *agent, const dt_agent_past *past)
{
    bool rebooted = dt_boot_differs(past->boot_id, agent->boot_id);
    dt_error err = DT_ERROR_INIT;

    agent->started = past->any_started;
    if (past->cgroup != NULL && !rebooted &&
        dt_cgroup_adopt(&agent->cgroup, past->cgroup, &err) != DT_OK)
        dt_log_info("%s", err.message);
    if (past->released) {
        dt_cgroup_remove(&agent->cgroup);
        agent->ending = DT_ENDING_DONE;
        return;
    }
    if (agent->asked) /* before the events that it causes (verdict.c) */
        dt_journal_add(&agent->journal,
                       json_pack("{s:s, s:f, s:s, s:b}", "event", "stopping", "grace_seconds", 0.0,
                                 "reason", "stopped", "asked", 1));
    for (size_t i = 0; i < past->count; i++) {
        const past_rank *rank = &past->ranks[i];

        if (rank->exited)
            continue;
        if (!rebooted) /* after a reboot the pid belongs to another process */
            dt_process_signal((pid_t)rank->pid, rank->start_ticks, SIGKILL);
        dt_log_warn("rank %lld was running when %s", (long long)rank->rank,
                    rebooted ? "this node was rebooted" : "the previous agent died");
        dt_journal_add(&agent->journal,
                       json_pack("{s:s, s:I, s:n, s:n, s:s, s:s, s:[]}", "event", "exited", "rank",
                                 (json_int_t)rank->rank, "code", "signal", "signal_name", "",
                                 "reason", rebooted ? "rebooted" : "agent_lost", "lines"));
    }
    if (past->any_started || past->stopping) {
        agent->ending = DT_ENDING_TERM; /* its grace period is over */
        agent->ending_reason = "agent_lost";
        agent->ending_deadline_seconds = 0;
        dt_agent_ending_advance(agent);
    }
}
