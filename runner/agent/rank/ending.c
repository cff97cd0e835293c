/* ending: ends all processes of the run on this node, and verifies that none is left. TERM: the ranks were
 * sent SIGTERM. KILL: everything that belongs to the run (process.h) is killed, repeatedly, until none is
 * found. PROOF: the GPUs use no more memory than before. DONE: `released` is in the journal. agent_int.h
 * has a diagram. The lease ends the ranks if there is no supervisor for too long. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "runner/agent/agent_int.h"
#include "runner/agent/process/describe.h"
#include "runner/agent/process/process.h"
#include "runner/agent/rank/output.h"
#include "runner/times.h"

#define LOOK_EVERY_MS       50
#define STACK_SECONDS       1.0 /* for a program that writes its stack */
#define STACK_QUIET_SECONDS 3.0
#define KILL_MAX_SECONDS    10.0 /* what is left then is in a kernel wait, and is reported */

static void on_timer(uv_timer_t *timer)
{
    dt_agent *agent = timer->data;

    dt_agent_ending_reap(agent);
}

static void enter_kill(dt_agent *agent)
{
    if (agent->starting) { /* no rank may start any more */
        dt_helper_cancel(agent->question);
        agent->question = NULL;
        agent->starting = false;
    }
    dt_agent_system_end(agent);
    agent->ending = DT_ENDING_KILL;
    agent->ending_deadline_seconds = dt_clock_monotonic_seconds() + KILL_MAX_SECONDS;
    uv_timer_start(&agent->ending_timer, on_timer, LOOK_EVERY_MS, LOOK_EVERY_MS);
}

static void on_proved(dt_agent *agent)
{
    const char *note = agent->devices_note;

    agent->ending = DT_ENDING_DONE;
    if (!dt_cgroup_remove(&agent->cgroup))
        dt_log_warn("cannot remove the cgroup '%s'", agent->cgroup.folder);
    for (int64_t i = 0; i < agent->rank_count; i++)
        dt_agent_rank_release(&agent->ranks[i]);
    dt_agent_claims_release(agent); /* before the launch machine may start another run here */
    if (note == NULL && agent->devices.count == 0)
        note = "GPU memory use before the start is unknown";
    dt_journal_add(&agent->journal,
                   json_pack("{s:s, s:o, s:o, s:s}", "event", "released", "left", agent->left,
                             "devices", dt_devices_to_json(&agent->devices), "devices_note",
                             note != NULL ? note : ""));
    agent->left = NULL;
    if (agent->end_only)
        dt_agent_quit(agent);
}

static void enter_proof(dt_agent *agent, json_t *left)
{
    agent->ending = DT_ENDING_PROOF;
    agent->left = left;
    uv_timer_stop(&agent->ending_timer);
    dt_agent_memory_after(agent, on_proved);
}

/* The name consists of any bytes, truncated after fifteen; JSON needs valid characters, and a
 * process that is left out here would count as gone. */
static json_t *left_to_json(const dt_process *process)
{
    dt_strbuf name;
    json_t *json;

    dt_strbuf_init(&name);
    dt_text_clean(&name, process->command, strlen(process->command), false);
    json = json_pack("{s:I, s:s}", "pid", (json_int_t)process->pid, "command", name.data);
    dt_strbuf_release(&name);
    return json;
}

static void kill_and_find(dt_agent *agent)
{
    dt_error err = DT_ERROR_INIT;
    dt_process *found = NULL;
    size_t count = 0;
    json_t *left;
    bool over = dt_clock_monotonic_seconds() >= agent->ending_deadline_seconds;

    dt_cgroup_kill(&agent->cgroup);
    if (dt_process_find(&found, &count, getpid(), agent->mark, agent->cgroup.inside, &err) !=
        DT_OK) {
        dt_log_error("%s", err.message);
        if (!over)
            return;
    }
    left = json_array();
    for (size_t i = 0; i < count; i++) {
        dt_process_signal(found[i].pid, found[i].start_ticks, SIGKILL);
        json_array_append_new(left, left_to_json(&found[i]));
    }
    free(found);
    if (over) /* a file system that hangs delays no end */
        dt_agent_looks_give_up(agent, dt_agent_end_other_ranks);
    if (over || (count == 0 && !dt_agent_ranks_running(agent)))
        enter_proof(agent, left);
    else
        json_decref(left);
}

/* Returns whether the program was asked to write its stack instead of ending quietly: it sleeps while others fail,
 * and handles SIGABRT, as Python does with faulthandler. */
static bool ask_for_stack(const dt_agent_rank *rank)
{
    const json_t *before = rank->before;
    pid_t pid = rank->heartbeat.telling;

    return before != NULL && pid != 0 && !rank->agent->asked && !rank->agent->person &&
           json_integer_value(json_object_get(before, "suspicion")) == 2 &&
           json_number_value(json_object_get(before, "quiet_seconds")) >= STACK_QUIET_SECONDS &&
           dt_process_handles(pid, SIGABRT) && kill(pid, SIGABRT) == 0;
}

void dt_agent_ending_begin(dt_agent *agent, double grace_seconds, const char *reason)
{
    double deadline = dt_clock_monotonic_seconds() + grace_seconds;
    double for_stack = dt_clock_monotonic_seconds() + STACK_SECONDS;

    if (agent->ending == DT_ENDING_NO) {
        agent->ending = DT_ENDING_TERM;
        agent->ending_reason = reason;
        agent->ending_deadline_seconds = deadline;
        dt_journal_add(&agent->journal,
                       json_pack("{s:s, s:f, s:s, s:b, s:b}", "event", "stopping", "grace_seconds",
                                 grace_seconds, "reason", reason, "asked", (int)agent->asked,
                                 "person", (int)agent->person));
        for (int64_t i = 0; i < agent->rank_count; i++) {
            dt_agent_rank *rank = &agent->ranks[i];

            if (!rank->running)
                continue;
            if (rank->program != NULL && rank->before == NULL)
                rank->before = dt_agent_program_describe(rank);
            if (ask_for_stack(rank)) {
                if (agent->ending_deadline_seconds < for_stack)
                    agent->ending_deadline_seconds = for_stack;
            } else if (grace_seconds > 0 && rank->program != NULL) {
                dt_program_stop(rank->program);
            } else if (grace_seconds > 0) {
                kill(rank->pid, SIGTERM);
                kill(rank->pid, SIGCONT); /* also wakes a stopped rank */
            }
        }
        uv_timer_start(&agent->ending_timer, on_timer, LOOK_EVERY_MS, LOOK_EVERY_MS);
    } else if (agent->ending == DT_ENDING_TERM && deadline < agent->ending_deadline_seconds) {
        /* requested again, with a shorter grace period */
        agent->ending_deadline_seconds = deadline;
    }
}

/* A failed rank ends the other ranks. If a stop is already in progress, its grace period still
 * applies. */
void dt_agent_end_other_ranks(dt_agent *agent)
{
    double grace = dt_times()->failed_grace_seconds;

    if (agent->ending != DT_ENDING_NO)
        return;
    if (agent->lease_grace_seconds < grace) /* the recipe's grace period is shorter */
        grace = agent->lease_grace_seconds;
    dt_agent_ending_begin(agent, grace, "peer_failed");
}

void dt_agent_ending_advance(dt_agent *agent)
{
    bool running = dt_agent_ranks_running(agent);

    if (agent->ending == DT_ENDING_NO && agent->started && !agent->starting && !running) {
        agent->ending_reason = "";
        enter_kill(agent);
    }
    if (agent->ending == DT_ENDING_TERM &&
        (!running || dt_clock_monotonic_seconds() >= agent->ending_deadline_seconds))
        enter_kill(agent);
    if (agent->ending == DT_ENDING_KILL)
        kill_and_find(agent);
}

void dt_agent_ending_reap(dt_agent *agent)
{
    dt_agent_ranks_reap(agent, dt_agent_end_other_ranks);
    dt_agent_ending_advance(agent);
}

/* lease: stops the ranks if there is no supervisor for too long, as the recipe says (failure.launcher_lost).
 *
 * An open connection proves nothing: after a cut it may look open for hours. What counts is a message of the
 * supervisor, which answers every `alive`. Time in which this agent could not receive one (a paused machine) does
 * not count. The ranks die with the agent, so the lease needs no memory beyond it.
 */

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
