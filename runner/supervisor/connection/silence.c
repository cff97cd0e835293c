/* silence: judges the silence of a node (policy/liveness.h).
 *
 * A cut of ten seconds must cost nothing. So probes and connections after a silence do not share the
 * connection that was cut, which may be stuck for as long again (TCP doubles its retransmission timeout);
 * and the agent resumes from the number that is stored here.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/strbuf.h"
#include "runner/supervisor/connection/connection_int.h"
#include "runner/supervisor/policy/liveness.h"
#include "store/activity.h"

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

void dt_node_describe_unreachable(char *out, size_t size, const char *problem)
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
    dt_node_describe_unreachable(text, sizeof(text), link->problem);
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

dt_liveness_act dt_node_judge(dt_node_link *link, char *why, size_t why_size)
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
