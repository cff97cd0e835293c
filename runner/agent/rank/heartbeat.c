/* heartbeat: reports with every `alive` what each rank does, so that the supervisor's watchdog knows whether it
 * advances, and whether it could have (runner/supervisor/policy/watchdog.h).
 *
 * The engine's progress counter comes from its event thread: it is requested with one heartbeat and reported with
 * the next. The rest comes from the kernel (activity.h). A rank that a diagnosis has stopped is not reported. Of a
 * `command`, the output counts as progress, and the other facts are those of the program with its descendants.
 */
#include <time.h>

#include "base/clock.h"
#include "runner/agent/agent_int.h"
#include "runner/agent/process/activity.h"
#include "runner/agent/process/describe.h"

#define PROGRAM_IDLE_SECONDS 0.04 /* of processor time between two heartbeats */

static void ask(dt_agent_rank *rank)
{
    static const char question[] = "{\"command\":\"where\"}\n";

    if (rank->channel == NULL || rank->heartbeat.asked)
        return;
    dt_stream_send(rank->channel, question, sizeof(question) - 1);
    rank->heartbeat.asked = true;
}

void dt_agent_heartbeat_answer(dt_agent_rank *rank, const json_t *where)
{
    const json_t *progress = json_object_get(where, "progress");

    rank->heartbeat.asked = false;
    rank->heartbeat.progress = json_is_integer(progress) ? json_integer_value(progress) : -1;
    rank->heartbeat.waiting = json_is_string(json_object_get(where, "collective"));
}

/* A program's sign of progress is its output: dtrun does not know its steps. */
static json_t *tell_program(dt_agent_rank *rank, const dt_process_activity *activity)
{
    double now = dt_clock_monotonic_seconds();
    double used = activity->cpu_seconds - rank->heartbeat.cpu_seconds;
    char state[2] = {activity->state, '\0'};

    if (rank->heartbeat.quiet_since_seconds == 0 ||
        rank->heartbeat.progress != rank->heartbeat.output || used > PROGRAM_IDLE_SECONDS ||
        used < 0)
        rank->heartbeat.quiet_since_seconds = now;
    rank->heartbeat.cpu_seconds = activity->cpu_seconds;
    rank->heartbeat.progress = rank->heartbeat.output;
    return json_pack("{s:I, s:s, s:f, s:I, s:I, s:b, s:b}", "rank", (json_int_t)rank->rank, "state",
                     state, "cpu_seconds", activity->cpu_seconds, "work",
                     (json_int_t)activity->work, "progress", (json_int_t)rank->heartbeat.progress,
                     "waiting", 0, "answered", 1);
}

static json_t *tell(dt_agent_rank *rank)
{
    dt_process_activity activity;
    char state[2] = "";

    if (rank->program != NULL &&
        dt_process_activity_read_tree(&activity, &rank->heartbeat.telling, rank->pid))
        return tell_program(rank, &activity);
    if (!dt_process_activity_read(&activity, rank->pid))
        return NULL;
    state[0] = activity.state;
    return json_pack("{s:I, s:s, s:f, s:I, s:I, s:b, s:b}", "rank", (json_int_t)rank->rank, "state",
                     state, "cpu_seconds", activity.cpu_seconds, "work", (json_int_t)activity.work,
                     "progress", (json_int_t)rank->heartbeat.progress, "waiting",
                     (int)rank->heartbeat.waiting, "answered", (int)!rank->heartbeat.asked);
}

json_t *dt_agent_heartbeat(dt_agent *agent)
{
    json_t *ranks = json_array();

    for (int64_t i = 0; i < agent->rank_count; i++) {
        dt_agent_rank *rank = &agent->ranks[i];
        json_t *told = rank->running && rank->diagnosis == NULL ? tell(rank) : NULL;

        if (told != NULL)
            json_array_append_new(ranks, told);
        if (rank->running && rank->program == NULL)
            ask(rank);
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:o}", "event", "alive", "time_ms",
                     (json_int_t)dt_clock_wall_ms(), "clock_ms",
                     (json_int_t)(dt_clock_monotonic_seconds() * 1e3), "next_sequence",
                     (json_int_t)agent->journal.next_sequence, "ranks", ranks);
}

json_t *dt_agent_program_describe(const dt_agent_rank *rank)
{
    double since = rank->heartbeat.quiet_since_seconds;
    pid_t pid = rank->heartbeat.telling != 0 ? rank->heartbeat.telling : rank->pid;
    json_t *out = dt_process_describe_briefly(pid);

    json_object_set_new(out, "quiet_seconds",
                        json_real(since > 0 ? dt_clock_monotonic_seconds() - since : 0));
    return out;
}
