#include "runner/supervisor/connection/node_link.h"

#include "runner/supervisor/connection/node_int.h"

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
