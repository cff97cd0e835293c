/* diagnose: what ranks do: the facts of each `alive` for the supervisor's watchdog, and the diagnosis of a
 * rank that does not advance.
 *
 * One diagnosis per rank at a time. The event is written when both answers have arrived or their time is over,
 * and at once if the rank dies meanwhile.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "runner/agent/agent_int.h"
#include "runner/agent/process/describe.h"
#include "runner/agent/process/load.h"

/* heartbeat: reports with every `alive` what each rank does, so that the supervisor's watchdog knows whether it
 * advances, and whether it could have (runner/supervisor/policy/watchdog.h).
 *
 * The engine's progress counter comes from its event thread: it is requested with one heartbeat and reported with
 * the next. The rest comes from the kernel (process/describe.h). A rank that a diagnosis has stopped is not
 * reported. Of a `command`, the output counts as progress, and the other facts are those of the program with its
 * descendants.
 */

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
    if (json_is_object(json_object_get(where, "times"))) {
        json_decref(rank->heartbeat.times);
        rank->heartbeat.times = json_incref(json_object_get(where, "times"));
    }
}

/* A program's sign of progress is its output: dtrun does not know its steps. */
static json_t *program_facts(dt_agent_rank *rank, const dt_process_activity *activity)
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

static json_t *rank_facts(dt_agent_rank *rank)
{
    dt_process_activity activity;
    char state[2] = "";

    if (rank->program != NULL &&
        dt_process_activity_read_tree(&activity, &rank->heartbeat.telling, rank->pid))
        return program_facts(rank, &activity);
    if (!dt_process_activity_read(&activity, rank->pid))
        return NULL;
    state[0] = activity.state;
    return json_pack("{s:I, s:s, s:f, s:I, s:I, s:b, s:b}", "rank", (json_int_t)rank->rank, "state",
                     state, "cpu_seconds", activity.cpu_seconds, "work", (json_int_t)activity.work,
                     "progress", (json_int_t)rank->heartbeat.progress, "waiting",
                     (int)rank->heartbeat.waiting, "answered", (int)!rank->heartbeat.asked);
}

/* samples: how often the first thread of a program was seen to run, and in which kernel function it slept. An
 * answer to "what does a program wait for" that needs no tracing. */

#define SAMPLE_MS    250
#define SAMPLE_KINDS 16 /* kernel functions that are told apart */

static void take_sample(dt_agent_rank *rank)
{
    json_t *samples = rank->heartbeat.samples;
    dt_process_sample seen;
    char key[80];

    dt_process_sample_read(&seen,
                           rank->heartbeat.telling != 0 ? rank->heartbeat.telling : rank->pid, "");
    if (seen.state == 'R')
        snprintf(key, sizeof(key), "runs");
    else
        snprintf(key, sizeof(key), "%c %.64s", seen.state, seen.wchan);
    if (samples == NULL)
        samples = rank->heartbeat.samples = json_object();
    if (json_object_get(samples, key) == NULL && json_object_size(samples) >= SAMPLE_KINDS)
        snprintf(key, sizeof(key), "%c ", seen.state);
    json_object_set_new(samples, key,
                        json_integer(json_integer_value(json_object_get(samples, key)) + 1));
}

static void on_sample(uv_timer_t *timer)
{
    dt_agent *agent = timer->data;
    bool any = false;

    for (int64_t i = 0; i < agent->rank_count; i++)
        if (agent->ranks[i].running && agent->ranks[i].program != NULL) {
            take_sample(&agent->ranks[i]);
            any = true;
        }
    if (!any)
        uv_timer_stop(timer);
}

/* Adds what the supervisor judges slowness by (supervisor/policy/slow.h). */
static void add_load(json_t *facts, dt_agent_rank *rank)
{
    bool is_program = rank->program != NULL;
    pid_t pid = is_program && rank->heartbeat.telling != 0 ? rank->heartbeat.telling : rank->pid;
    dt_process_load load;

    if (facts == NULL)
        return;
    if (dt_process_load_read(&load, pid, ""))
        json_object_set_new(facts, "load", dt_process_load_json(&load));
    if (rank->heartbeat.times != NULL)
        json_object_set(facts, "times", rank->heartbeat.times);
    if (rank->heartbeat.samples != NULL)
        json_object_set_new(facts, "samples", json_copy(rank->heartbeat.samples));
    if (is_program && !uv_is_active((uv_handle_t *)&rank->agent->sample_timer))
        uv_timer_start(&rank->agent->sample_timer, on_sample, SAMPLE_MS, SAMPLE_MS);
}

json_t *dt_agent_heartbeat(dt_agent *agent)
{
    json_t *ranks = json_array();

    for (int64_t i = 0; i < agent->rank_count; i++) {
        dt_agent_rank *rank = &agent->ranks[i];
        json_t *facts = rank->running && rank->diagnosis == NULL ? rank_facts(rank) : NULL;

        add_load(facts, rank);
        if (facts != NULL)
            json_array_append_new(ranks, facts);
        if (rank->running && rank->program == NULL)
            ask(rank);
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o}", "event", "alive", "time_ms",
                     (json_int_t)dt_clock_wall_ms(), "clock_ms",
                     (json_int_t)(dt_clock_monotonic_seconds() * 1e3), "next_sequence",
                     (json_int_t)agent->journal.next_sequence, "ranks", ranks, "network",
                     dt_network_load_json(""));
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

#define WHERE_SECONDS 2.0
#define STACK_SECONDS 5.0
#define LOOK_EVERY_MS 50
#define DRAIN_BYTES   ((size_t)1 << 20)

struct dt_rank_diagnosis {
    dt_agent_rank *rank;
    pid_t
        pid; /* of the process that is described: the rank's, or one that the program has started */
    json_t *event;
    dt_helper *stack;        /* NULL: ended, or not started */
    double deadline_seconds; /* deadline of the engine's answer; 0: it has answered, or cannot */
};

/* --- parts of the event */

static json_t *lines_of(const char *text)
{
    json_t *lines = json_array();

    for (const char *end; *text != '\0'; text = *end != '\0' ? end + 1 : end) {
        end = strchrnul(text, '\n');
        json_array_append_new(lines, json_stringn(text, (size_t)(end - text)));
    }
    return lines;
}

static void note(dt_rank_diagnosis *diagnosis, const char *key, const char *text)
{
    json_object_set_new(diagnosis->event, key, json_string(text));
}

static void finish_when_all_is_there(dt_rank_diagnosis *diagnosis)
{
    if (diagnosis->stack == NULL && diagnosis->deadline_seconds == 0)
        dt_agent_diagnosis_end(diagnosis->rank);
}

static void on_stack(void *context, const char *text, const char *problem)
{
    dt_rank_diagnosis *diagnosis = context;

    diagnosis->stack = NULL;
    json_object_set_new(diagnosis->event, "stack", lines_of(text));
    if (problem != NULL) {
        note(diagnosis, "stack_note", problem);
        kill(diagnosis->pid, SIGCONT); /* a killed debugger may have left the rank stopped */
    }
    finish_when_all_is_there(diagnosis);
}

/* Skips processes that are stopped or in a kernel wait: a debugger cannot attach to them. */
static void ask_for_stack(dt_rank_diagnosis *diagnosis)
{
    const char *state = json_string_value(json_object_get(diagnosis->event, "state"));
    dt_agent *agent = diagnosis->rank->agent;
    dt_error err = DT_ERROR_INIT;
    char pid[16];
    const char *const eu_stack[] = {"eu-stack", "-n", "64", "-p", pid, NULL};
    const char *const gdb[] = {
        "gdb", "-nx", "-batch", "-p", pid, "-ex", "thread apply all backtrace 64", NULL};

    snprintf(pid, sizeof(pid), "%d", (int)diagnosis->pid);
    if (strchr("RS", state[0]) == NULL) {
        note(diagnosis, "stack_note", "not taken: the process does not run");
        return;
    }
    if (dt_helper_start(&diagnosis->stack, agent, eu_stack, STACK_SECONDS, on_stack, diagnosis,
                        NULL) != DT_OK &&
        dt_helper_start(&diagnosis->stack, agent, gdb, STACK_SECONDS, on_stack, diagnosis, &err) !=
            DT_OK)
        note(diagnosis, "stack_note", "not taken: this node has neither eu-stack nor gdb");
}

static void ask_the_engine(dt_rank_diagnosis *diagnosis)
{
    static const char question[] = "{\"command\":\"where\"}\n";

    if (diagnosis->rank->channel == NULL) {
        note(diagnosis, "where_note", "its channel is closed");
        return;
    }
    dt_stream_send(diagnosis->rank->channel, question, sizeof(question) - 1);
    diagnosis->deadline_seconds = dt_clock_monotonic_seconds() + WHERE_SECONDS;
}

/* Takes only fields that the protocol defines, with the right types. */
void dt_agent_diagnosis_where(dt_agent_rank *rank, const json_t *answer)
{
    static const char *const numbers[] = {"step", "seconds", "micro_step", "micro_steps",
                                          "progress"};
    static const char *const texts[] = {"phase", "collective"};
    dt_rank_diagnosis *diagnosis = rank->diagnosis;
    json_t *where;

    if (diagnosis == NULL || diagnosis->deadline_seconds == 0)
        return;
    where = json_object();
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        json_t *number = json_object_get(answer, numbers[i]);

        json_object_set(where, numbers[i], json_is_number(number) ? number : json_null());
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        json_t *text = json_object_get(answer, texts[i]);

        json_object_set(where, texts[i], json_is_string(text) ? text : json_null());
    }
    json_object_set_new(diagnosis->event, "where", where);
    diagnosis->deadline_seconds = 0;
    finish_when_all_is_there(diagnosis);
}

/* --- a diagnosis from start to event */

void dt_agent_diagnosis_end(dt_agent_rank *rank)
{
    dt_rank_diagnosis *diagnosis = rank->diagnosis;

    if (diagnosis == NULL)
        return;
    rank->diagnosis = NULL;
    dt_helper_cancel(diagnosis->stack);
    if (diagnosis->deadline_seconds != 0)
        note(diagnosis, "where_note",
             rank->running ? "its event thread does not answer" : "it ended before it answered");
    dt_journal_add(&rank->agent->journal, diagnosis->event);
    free(diagnosis);
}

static bool is_late(const dt_rank_diagnosis *diagnosis)
{
    return diagnosis != NULL && diagnosis->deadline_seconds != 0 &&
           dt_clock_monotonic_seconds() >= diagnosis->deadline_seconds;
}

static void on_timer(uv_timer_t *timer)
{
    dt_agent *agent = timer->data;
    bool any = false;

    for (int64_t i = 0; i < agent->rank_count; i++) {
        dt_agent_rank *rank = &agent->ranks[i];

        if (is_late(rank->diagnosis) && rank->channel != NULL)
            dt_stream_drain(rank->channel,
                            DRAIN_BYTES); /* this agent may have been too slow to read it */
        if (is_late(rank->diagnosis)) {
            note(rank->diagnosis, "where_note", "its event thread does not answer");
            rank->diagnosis->deadline_seconds = 0;
            finish_when_all_is_there(rank->diagnosis);
        }
        any = any || agent->ranks[i].diagnosis != NULL;
    }
    if (!any)
        uv_timer_stop(timer);
}

static void begin(dt_agent_rank *rank)
{
    dt_rank_diagnosis *diagnosis = dt_calloc(1, sizeof(*diagnosis));

    rank->diagnosis = diagnosis;
    diagnosis->rank = rank;
    diagnosis->pid =
        rank->program != NULL && rank->heartbeat.telling != 0 ? rank->heartbeat.telling : rank->pid;
    diagnosis->event =
        json_pack("{s:s, s:I}", "event", "diagnosis", "rank", (json_int_t)rank->rank);
    json_object_update_new(diagnosis->event, dt_process_describe(diagnosis->pid));
    if (rank->program != NULL)
        json_object_set_new(diagnosis->event, "program", dt_agent_program_describe(rank));
    json_object_update_new(
        diagnosis->event,
        json_pack("{s:n, s:s, s:[], s:s}", "where", "where_note", "", "stack", "stack_note", ""));
    if (rank->program == NULL)
        ask_the_engine(diagnosis);
    else
        note(diagnosis, "where_note", "it runs a program");
    ask_for_stack(diagnosis);
    finish_when_all_is_there(diagnosis);
}

dt_status dt_agent_diagnose(dt_agent *agent, int64_t rank, dt_error *err)
{
    bool found = false;

    for (int64_t i = 0; i < agent->rank_count; i++) {
        dt_agent_rank *one = &agent->ranks[i];

        if (!one->running || (rank != -1 && rank != one->rank))
            continue;
        found = true;
        if (one->diagnosis == NULL)
            begin(one);
    }
    if (!found)
        return DT_FAIL(err, DT_ERR_NOT_FOUND, "diagnose: no such rank is running on this node");
    uv_timer_start(&agent->diagnosis_timer, on_timer, LOOK_EVERY_MS, LOOK_EVERY_MS);
    return DT_OK;
}
