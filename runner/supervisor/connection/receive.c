/* receive: handles the messages of a node's agent and the stderr of the command that connects to it;
 * estimates how far the node's clock is ahead. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "runner/channel/protocol.h"
#include "runner/supervisor/connection/connection_int.h"
#include "runner/transport/transport.h"

/* --- the node's clock */

void dt_clock_offset_init(dt_clock_offset *offset)
{
    *offset = (dt_clock_offset){.error_ms = INFINITY};
}

void dt_clock_offset_heard(dt_clock_offset *offset, int64_t stamped_ms, int64_t heard_ms)
{
    if (stamped_ms > 0 && stamped_ms - heard_ms > offset->ahead_ms)
        offset->ahead_ms = stamped_ms - heard_ms;
}

void dt_clock_offset_answered(dt_clock_offset *offset, int64_t asked_ms, int64_t stamped_ms,
                              int64_t heard_ms)
{
    double error_ms = (double)(heard_ms - asked_ms) / 2;

    if (stamped_ms > 0 && error_ms >= 0 && error_ms < offset->error_ms) {
        offset->ahead_ms = stamped_ms - (heard_ms + asked_ms) / 2;
        offset->error_ms = error_ms;
    }
    dt_clock_offset_heard(offset, stamped_ms, heard_ms);
}

/* --- messages */

/* Updates the estimate of the node's clock. answer: the message answers `attach`. */
static void update_clock_offset(dt_node_link *link, const dt_message *message, bool answer)
{
    int64_t stamped_ms = dt_message_int(message, "time_ms", 0), now_ms = dt_clock_wall_ms();

    if (link->place.here)
        return;
    if (answer)
        dt_clock_offset_answered(&link->offset, link->asked_ms, stamped_ms, now_ms);
    else
        dt_clock_offset_heard(&link->offset, stamped_ms, now_ms);
}

/* Leaves the run alone: the agent belongs to another version of dtrun. */
static void on_other_build(dt_node_link *link, const char *what)
{
    char why[400];

    snprintf(why, sizeof(why),
             "the ranks on %.60s belong to another version of dtrun (%.200s): use that version",
             link->name, what);
    link->calls.other_build(link->context, link->setup.index, why);
}

static void on_hello(dt_node_link *link, const dt_message *message)
{
    int64_t protocol = dt_message_int(message, "protocol", 0);
    const char *state = dt_message_string(message, "state");

    if (protocol != DT_PROTOCOL_VERSION) {
        on_other_build(link, "its agent speaks another protocol");
        return;
    }
    update_clock_offset(link, message, true);
    link->idle = strcmp(state, "idle") == 0;
    link->hello_sequence = dt_message_int(message, "next_sequence", 0);
    link->boot_id = dt_message_string(message, "boot_id");
    dt_log_info("%s: attached, %s", link->name, state);
    dt_node_dispatch(link, DT_NODE_EVENT_HELLO, NULL);
    link->boot_id = NULL;
}

static void on_error(dt_node_link *link, const dt_message *message)
{
    bool refused = json_is_true(json_object_get(message->json, "refused"));
    const char *text = dt_message_string(message, "message");

    dt_log_warn("%s: the agent says: %s", link->name, text);
    if (link->phase == DT_NODE_CONNECTING &&
        dt_message_int(message, "protocol", DT_PROTOCOL_VERSION) != DT_PROTOCOL_VERSION)
        on_other_build(link, text);
    else if (link->phase == DT_NODE_CONNECTING)
        dt_node_refuse(link, text, refused);
    else if (refused)
        link->calls.refused(link->context, link->setup.index, text);
}

static void on_event(dt_node_link *link, dt_message *message)
{
    /* rows use this machine's clock; the journal line keeps the node's */
    message->time_ms -= link->offset.ahead_ms;
    link->calls.event(link->context, link->setup.index, message);
}

static void on_message(dt_node_link *link, dt_message *message)
{
    if (message->kind == DT_MESSAGE_HELLO) {
        on_hello(link, message);
    } else if (message->kind == DT_MESSAGE_ERROR) {
        on_error(link, message);
    } else if (link->phase == DT_NODE_CONNECTING) {
        dt_node_refuse(link, "it sent a message before 'hello'", true);
    } else if (message->kind == DT_MESSAGE_ALIVE) {
        update_clock_offset(link, message, false);
        dt_bridge_send(link->bridge, json_pack("{s:s}", "command", "alive")); /* renews its lease */
        link->calls.alive(link->context, link->setup.index, message);
    } else if (message->kind == DT_MESSAGE_RENDEZVOUS) {
        link->calls.rendezvous(link->context, message);
    } else if (message->numbered) {
        on_event(link, message);
    }
}

/* --- lines */

static void on_line(void *context, const char *text, size_t length, bool cut)
{
    dt_node_link *link = context;
    dt_error err = DT_ERROR_INIT;
    dt_message message;

    if (link->calls.is_over(link->context))
        return;
    link->heard_seconds = dt_node_now(link);
    if (cut) {
        dt_node_refuse(link, "it sent a line longer than 1 MiB", true);
    } else if (dt_message_parse(&message, text, length, link->setup.world_size, &err) != DT_OK) {
        if (link->phase == DT_NODE_CONNECTING ||
            !link->calls.damaged(link->context, link->setup.index, text, length, err.message))
            dt_node_refuse(link, err.message, true);
    } else {
        on_message(link, &message);
        dt_message_release(&message);
    }
    /* the link was closed: commit the lines before this one */
    if (link->bridge == NULL)
        link->calls.batch(link->context);
}

static void on_batch(void *context)
{
    dt_node_link *link = context;

    link->calls.batch(link->context);
}

static void on_problem(void *context, const char *text, size_t length)
{
    size_t front = sizeof(DT_TRANSPORT_PREEMPTED) - 1;
    dt_node_link *link = context;
    const char *other;

    link->preempted = length > front && memcmp(text, DT_TRANSPORT_PREEMPTED, front) == 0;
    if (link->preempted) {
        text += front;
        length -= front;
    }
    snprintf(link->problem, sizeof(link->problem), "%.*s", (int)length, text);
    other = strstr(link->problem, DT_PROTOCOL_OTHER);
    if (other != NULL)
        on_other_build(link, other + sizeof(DT_PROTOCOL_OTHER) - 1);
}

static void on_ended(void *context, const char *why)
{
    dt_node_link *link = context;

    dt_node_dispatch(link, DT_NODE_EVENT_CUT, link->problem[0] != '\0' ? link->problem : why);
}

const dt_bridge_calls dt_node_receive_calls = {
    .line = on_line, .batch = on_batch, .problem = on_problem, .ended = on_ended};
