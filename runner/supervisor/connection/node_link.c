/* node_link: opens and closes the link of a node, passes commands to it, and answers queries of its state. */
#include "runner/supervisor/connection/node_link.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "runner/supervisor/connection/connection_int.h"

/* --- restored state */

void dt_node_link_set_place(dt_node_link *link, const dt_node_layout *place)
{
    json_decref(link->place.paths);
    link->place = *place;
    link->placed = true;
    link->place_lost = false;
    link->name = place->node; /* the name of a Slurm node is known once its job runs */
}

void dt_node_link_lose_place(dt_node_link *link)
{
    link->placed = false;
    link->place_lost = true;
}

/* --- commands in any phase */

void dt_node_link_send(dt_node_link *link, json_t *command)
{
    dt_bridge_send(link->bridge, command);
}

/* --- queries */

dt_node_phase dt_node_link_phase(const dt_node_link *link)
{
    return link->phase;
}

bool dt_node_link_is_attached(const dt_node_link *link)
{
    return link->bridge != NULL &&
           (link->phase == DT_NODE_ATTACHED || link->phase == DT_NODE_RELEASED ||
            link->phase == DT_NODE_LEAVING);
}

bool dt_node_link_is_away(const dt_node_link *link)
{
    return link->phase == DT_NODE_GONE || link->phase == DT_NODE_UNUSED ||
           link->phase == DT_NODE_LOST;
}

bool dt_node_link_has_ended(const dt_node_link *link)
{
    return dt_node_link_is_away(link) || link->phase == DT_NODE_RELEASED ||
           link->phase == DT_NODE_LEAVING;
}

bool dt_node_link_is_preparing(const dt_node_link *link)
{
    return link->preparation != NULL;
}

bool dt_node_link_is_idle(const dt_node_link *link)
{
    return link->idle;
}

int64_t dt_node_link_hello_sequence(const dt_node_link *link)
{
    return link->hello_sequence;
}

bool dt_node_link_is_preempted(const dt_node_link *link)
{
    return link->preempted;
}

bool dt_node_link_is_unrecoverable(const dt_node_link *link)
{
    return link->unrecoverable;
}

const dt_node_layout *dt_node_link_place(const dt_node_link *link)
{
    return link->placed ? &link->place : NULL;
}

double dt_node_link_heard_seconds(const dt_node_link *link)
{
    return link->heard_seconds;
}

const char *dt_node_link_problem(const dt_node_link *link)
{
    return link->problem;
}

/* --- open, commands, close */

/* --- open and close */

static void on_probed(void *context, dt_contact contact, double begun_seconds)
{
    dt_node_link *link = context;
    double now = dt_node_now(link);

    link->reached_seconds =
        dt_liveness_reached(link->reached_seconds, fmax(link->heard_seconds, link->command_seconds),
                            begun_seconds, now, contact == DT_CONTACT_COMMAND);
    if (contact == DT_CONTACT_COMMAND)
        link->command_seconds = now;
    else if (contact == DT_CONTACT_HOST)
        link->answered_seconds = now;
    else if (contact == DT_CONTACT_UNKNOWN)
        link->unknown_seconds = now;
}

dt_node_link *dt_node_link_open(const dt_node_setup *setup, const dt_node_calls *calls,
                                void *context)
{
    dt_node_link *link = dt_calloc(1, sizeof(*link));

    link->setup = *setup;
    link->calls = *calls;
    link->context = context;
    link->bridge_calls = dt_node_receive_calls;
    link->name = setup->name;
    dt_clock_offset_init(&link->offset);
    link->prober = dt_node_prober_open(setup->loop, on_probed, link);
    uv_timer_init(setup->loop, &link->timer);
    link->timer.data = link;
    return link;
}

void dt_node_link_close(dt_node_link *link)
{
    if (link == NULL)
        return;
    link->phase = DT_NODE_GONE;
    dt_preparation_cancel(link->preparation);
    dt_node_process_abandon(link->end);
    link->end = NULL;
    dt_node_prober_forget(link->prober);
    dt_bridge_close(link->bridge);
    link->bridge = NULL;
    uv_close((uv_handle_t *)&link->timer, NULL);
}

void dt_node_link_free(dt_node_link *link)
{
    if (link == NULL)
        return;
    dt_node_prober_close(link->prober);
    json_decref(link->place.paths);
    free(link);
}

/* --- commands */

void dt_node_link_remember_release(dt_node_link *link)
{
    dt_node_dispatch(link, DT_NODE_EVENT_RELEASE, NULL);
}

void dt_node_link_begin(dt_node_link *link)
{
    dt_node_dispatch(link, DT_NODE_EVENT_BEGIN, NULL);
}

void dt_node_link_stop(dt_node_link *link, double grace_seconds, bool person)
{
    link->grace_seconds = grace_seconds;
    link->person = person;
    dt_node_dispatch(link, DT_NODE_EVENT_STOP, NULL);
}

void dt_node_link_pause(dt_node_link *link, bool pause)
{
    link->paused = pause;
    dt_bridge_pause(link->bridge, pause);
    if (!pause)
        link->heard_seconds = dt_node_now(link);
}

void dt_node_link_freeze(dt_node_link *link, bool freeze)
{
    link->frozen = freeze;
    dt_bridge_freeze(link->bridge, freeze);
}

void dt_node_link_release(dt_node_link *link)
{
    dt_node_dispatch(link, DT_NODE_EVENT_RELEASE, NULL);
}

void dt_node_link_stored(dt_node_link *link)
{
    dt_node_dispatch(link, DT_NODE_EVENT_STORED, NULL);
}

void dt_node_link_give_up(dt_node_link *link, const char *why)
{
    dt_node_dispatch(link, DT_NODE_EVENT_GIVE_UP, why);
}
