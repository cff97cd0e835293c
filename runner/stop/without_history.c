/* without_history: stops runs whose history cannot be used, by asking their agents, and lists or ends what
 * runs on one node. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "runner/cli/report.h"
#include "runner/stop/direct.h"
#include "runner/stop/stop.h"
#include "runner/supervisor/supervisor.h"
#include "runner/times.h"

/* --- what runs on one node, whichever history it belongs to */

#define TELLER "dtrun stop"

static void say_running(dt_strbuf *text, const json_t *entry, const char *what)
{
    dt_strbuf_add_fmt(text, "%s attempt %s: %s\n", json_string_value(json_object_get(entry, "run")),
                      json_string_value(json_object_get(entry, "attempt")), what);
}

/* Picks the entries of `runs` that are meant: all without `wanted`. Each gets a place whose folder it names. */
static int64_t choose(dt_direct_place *places, json_t *chosen, const json_t *runs,
                      const char *wanted, const dt_direct_place *node)
{
    int64_t count = 0;
    json_t *entry;
    size_t i;

    json_array_foreach((json_t *)runs, i, entry) {
        const char *folder = json_string_value(json_object_get(entry, "folder"));
        const char *run = json_string_value(json_object_get(entry, "run"));

        if (folder == NULL || run == NULL || (wanted != NULL && strcmp(run, wanted) != 0))
            continue;
        json_array_append(chosen, entry);
        places[count++] = (dt_direct_place){
            .node = node->node, .agent = node->agent, .folder = folder, .grace_seconds = -1};
    }
    return count;
}

static dt_status print(json_t *chosen, const dt_direct_place *places, bool list, const char *node,
                       const char *ref, dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;
    json_t *entry;
    dt_strbuf text;
    size_t i;

    dt_strbuf_init(&text);
    json_array_foreach(chosen, i, entry) {
        const char *problem = places[i].problem;

        if (problem != NULL)
            call->exit_code = DT_EXIT_LEFT;
        say_running(&text, entry,
                    list              ? "is running"
                    : problem != NULL ? problem
                                      : "nothing of it is left");
        json_object_set_new(entry, "stopped", json_boolean(!list && problem == NULL));
    }
    if (call->json) {
        json_t *object = dt_report_object();

        json_object_set_new(object, "node", dt_json_text(node));
        json_object_set(object, "runs", chosen);
        DT_TRY(dt_report_json(object, err));
        goto out;
    }
    if (json_array_size(chosen) == 0)
        dt_strbuf_add_fmt(&text, "nothing of %s runs on %s\n", ref != NULL ? ref : "dtrun", node);
    else if (list)
        dt_strbuf_add_fmt(&text, "'dtrun stop --node %s RUN' stops one, '--all' all of them\n",
                          node);
    DT_TRY(dt_report_text(&text, err));
out:
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_stop_on_node(const char *node, const char *ref, dt_call *call, dt_error *err)
{
    bool now = dt_arguments_flag(call->args, "now");
    bool list = ref == NULL && !dt_arguments_flag(call->args, "all");
    dt_direct_place there = {.node = node}, *places;
    json_t *chosen = json_array();
    const char *wanted = NULL;
    dt_status st = DT_OK;
    int64_t count = 0;

    dt_direct_ask(&there, 1, DT_DIRECT_LIST, TELLER, call->arena);
    if (there.problem != NULL)
        DT_THROW(err, DT_ERR_PEER, "node '%s': %s", node, there.problem);
    if (ref != NULL)
        DT_TRY(dt_direct_pick(&wanted, there.running, ref, err));
    places = dt_arena_alloc_array(call->arena, json_array_size(there.running) + 1, sizeof(*places));
    if (ref == NULL || wanted != NULL)
        count = choose(places, chosen, there.running, wanted, &there);
    if (!list)
        dt_direct_ask(places, count, now ? DT_DIRECT_NOW : DT_DIRECT_GRACE, TELLER, call->arena);
    DT_TRY(print(chosen, places, list, node, ref, call, err));
out:
    json_decref(there.running);
    json_decref(chosen);
    return st;
}

#define LOOK_SECONDS 0.05

/* A run that was asked to stop, and the result. */
typedef struct asked {
    const char *run;
    dt_direct_place *places; /* [count], where it may have processes */
    int64_t count, named;    /* named: by the folder of the run */
    int64_t stays;           /* agents that still run, without a rank */
    const char *left;        /* nodes where that could not be verified, and why; "" if none */
    bool waits;              /* its supervisor waits for disk space to write the end */
    int64_t paused;          /* supervisor process that is stopped by a signal; 0: none */
    const char *unmarked;    /* why the stop could not be recorded; NULL: it was */
    /* why the waiting processes could not be ended; NULL: not tried, or done */
    const char *kept;
} asked;

/* Asks a running supervisor to stop the run, which records the end once it can. why: if
 * DT_ERR_TIMEOUT, it was asked before. */
static dt_status ask(asked *out, const char *run, bool now, const dt_error *why, dt_call *call,
                     dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    const char *folder;
    dt_status st = DT_OK;

    *out = (asked){.run = run};
    DT_TRY(dt_run_path(&folder, run, NULL, call->arena, err));
    DT_TRY(dt_run_check_owner(run, folder, err));
    if (dt_supervisor_mark_stop(run, now, &problem) != DT_OK) {
        out->unmarked = dt_arena_strdup(call->arena, problem.message);
    }
    if (why->code != DT_ERR_TIMEOUT)
        (void)dt_supervisor_stop_running(run, now, NULL);
out:
    return st;
}

/* Takes what the places have answered. */
static void take_answers(asked *out, dt_call *call)
{
    dt_strbuf left;

    dt_strbuf_init(&left);
    dt_direct_add_left(&left, out->places, out->count);
    out->left = dt_arena_strdup(call->arena, left.data);
    if (left.length > 0)
        call->exit_code = DT_EXIT_LEFT;
    out->stays = out->paused = 0;
    out->waits = false;
    out->kept = NULL;
    for (int64_t i = 0; i < out->count; i++)
        out->stays += out->places[i].stays ? 1 : 0;
    dt_strbuf_release(&left);
}

/* Asks the agents of all runs at once, in any case: only they can verify that nothing is left. */
static dt_status prove(asked *all, int64_t count, dt_direct_how how, dt_call *call, dt_error *err)
{
    dt_direct_place *every, *next;
    dt_status st = DT_OK;
    int64_t places = 0;

    for (int64_t i = 0; i < count; i++) {
        DT_TRY(dt_direct_places(&all[i].places, &all[i].count, &all[i].named, all[i].run,
                                call->arena, err));
        places += all[i].count;
    }
    every = next = dt_arena_alloc_array(call->arena, (size_t)places + 1, sizeof(*every));
    for (int64_t i = 0; i < count; i++, next += all[i - 1].count) {
        if (all[i].count > 0)
            memcpy(next, all[i].places, (size_t)all[i].count * sizeof(*every));
        all[i].places = next;
    }
    dt_direct_ask(every, places, how, "dtrun stop", call->arena);
    for (int64_t i = 0; i < count; i++)
        take_answers(&all[i], call);
out:
    return st;
}

/* Waits until the supervisors have ended, or wait for disk space. */
static void look_at_supervisors(asked *all, int64_t count)
{
    double deadline = dt_clock_monotonic_seconds() + dt_times()->direct_supervisor_end_seconds;

    for (int64_t i = 0; i < count; i++)
        while ((all[i].waits = dt_supervisor_is_running(all[i].run)) &&
               (all[i].paused = dt_supervisor_paused(all[i].run)) == 0 &&
               dt_clock_monotonic_seconds() < deadline)
            dt_clock_sleep_seconds(LOOK_SECONDS);
}

/* Ends supervisors that cannot record the end, and agents that cannot write their journals. */
static dt_status end_those_that_wait(asked *all, int64_t count, dt_call *call, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    int lock = -1;

    for (int64_t i = 0; i < count; i++) {
        if (all[i].left[0] != '\0')
            continue;
        dt_error_clear(&problem);
        if (dt_supervisor_end(&lock, all[i].run, &problem) != DT_OK) {
            all[i].kept = dt_arena_strdup(call->arena, problem.message);
            continue;
        }
        st = prove(&all[i], 1, DT_DIRECT_ALL, call, err);
        if (st == DT_OK && all[i].left[0] == '\0' &&
            dt_supervisor_end_helpers(all[i].run, false) > 0) {
            all[i].left = "cannot kill the processes that its supervisor started on this machine";
            call->exit_code = DT_EXIT_LEFT;
        }
        close(lock);
        if (st != DT_OK)
            return st;
    }
    return st;
}

/* True if a later supervisor may restart the run: no agent has the stop in its journal, and it
 * is recorded nowhere else. */
static bool may_continue(const asked *one)
{
    return one->unmarked != NULL && one->named == 0;
}

/* Handles supervisors and agents that are left after the ranks have ended. */
static dt_status settle(asked *all, int64_t count, bool now, dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;

    look_at_supervisors(all, count);
    if (now)
        DT_TRY(end_those_that_wait(all, count, call, err));
    for (int64_t i = 0; i < count; i++)
        if (all[i].waits || all[i].stays > 0 || may_continue(&all[i]))
            call->exit_code = DT_EXIT_LEFT;
out:
    return st;
}

static void add_waiting(dt_strbuf *text, const asked *one)
{
    dt_strbuf_add_fmt(text, "no rank of run %s is left running; ", one->run);
    if (one->paused != 0)
        dt_strbuf_add_fmt(
            text,
            "its supervisor, process %lld, is paused: 'kill -CONT %lld' lets it write "
            "the end into the run history\n",
            (long long)one->paused, (long long)one->paused);
    else if (one->waits)
        dt_strbuf_add_str(text,
                          "its supervisor waits until it can write the end to the run history\n");
    else
        dt_strbuf_add_fmt(text,
                          "agents on %lld of its nodes wait for disk space for their journals\n",
                          (long long)one->stays);
    if (one->kept != NULL)
        dt_strbuf_add_fmt(text, "cannot end it: %s\n", one->kept);
    else
        dt_strbuf_add_fmt(text, "'dtrun stop %s --now' ends it\n", one->run);
}

static void add_text(dt_strbuf *text, const asked *one, const char *why)
{
    if (one->left[0] != '\0')
        dt_strbuf_add_fmt(text, "cannot verify that nothing of run %s is left: %s\n", one->run,
                          one->left);
    else if (one->waits || one->stays > 0)
        add_waiting(text, one);
    else
        dt_strbuf_add_fmt(text, "nothing of run %s is left running\n", one->run);
    if (may_continue(one))
        dt_strbuf_add_fmt(
            text,
            "a later supervisor may continue the run, because the stop could not be recorded: %s\n",
            one->unmarked);
    dt_strbuf_add_fmt(text, "%lld node%s asked without the run history: %s\n",
                      (long long)one->named, one->named == 1 ? " was" : "s were", why);
}

static void add_json(json_t *object, const asked *one, const char *why)
{
    json_object_set_new(object, "run", json_string(one->run));
    json_object_set_new(object, "directly", json_true());
    json_object_set_new(object, "nodes_asked", json_integer(one->named));
    json_object_set_new(object, "left", dt_json_text(one->left));
    json_object_set_new(object, "supervisor_waits", json_boolean(one->waits));
    json_object_set_new(object, "supervisor_paused", json_boolean(one->paused != 0));
    json_object_set_new(object, "agents_wait", json_integer(one->stays));
    if (may_continue(one))
        json_object_set_new(object, "stop_not_noted", dt_json_text(one->unmarked));
    if (one->kept != NULL)
        json_object_set_new(object, "could_not_end", dt_json_text(one->kept));
    json_object_set_new(object, "reason", dt_json_text(why));
}

/* alone: the JSON is that of the only run, not a list. */
static dt_status stop_runs(const char *const *runs, int64_t count, bool alone, bool now,
                           const dt_error *why, dt_call *call, dt_error *err)
{
    asked *all = dt_arena_alloc_array(call->arena, (size_t)count, sizeof(*all));
    json_t *object = dt_report_object(), *list = json_array();
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (int64_t i = 0; i < count; i++)
        DT_TRY(ask(&all[i], runs[i], now, why, call, err));
    DT_TRY(prove(all, count, now ? DT_DIRECT_NOW : DT_DIRECT_GRACE, call, err));
    DT_TRY(settle(all, count, now, call, err));
    for (int64_t i = 0; i < count; i++) {
        json_t *one = alone ? object : json_object();

        add_json(one, &all[i], why->message);
        if (!alone)
            json_array_append_new(list, one);
        add_text(&text, &all[i], why->message);
    }
    if (!call->json) {
        DT_TRY(dt_report_text(&text, err));
        goto out;
    }
    if (!alone)
        json_object_set(object, "runs", list);
    DT_TRY(dt_report_json(json_incref(object), err));
out:
    json_decref(object);
    json_decref(list);
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_stop_without_history(const char *ref, bool now, const dt_error *why, dt_call *call,
                                  dt_error *err)
{
    const char *run;

    if (dt_direct_find(&run, ref, call->arena, NULL) != DT_OK)
        return DT_FAIL(err, why->code, "%s", why->message);
    return stop_runs(&run, 1, true, now, why, call, err);
}

dt_status dt_stop_all_without_history(const char *const *runs, int64_t count, bool now,
                                      const dt_error *why, dt_call *call, dt_error *err)
{
    return stop_runs(runs, count, false, now, why, call, err);
}
