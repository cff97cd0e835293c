/* node_phase: the [phase][event] table of a node's link (node_link.h), and its handlers. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "runner/channel/protocol.h"
#include "runner/supervisor/connection/connection_int.h"
#include "runner/supervisor/policy/liveness.h"
#include "runner/times.h"

/* --- the table and its handlers */

typedef void handler(dt_node_link *link);

/* Cells of the table without an action (dt_reaction, node_link.h); never called. */
static void ignored(dt_node_link *link) {}
static void impossible(dt_node_link *link) {}

static handler begin, prepare, use_preparation, connect_first, connect_again, attach, cut, look,
    end_there, end_again, ended, send_stop, stop_unplaced, remember_release, release, rejoin,
    send_bye, leave, give_up, report_settled;

static handler
    *const table[DT_NODE_PHASE_COUNT][DT_NODE_EVENT_COUNT] =
        {
            [DT_NODE_NEW] =
                {
                    [DT_NODE_EVENT_BEGIN] = begin,
                    [DT_NODE_EVENT_STOP] = stop_unplaced,
                    [DT_NODE_EVENT_RELEASE] = remember_release,
                    [DT_NODE_EVENT_PREPARED] = impossible,
                    [DT_NODE_EVENT_HELLO] = impossible,
                    [DT_NODE_EVENT_CUT] = impossible,
                    [DT_NODE_EVENT_SPENT] = impossible,
                    [DT_NODE_EVENT_TICK] = impossible,
                    [DT_NODE_EVENT_STORED] = impossible,
                    [DT_NODE_EVENT_ENDED] = impossible,
                    [DT_NODE_EVENT_GIVE_UP] = impossible,
                },
            [DT_NODE_PREPARING] =
                {
                    [DT_NODE_EVENT_PREPARED] = use_preparation,
                    [DT_NODE_EVENT_STOP] = stop_unplaced,
                    [DT_NODE_EVENT_GIVE_UP] = give_up,
                    [DT_NODE_EVENT_BEGIN] = impossible,
                    [DT_NODE_EVENT_HELLO] = impossible,
                    [DT_NODE_EVENT_CUT] = impossible,
                    [DT_NODE_EVENT_SPENT] = impossible,
                    [DT_NODE_EVENT_TICK] = impossible,
                    [DT_NODE_EVENT_RELEASE] = impossible,
                    [DT_NODE_EVENT_STORED] = impossible,
                    [DT_NODE_EVENT_ENDED] = impossible,
                },
            [DT_NODE_AWAY] =
                {
                    [DT_NODE_EVENT_TICK] = prepare,
                    [DT_NODE_EVENT_STOP] = stop_unplaced,
                    [DT_NODE_EVENT_GIVE_UP] = give_up,
                    [DT_NODE_EVENT_BEGIN] = impossible,
                    [DT_NODE_EVENT_PREPARED] = impossible,
                    [DT_NODE_EVENT_HELLO] = impossible,
                    [DT_NODE_EVENT_CUT] = impossible,
                    [DT_NODE_EVENT_SPENT] = impossible,
                    [DT_NODE_EVENT_RELEASE] = impossible,
                    [DT_NODE_EVENT_STORED] = impossible,
                    [DT_NODE_EVENT_ENDED] = impossible,
                },
            [DT_NODE_CONNECTING] =
                {
                    [DT_NODE_EVENT_HELLO] = attach,
                    [DT_NODE_EVENT_CUT] = cut,
                    [DT_NODE_EVENT_SPENT] = end_there,
                    [DT_NODE_EVENT_TICK] = look,
                    [DT_NODE_EVENT_STOP] = send_stop,
                    [DT_NODE_EVENT_GIVE_UP] = give_up,
                    [DT_NODE_EVENT_BEGIN] = impossible,
                    [DT_NODE_EVENT_PREPARED] = impossible,
                    [DT_NODE_EVENT_RELEASE] = impossible,
                    [DT_NODE_EVENT_STORED] = impossible,
                    [DT_NODE_EVENT_ENDED] = impossible,
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
                    [DT_NODE_EVENT_BEGIN] = impossible,
                    [DT_NODE_EVENT_PREPARED] = impossible,
                    [DT_NODE_EVENT_STORED] = impossible,
                    [DT_NODE_EVENT_ENDED] = impossible,
                },
            [DT_NODE_BETWEEN] =
                {
                    [DT_NODE_EVENT_TICK] = connect_again,
                    [DT_NODE_EVENT_GIVE_UP] = give_up,
                    [DT_NODE_EVENT_STOP] = ignored, /* sent at the next hello */
                    [DT_NODE_EVENT_BEGIN] = impossible,
                    [DT_NODE_EVENT_PREPARED] = impossible,
                    [DT_NODE_EVENT_HELLO] = impossible,
                    [DT_NODE_EVENT_CUT] = impossible,
                    [DT_NODE_EVENT_SPENT] = impossible,
                    [DT_NODE_EVENT_RELEASE] = impossible,
                    [DT_NODE_EVENT_STORED] = impossible,
                    [DT_NODE_EVENT_ENDED] = impossible,
                },
            [DT_NODE_ENDING] =
                {
                    [DT_NODE_EVENT_TICK] = end_again,
                    [DT_NODE_EVENT_ENDED] = ended,
                    [DT_NODE_EVENT_GIVE_UP] = give_up,
                    [DT_NODE_EVENT_STOP] = ignored, /* `dtrun-agent end` stops the ranks */
                    [DT_NODE_EVENT_BEGIN] = impossible,
                    [DT_NODE_EVENT_PREPARED] = impossible,
                    [DT_NODE_EVENT_HELLO] = impossible,
                    [DT_NODE_EVENT_CUT] = impossible,
                    [DT_NODE_EVENT_SPENT] = impossible,
                    [DT_NODE_EVENT_RELEASE] = impossible,
                    [DT_NODE_EVENT_STORED] = impossible,
                },
            [DT_NODE_RELEASED] =
                {
                    [DT_NODE_EVENT_CUT] = leave,
                    [DT_NODE_EVENT_STORED] = send_bye,
                    [DT_NODE_EVENT_HELLO] = ignored,   /* the agent repeats it */
                    [DT_NODE_EVENT_TICK] = ignored,    /* the timer of the connection */
                    [DT_NODE_EVENT_STOP] = ignored,    /* nothing is left to stop */
                    [DT_NODE_EVENT_RELEASE] = ignored, /* the agent repeats it */
                    [DT_NODE_EVENT_BEGIN] = impossible,
                    [DT_NODE_EVENT_PREPARED] = impossible,
                    [DT_NODE_EVENT_SPENT] = impossible,
                    [DT_NODE_EVENT_ENDED] = impossible,
                    [DT_NODE_EVENT_GIVE_UP] = impossible,
                },
            [DT_NODE_LEAVING] =
                {
                    [DT_NODE_EVENT_BEGIN] = rejoin,
                    [DT_NODE_EVENT_HELLO] = send_bye,
                    [DT_NODE_EVENT_CUT] = leave,
                    [DT_NODE_EVENT_TICK] = ignored, /* the timer of the connection */
                    [DT_NODE_EVENT_STOP] = ignored, /* nothing is left to stop */
                    [DT_NODE_EVENT_RELEASE] =
                        ignored, /* the store has it twice, as `released` and as `ended` */
                    [DT_NODE_EVENT_STORED] = ignored, /* it was stored in an earlier session */
                    [DT_NODE_EVENT_PREPARED] = impossible,
                    [DT_NODE_EVENT_SPENT] = impossible,
                    [DT_NODE_EVENT_ENDED] = impossible,
                    [DT_NODE_EVENT_GIVE_UP] = impossible,
                },
            [DT_NODE_GONE] =
                {
                    [DT_NODE_EVENT_PREPARED] = ignored, /* the link was closed meanwhile */
                    [DT_NODE_EVENT_STOP] = ignored,     /* nothing is left to stop */
                    [DT_NODE_EVENT_STORED] =
                        ignored, /* the connection broke before the release was stored */
                    [DT_NODE_EVENT_BEGIN] = impossible,
                    [DT_NODE_EVENT_HELLO] = impossible,
                    [DT_NODE_EVENT_CUT] = impossible,
                    [DT_NODE_EVENT_SPENT] = impossible,
                    [DT_NODE_EVENT_TICK] = impossible,
                    [DT_NODE_EVENT_RELEASE] = impossible,
                    [DT_NODE_EVENT_ENDED] = impossible,
                    [DT_NODE_EVENT_GIVE_UP] = impossible,
                },
            [DT_NODE_UNUSED] =
                {
                    [DT_NODE_EVENT_PREPARED] = report_settled,
                    [DT_NODE_EVENT_BEGIN] = ignored, /* a stop came first */
                    [DT_NODE_EVENT_STOP] = ignored,  /* nothing is left to stop */
                    [DT_NODE_EVENT_HELLO] = impossible,
                    [DT_NODE_EVENT_CUT] = impossible,
                    [DT_NODE_EVENT_SPENT] = impossible,
                    [DT_NODE_EVENT_TICK] = impossible,
                    [DT_NODE_EVENT_RELEASE] = impossible,
                    [DT_NODE_EVENT_STORED] = impossible,
                    [DT_NODE_EVENT_ENDED] = impossible,
                    [DT_NODE_EVENT_GIVE_UP] = impossible,
                },
            [DT_NODE_LOST] =
                {
                    [DT_NODE_EVENT_PREPARED] = report_settled,
                    [DT_NODE_EVENT_STOP] = ignored, /* the node cannot be asked */
                    [DT_NODE_EVENT_BEGIN] = impossible,
                    [DT_NODE_EVENT_HELLO] = impossible,
                    [DT_NODE_EVENT_CUT] = impossible,
                    [DT_NODE_EVENT_SPENT] = impossible,
                    [DT_NODE_EVENT_TICK] = impossible,
                    [DT_NODE_EVENT_RELEASE] = impossible,
                    [DT_NODE_EVENT_STORED] = impossible,
                    [DT_NODE_EVENT_ENDED] = impossible,
                    [DT_NODE_EVENT_GIVE_UP] = impossible,
                },
};

static const char *const phase_names[DT_NODE_PHASE_COUNT] = {
    [DT_NODE_NEW] = "new",           [DT_NODE_PREPARING] = "preparing",
    [DT_NODE_AWAY] = "away",         [DT_NODE_CONNECTING] = "connecting",
    [DT_NODE_ATTACHED] = "attached", [DT_NODE_BETWEEN] = "between",
    [DT_NODE_ENDING] = "ending",     [DT_NODE_RELEASED] = "released",
    [DT_NODE_LEAVING] = "leaving",   [DT_NODE_GONE] = "gone",
    [DT_NODE_UNUSED] = "unused",     [DT_NODE_LOST] = "lost",
};

static const char *const event_names[DT_NODE_EVENT_COUNT] = {
    [DT_NODE_EVENT_BEGIN] = "begin",     [DT_NODE_EVENT_PREPARED] = "prepared",
    [DT_NODE_EVENT_HELLO] = "hello",     [DT_NODE_EVENT_CUT] = "cut",
    [DT_NODE_EVENT_SPENT] = "spent",     [DT_NODE_EVENT_TICK] = "tick",
    [DT_NODE_EVENT_STOP] = "stop",       [DT_NODE_EVENT_RELEASE] = "release",
    [DT_NODE_EVENT_STORED] = "stored",   [DT_NODE_EVENT_ENDED] = "ended",
    [DT_NODE_EVENT_GIVE_UP] = "give up",
};

dt_reaction dt_node_reaction(dt_node_phase phase, dt_node_event event)
{
    handler *handle = table[phase][event];

    return handle == NULL         ? DT_REACTION_MISSING
           : handle == ignored    ? DT_REACTION_IGNORED
           : handle == impossible ? DT_REACTION_IMPOSSIBLE
                                  : DT_REACTION_HANDLED;
}

void dt_node_dispatch(dt_node_link *link, dt_node_event event, const char *why)
{
    if (link->calls.is_over(link->context))
        return;
    switch (dt_node_reaction(link->phase, event)) {
    case DT_REACTION_HANDLED:
        if (why != NULL && why != link->problem)
            snprintf(link->problem, sizeof(link->problem), "%s", why);
        table[link->phase][event](link);
        break;
    case DT_REACTION_IGNORED:
        break;
    case DT_REACTION_MISSING:
    case DT_REACTION_IMPOSSIBLE:
        dt_log_warn("%s: event '%s' " DT_IMPOSSIBLE " in phase '%s' and is ignored", link->name,
                    event_names[event], phase_names[link->phase]);
        break;
    }
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

static void report_settled(dt_node_link *link)
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
        dt_node_describe_unreachable(link->shown, sizeof(link->shown), link->problem);
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
    const char *const arguments[] = {link->place.agent,
                                     "connect",
                                     link->place.folder,
                                     start ? "--start" : NULL,
                                     start && link->replace ? "--replace" : NULL,
                                     NULL};
    const char **argv;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_node_command(&argv, link->name, arguments, link->renew, &arena, err));
    DT_TRY(dt_bridge_open(&link->bridge, link->setup.loop, argv, &link->bridge_calls, link, err));
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

    switch (dt_node_judge(link, why, sizeof(why))) {
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
    dt_node_process_abandon(link->end);
    link->end = NULL;
    disconnect(link);
    uv_timer_stop(&link->timer);
    link->calls.lost(link->context, link->setup.index);
}

/* --- ending what runs there without its agent */

void dt_node_refuse(dt_node_link *link, const char *why, bool lasting)
{
    char text[300];

    if (dt_node_reaction(link->phase, DT_NODE_EVENT_SPENT) != DT_REACTION_HANDLED)
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

static void send_bye(dt_node_link *link)
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
