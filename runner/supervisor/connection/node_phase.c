/* node_phase: the [phase][event] table of a node's link (node_link.h), its handlers, and the judgement of
 * silence. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "runner/channel/protocol.h"
#include "runner/supervisor/connection/connection_int.h"
#include "runner/supervisor/policy/liveness.h"
#include "runner/times.h"
#include "store/activity.h"

/* silence: judges the silence of a node (policy/liveness.h).
 *
 * A cut of ten seconds must cost nothing. So probes and connections after a silence do not share the
 * connection that was cut, which may be stuck for as long again (TCP doubles its retransmission timeout);
 * and the agent resumes from the number that is stored here.
 */

static dt_liveness_facts facts_of(const dt_node_link *link)
{
    dt_liveness_facts facts = {
        .now = dt_node_now(link),
        .heard = link->heard_seconds,
        .connected = link->connected_seconds,
        .tries = link->tries,
        .connection = link->bridge != NULL,
        .here = link->place.here,
        .idle = link->idle,
        .replaced = link->replace,
        .probed = link->probed_seconds,
        .reached = link->reached_seconds,
        .command = link->command_seconds,
        .answered = link->answered_seconds,
        .unknown = link->unknown_seconds,
    };

    link->calls.judge(link->context, link->setup.index, &facts);
    return facts;
}

/* Writes the state of a node that does not answer, as stored: DT_NODE_NOT_REACHABLE (PROBLEM). */
static void node_say_unreachable(char *out, size_t size, const char *problem)
{
    const char *rest = strstr(problem, "': ");

    if (strncmp(problem, "node '", 6) == 0 && rest != NULL)
        problem = rest + 3;
    if (problem[0] == '\0')
        snprintf(out, size, DT_NODE_NOT_REACHABLE);
    else
        snprintf(out, size, DT_NODE_NOT_REACHABLE " (%s)", problem);
}

static void show_unreachable(dt_node_link *link)
{
    char text[sizeof(link->shown)];

    if (link->unreachable && link->problem[0] == '\0')
        return; /* a try is running */
    node_say_unreachable(text, sizeof(text), link->problem);
    if (link->unreachable && strcmp(text, link->shown) == 0)
        return;
    link->unreachable = true;
    memcpy(link->shown, text, sizeof(text));
    dt_log_warn("%s: %s", link->name, text);
    link->calls.unreachable(link->context, link->setup.index, link->shown);
}

static void explain(char *why, size_t why_size, const dt_node_link *link,
                    const dt_liveness_facts *facts, bool gone)
{
    bool known = link->problem[0] != '\0';
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (gone)
        dt_strbuf_add_fmt(&text, "node %s is gone: nothing was heard from it for %.0f s",
                          link->name, facts->now - facts->heard);
    else
        dt_strbuf_add_fmt(&text, "the agent on %s is unavailable", link->name);
    if (known)
        dt_strbuf_add_fmt(&text, "%s%.300s", gone ? " (" : ": ", link->problem);
    if (known && gone)
        dt_strbuf_add_char(&text, ')');
    if (facts->started)
        dt_strbuf_add_str(&text, "; its ranks may still be there");
    snprintf(why, why_size, "%.*s", (int)why_size - 1, text.data);
    dt_strbuf_release(&text);
}

/* Judges the silence of the node. Starts a probe and shows the node as unreachable if needed;
 * returns the act that the table handles. *why: the reason if the node is given up. */
static dt_liveness_act node_judge(dt_node_link *link, char *why, size_t why_size)
{
    dt_liveness_facts facts = facts_of(link);
    dt_liveness_verdict verdict = dt_liveness_judge(&facts);

    if (verdict.probe) {
        link->probed_seconds = facts.now;
        dt_node_prober_begin(link->prober, link->name, link->place.agent, facts.now);
    }
    if (verdict.unreachable && facts.started)
        show_unreachable(link);
    if (verdict.act == DT_LIVENESS_LOST || verdict.act == DT_LIVENESS_NO_AGENT)
        explain(why, why_size, link, &facts, verdict.act == DT_LIVENESS_LOST);
    return verdict.act;
}

/* --- the table and its handlers */

typedef void handler(dt_node_link *link);

static handler begin, prepare, use_preparation, connect_first, connect_again, attach, cut, look,
    end_there, end_again, ended, send_stop, stop_unplaced, remember_release, release, rejoin,
    say_bye, leave, give_up, tell_settled;

static handler *const table[DT_NODE_PHASE_COUNT][DT_NODE_EVENT_COUNT] = {
    [DT_NODE_NEW] =
        {
            [DT_NODE_EVENT_BEGIN] = begin,
            [DT_NODE_EVENT_STOP] = stop_unplaced,
            [DT_NODE_EVENT_RELEASE] = remember_release,
        },
    [DT_NODE_PREPARING] =
        {
            [DT_NODE_EVENT_PREPARED] = use_preparation,
            [DT_NODE_EVENT_STOP] = stop_unplaced,
            [DT_NODE_EVENT_GIVE_UP] = give_up,
        },
    [DT_NODE_AWAY] =
        {
            [DT_NODE_EVENT_TICK] = prepare,
            [DT_NODE_EVENT_STOP] = stop_unplaced,
            [DT_NODE_EVENT_GIVE_UP] = give_up,
        },
    [DT_NODE_CONNECTING] =
        {
            [DT_NODE_EVENT_HELLO] = attach,
            [DT_NODE_EVENT_CUT] = cut,
            [DT_NODE_EVENT_SPENT] = end_there,
            [DT_NODE_EVENT_TICK] = look,
            [DT_NODE_EVENT_STOP] = send_stop,
            [DT_NODE_EVENT_GIVE_UP] = give_up,
        },
    [DT_NODE_ATTACHED] =
        {
            [DT_NODE_EVENT_HELLO] = attach,
            [DT_NODE_EVENT_CUT] = cut,
            [DT_NODE_EVENT_SPENT] = end_there,
            [DT_NODE_EVENT_TICK] = look,
            [DT_NODE_EVENT_STOP] = send_stop,
            [DT_NODE_EVENT_RELEASE] = release,
            [DT_NODE_EVENT_GIVE_UP] = give_up,
        },
    [DT_NODE_BETWEEN] =
        {
            [DT_NODE_EVENT_TICK] = connect_again,
            [DT_NODE_EVENT_GIVE_UP] = give_up,
        },
    [DT_NODE_ENDING] =
        {
            [DT_NODE_EVENT_TICK] = end_again,
            [DT_NODE_EVENT_ENDED] = ended,
            [DT_NODE_EVENT_GIVE_UP] = give_up,
        },
    [DT_NODE_RELEASED] =
        {
            [DT_NODE_EVENT_CUT] = leave,
            [DT_NODE_EVENT_STORED] = say_bye,
        },
    [DT_NODE_LEAVING] =
        {
            [DT_NODE_EVENT_BEGIN] = rejoin,
            [DT_NODE_EVENT_HELLO] = say_bye,
            [DT_NODE_EVENT_CUT] = leave,
        },
    [DT_NODE_UNUSED] = {[DT_NODE_EVENT_PREPARED] = tell_settled},
    [DT_NODE_LOST] = {[DT_NODE_EVENT_PREPARED] = tell_settled},
};

void dt_node_dispatch(dt_node_link *link, dt_node_event event, const char *why)
{
    handler *handle = table[link->phase][event];

    if (handle == NULL || link->calls.is_over(link->context))
        return;
    if (why != NULL && why != link->problem)
        snprintf(link->problem, sizeof(link->problem), "%s", why);
    handle(link);
}

/* --- time */

static void on_time(uv_timer_t *timer)
{
    dt_node_dispatch(timer->data, DT_NODE_EVENT_TICK, NULL);
}

static void wait_for(dt_node_link *link, uint64_t wait_ms)
{
    uv_timer_start(&link->timer, on_time, wait_ms, dt_times_ms(dt_times()->link_look_seconds));
}

static void disconnect(dt_node_link *link)
{
    dt_bridge_close(link->bridge);
    link->bridge = NULL;
}

static void tell_settled(dt_node_link *link)
{
    link->calls.settled(link->context);
}

/* --- preparation */

static void on_news(void *context, const char *text)
{
    dt_node_link *link = context;

    if (link->calls.is_over(link->context))
        return;
    dt_log_info("%s: %s", link->name, text);
    link->calls.preparing(link->context, link->setup.index, text);
}

static void on_prepared(void *context, dt_status st, const dt_error *err)
{
    dt_node_link *link = context;

    link->preparation = NULL;
    link->prepared_status = st;
    dt_node_dispatch(link, DT_NODE_EVENT_PREPARED,
                     err->message[0] != '\0' ? err->message : "its preparation was cancelled");
}

static void prepare(dt_node_link *link)
{
    static const dt_preparation_calls calls = {.news = on_news, .done = on_prepared};
    const dt_node_setup *setup = &link->setup;
    dt_prepare_request request = {.node = link->name,
                                  .run = setup->run,
                                  .attempt = setup->attempt,
                                  .node_index = setup->index,
                                  .node_count = setup->node_count,
                                  .here = setup->here,
                                  .checkpoints_here = setup->checkpoints,
                                  .plan = setup->plan};

    link->phase = DT_NODE_PREPARING;
    uv_timer_stop(&link->timer);
    link->preparation = dt_preparation_begin(setup->loop, &request, &calls, link);
}

static void use_preparation(dt_node_link *link)
{
    dt_error err = DT_ERROR_INIT;
    dt_status st = link->prepared_status;

    if (st == DT_OK)
        st = link->calls.prepared(link->context, link->setup.index, &err);
    if (link->placed) {
        connect_first(link);
        return;
    }
    if (err.message[0] != '\0')
        snprintf(link->problem, sizeof(link->problem), "%.*s", (int)sizeof(link->problem) - 1,
                 err.message);
    if (link->calls.may_wait(link->context, link->setup.index, st)) {
        node_say_unreachable(link->shown, sizeof(link->shown), link->problem);
        on_news(link, link->shown);
        link->phase = DT_NODE_AWAY;
        wait_for(link, dt_times_ms(dt_times()->prepare_again_seconds));
        return;
    }
    link->unrecoverable = dt_node_loss_is_final(st);
    give_up(link);
}

static void begin(dt_node_link *link)
{
    if (link->placed)
        connect_first(link);
    else
        prepare(link);
}

static void stop_unplaced(dt_node_link *link)
{
    if (link->placed || link->place_lost)
        return;
    dt_preparation_cancel(link->preparation);
    uv_timer_stop(&link->timer);
    link->phase = DT_NODE_UNUSED;
}

/* --- connection */

static dt_status open_bridge(dt_node_link *link, bool start, dt_error *err)
{
    const char *const words[] = {link->place.agent,
                                 "connect",
                                 link->place.folder,
                                 start ? "--start" : NULL,
                                 start && link->replace ? "--replace" : NULL,
                                 NULL};
    const char **argv;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_node_command(&argv, link->name, words, link->renew, &arena, err));
    DT_TRY(dt_bridge_open(&link->bridge, link->setup.loop, argv, &link->words, link, err));
    if (link->frozen)
        dt_bridge_freeze(link->bridge, true);
out:
    dt_arena_release(&arena);
    return st;
}

static void connect_to(dt_node_link *link, bool start)
{
    dt_error err = DT_ERROR_INIT;

    wait_for(link, dt_times_ms(dt_times()->link_look_seconds));
    link->problem[0] = '\0';
    link->connected_seconds = dt_node_now(link);
    if (open_bridge(link, start, &err) != DT_OK) {
        dt_node_dispatch(link, DT_NODE_EVENT_CUT, err.message);
        return;
    }
    link->asked_ms = dt_clock_wall_ms();
    dt_bridge_send(link->bridge,
                   json_pack("{s:s, s:i, s:s, s:I, s:I}", "command", "attach", "protocol",
                             DT_PROTOCOL_VERSION, "run", link->setup.run, "attempt",
                             (json_int_t)link->setup.attempt, "from",
                             (json_int_t)link->calls.next_event(link->context, link->setup.index)));
}

static void connect_again(dt_node_link *link)
{
    link->phase = DT_NODE_CONNECTING;
    connect_to(link, true);
}

static void connect_first(dt_node_link *link)
{
    link->heard_seconds = dt_node_now(link);
    connect_again(link);
}

static void attach(dt_node_link *link)
{
    link->phase = DT_NODE_ATTACHED;
    link->tries = 0;
    link->replace = link->renew = link->unreachable = false;
    link->calls.attached(link->context, link->setup.index, link->boot_id);
}

/* --- broken connection, silence */

static void act_on_silence(dt_node_link *link)
{
    char why[sizeof(link->problem)];

    switch (node_judge(link, why, sizeof(why))) {
    case DT_LIVENESS_WAIT:
        break;
    case DT_LIVENESS_RECONNECT:
        link->renew = true;
        dt_node_dispatch(link, DT_NODE_EVENT_CUT, "no message from its agent");
        break;
    case DT_LIVENESS_REPLACE:
        dt_log_warn("%s: replacing its agent", link->name);
        link->replace = true;
        link->heard_seconds = dt_node_now(link);
        disconnect(link);
        link->phase = DT_NODE_BETWEEN;
        break;
    case DT_LIVENESS_NO_AGENT:
    case DT_LIVENESS_LOST:
        dt_node_dispatch(link, DT_NODE_EVENT_GIVE_UP, why);
        break;
    }
}

static void look(dt_node_link *link)
{
    if (link->paused && link->phase == DT_NODE_ATTACHED) {
        /* This supervisor does not read: the silence does not count, and the lease is renewed. */
        link->heard_seconds = dt_node_now(link);
        dt_bridge_send(link->bridge, json_pack("{s:s}", "command", "alive"));
        return;
    }
    act_on_silence(link);
}

static void cut(dt_node_link *link)
{
    const dt_time_limits *times = dt_times();
    uint64_t first_ms = dt_times_ms(times->backoff_first_seconds);
    uint64_t most_ms = dt_times_ms(times->backoff_most_seconds);
    uint64_t wait_ms = first_ms << (link->tries < 8 ? link->tries : 8);

    disconnect(link);
    link->phase = DT_NODE_BETWEEN;
    dt_log_warn("%s: %s", link->name, link->problem);
    if (link->preempted) {
        char gone[sizeof(link->problem)];

        snprintf(gone, sizeof(gone), "node %s is gone (%.400s)", link->name, link->problem);
        link->unrecoverable = true;
        dt_node_dispatch(link, DT_NODE_EVENT_GIVE_UP, gone);
        return;
    }
    link->tries++;
    wait_for(link, wait_ms < most_ms ? wait_ms : most_ms);
    act_on_silence(link);
}

static void give_up(dt_node_link *link)
{
    link->phase = DT_NODE_LOST;
    dt_node_prober_forget(link->prober);
    dt_preparation_cancel(link->preparation);
    dt_node_process_let_go(link->end);
    link->end = NULL;
    disconnect(link);
    uv_timer_stop(&link->timer);
    link->calls.lost(link->context, link->setup.index);
}

/* --- ending what runs there without its agent */

void dt_node_refuse(dt_node_link *link, const char *why, bool lasting)
{
    char text[300];

    if (table[link->phase][DT_NODE_EVENT_SPENT] == NULL)
        return;
    if (!dt_refusal_is_last(&link->refusals,
                            link->calls.next_event(link->context, link->setup.index), lasting)) {
        dt_node_dispatch(link, DT_NODE_EVENT_CUT, why);
        return;
    }
    snprintf(text, sizeof(text), "the agent on %.60s cannot be used: %.200s", link->name, why);
    dt_node_dispatch(link, DT_NODE_EVENT_SPENT, text);
}

static void on_end_exited(void *context, int64_t code, int number)
{
    dt_node_link *link = context;

    link->end = NULL;
    if (code == 0 && number == 0)
        dt_node_dispatch(link, DT_NODE_EVENT_ENDED, NULL);
    else if (link->end_tries < DT_REFUSAL_END_TRIES)
        wait_for(link, dt_times_ms(dt_times()->end_again_seconds));
    else
        dt_node_dispatch(link, DT_NODE_EVENT_GIVE_UP, NULL);
}

/* Handles a tick: starts the next try, or kills one that takes too long. */
static void end_again(dt_node_link *link)
{
    if (link->end != NULL) {
        dt_node_process_kill(link->end);
        return;
    }
    link->end_tries++;
    link->end = dt_node_process_end_agent(link->setup.loop, link->name, link->place.agent,
                                          link->place.folder, on_end_exited, link);
    wait_for(link, dt_times_ms(dt_times()->end_most_seconds));
    if (link->end == NULL)
        on_end_exited(link, -1, 0);
}

static void end_there(dt_node_link *link)
{
    dt_log_warn("%s: ending what runs there", link->problem);
    disconnect(link);
    link->phase = DT_NODE_ENDING;
    link->end_tries = 0;
    end_again(link);
}

static void ended(dt_node_link *link)
{
    dt_log_info("%s: what ran there was ended: %s", link->name, link->problem);
    uv_timer_stop(&link->timer);
    link->phase = DT_NODE_RELEASED;
    link->calls.ended(link->context, link->setup.index, link->problem);
}

/* --- end */

static void send_stop(dt_node_link *link)
{
    dt_bridge_send(link->bridge, json_pack("{s:s, s:f, s:b}", "command", "stop", "grace_seconds",
                                           link->grace_seconds, "person", (int)link->person));
}

static void remember_release(dt_node_link *link)
{
    link->phase = DT_NODE_LEAVING;
}

static void release(dt_node_link *link)
{
    link->phase = DT_NODE_RELEASED;
}

/* Reconnects to a node that was released in an earlier session: its agent may still wait for
 * `bye`. */
static void rejoin(dt_node_link *link)
{
    if (link->placed)
        connect_to(link, false);
    else
        link->phase = DT_NODE_GONE;
}

static void say_bye(dt_node_link *link)
{
    link->phase = DT_NODE_LEAVING;
    if (link->bridge == NULL)
        leave(link);
    else
        dt_bridge_send(link->bridge, json_pack("{s:s}", "command", "bye"));
}

static void leave(dt_node_link *link)
{
    link->phase = DT_NODE_GONE;
    disconnect(link);
    uv_timer_stop(&link->timer);
    link->calls.settled(link->context);
}
