#include "runner/times.h"

#ifdef DT_TEST_TIMES
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#endif

static const dt_time_limits limits = {
    .heartbeat_seconds = 2,
    .heartbeat_longest_seconds = 4, /* an agent that looks later than that was held up itself */
    .clock_turn_seconds = 2.5,
    .link_look_seconds = 1,

    .silent_seconds = 6,
    .connect_more_seconds = 3,
    .connect_most_seconds = 20,
    .login_seconds = 25,
    .doubt_seconds = 8,
    .probe_every_seconds = 3,
    .probe_late_seconds = 2,
    .unproven_seconds = 10, /* more than until the first probe, or from one probe to the next */
    .no_agent_seconds = 10,
    .lost_seconds = 16,
    .stopping_hang_seconds = 20,
    .training_hang_seconds = 60,
    .replaced_seconds = 15,
    .refused_seconds = 30,
    .node_patience_seconds = 3600,
    .peer_heard_seconds = 5,
    .backoff_first_seconds = 0.1,
    .backoff_most_seconds = 2,
    .prepare_again_seconds = 5,
    .end_again_seconds = 5,
    .end_most_seconds = 60, /* 20 s for the login, 10 s for the kill, 20 s for the proof of GPUs */

    .failed_grace_seconds = 10,
    .default_grace_seconds = 30,
    .shutdown_grace_seconds = 30,
    .lease_margin_seconds = 30,

    .agent_quiet_seconds = 10,
    .agent_held_seconds = 600,
    .client_silent_seconds = 300,
    .system_seconds = 10,
    .gpu_proof_seconds = 20,

    .agents_leave_seconds = 3,
    .reap_first_seconds = 5,
    .reap_again_seconds = 15,
    .reap_last_seconds = 40, /* a login and a kill; a machine that is off is known after 8 s */
    .supervisor_retry_seconds = 5,
    .fetch_again_seconds = 5,
    .grow_first_seconds = 30,
    .grow_most_seconds = 3600,
    .restart_first_seconds = 1,
    .restart_most_seconds = 60,
    .at_once_seconds = 60,

    .stop_check_seconds = 2,
    .stop_stored_seconds = 5,
    .starts_settled_seconds = 5,
    .starts_window_seconds = 600,
    .ask_connect_seconds = 20, /* longer than supervisor_retry_seconds */
    .ask_answer_seconds = 40,
    .ask_paused_seconds = 2,
    .direct_stop_seconds = 15, /* for the kill and the proof */
    .direct_leave_seconds = 6,
    .direct_supervisor_end_seconds = 7, /* more than supervisor_retry_seconds */
};

#ifndef DT_TEST_TIMES

const dt_time_limits *dt_times(void)
{
    return &limits;
}

#else

static dt_time_limits scaled;

static void scale(void)
{
    static const char one[] = "system=";
    const char *text = getenv("DTRUN_TEST_TIMES");
    bool only_system = text != NULL && strncmp(text, one, strlen(one)) == 0;
    double factor = 1, *fields = (double *)&scaled;

    if (text != NULL && text[0] != '\0')
        factor = strtod(text + (only_system ? strlen(one) : 0), NULL);
    DT_ASSERT(factor > 0 && factor <= 1);
    scaled = limits;
    if (only_system)
        scaled.system_seconds *= factor;
    for (size_t i = 0; !only_system && i < sizeof(scaled) / sizeof(*fields); i++)
        fields[i] *= factor;
}

const dt_time_limits *dt_times(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, scale);
    return &scaled;
}

#endif
