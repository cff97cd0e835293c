#include "runner/supervisor/policy/liveness.h"

#include <math.h>

#include "base/banned.h"

#define SILENT_SECONDS      6.0
#define CONNECT_MORE        3.0 /* for each try that came to nothing: the node may be slow */
#define CONNECT_MOST        20.0
#define DOUBT_SECONDS       8.0
#define PROBE_EVERY_SECONDS 3.0
#define LATE_SECONDS        2.0
#define UNPROVEN_SECONDS    10.0 /* more than until the first probe, or from one to the next */
#define FRESH_SECONDS       10.0
#define GONE_SECONDS        16.0
#define STOPPING_SECONDS    20.0
#define TRAINING_SECONDS    60.0
#define REPLACED_SECONDS    15.0
#define PATIENCE_SECONDS    3600.0

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* Until then the others' newest step speaks for it: a dead node holds up the next. */
static double steps_speak(const dt_liveness_facts *facts)
{
    return facts->peer_step >= 0 ? facts->peer_step + facts->step_gap : -1;
}

static double newest_sign(const dt_liveness_facts *facts)
{
    double sign = later(facts->heard, facts->command);

    if (facts->stopping) /* what cannot be asked cannot be stopped */
        return sign;
    sign = later(sign, later(facts->answered, facts->unknown));
    return later(sign, steps_speak(facts));
}

/* Nothing could be asked of it, for a reason of our own: no silence of it says anything. */
static bool is_unknown(const dt_liveness_facts *facts)
{
    return facts->unknown >= 0 && facts->now - facts->unknown <= GONE_SECONDS;
}

static bool is_lost(const dt_liveness_facts *facts)
{
    double silent = facts->now - facts->heard;

    if (facts->here)
        return false;
    if (facts->stopping)
        return facts->now - newest_sign(facts) > GONE_SECONDS;
    if (facts->peers == DT_PEERS_SILENT && facts->lease > 0)
        return silent > facts->lease;
    if (facts->peers != DT_PEERS_HEARD)
        return silent > PATIENCE_SECONDS && !is_unknown(facts);
    return facts->now - newest_sign(facts) > GONE_SECONDS;
}

/* A new agent that says nothing, and that could. */
static double newest_excuse(const dt_liveness_facts *facts)
{
    return facts->stopping ? facts->heard
                           : later(facts->heard, later(facts->answered, facts->unknown));
}

/* It could have spoken for so long, and did not: while its machine could not be reached it could
 * not. */
static bool hangs(const dt_liveness_facts *facts)
{
    double heard;

    if (!facts->here && facts->command <= facts->heard)
        return false;
    heard = later(facts->heard, facts->reached);
    if (facts->stopping)
        return facts->now - heard > STOPPING_SECONDS;
    return facts->now - later(heard, steps_speak(facts)) > TRAINING_SECONDS;
}

static bool is_stuck(const dt_liveness_facts *facts)
{
    double most = SILENT_SECONDS;

    if (facts->heard < facts->connected) {
        most += CONNECT_MORE * facts->tries;
        most = most < CONNECT_MOST ? most : CONNECT_MOST;
    }
    return facts->connection && facts->now - later(facts->heard, facts->connected) > most;
}

static dt_liveness_act act_on(const dt_liveness_facts *facts)
{
    double silent = facts->now - facts->heard;

    if (!facts->started && !facts->idle) {
        bool waits = (facts->waits || is_unknown(facts)) && !facts->stopping;

        if (silent > (waits ? PATIENCE_SECONDS : FRESH_SECONDS))
            return DT_LIVENESS_NO_AGENT;
    } else if (is_lost(facts)) {
        return DT_LIVENESS_LOST;
    } else if (facts->replaced && facts->now - newest_excuse(facts) > REPLACED_SECONDS) {
        return DT_LIVENESS_NO_AGENT;
    } else if (!facts->replaced && hangs(facts)) {
        return DT_LIVENESS_REPLACE;
    }
    return is_stuck(facts) ? DT_LIVENESS_RECONNECT : DT_LIVENESS_WAIT;
}

double dt_liveness_reached(double reached, double proven, double begun, double now, bool ran)
{
    double since = later(begun, now - LATE_SECONDS);

    if (!ran)
        return INFINITY;
    if (isinf(reached))
        return now;
    return since - proven > UNPROVEN_SECONDS ? since : reached;
}

dt_liveness_verdict dt_liveness_judge(const dt_liveness_facts *facts)
{
    bool doubt = !facts->here && facts->now - facts->heard > DOUBT_SECONDS;

    return (dt_liveness_verdict){.act = act_on(facts),
                                 .probe = doubt && facts->now - facts->probed > PROBE_EVERY_SECONDS,
                                 .unreachable = doubt};
}
