/* times: holds the time limits by which supervisor, agents and commands judge silence, loss, hangs,
 * leases and grace.
 *
 * Purpose    one table, so that agent and supervisor agree and limits that belong together are read
 *            side by side
 * Units      seconds
 * Tests      a build with tests (CMake option DT_TESTS) multiplies every limit by the environment
 *            variable DTRUN_TEST_TIMES (above 0, at most 1), so that tests need not wait for the real
 *            limits. Ratios between limits do not change. "system=0.1" multiplies only the period of
 *            `system` events: a busy machine may not keep a tenth of the other limits. A build without
 *            tests does not read it
 * Threads    any; the table does not change after the first call
 */
#ifndef DT_RUNNER_TIMES_H
#define DT_RUNNER_TIMES_H

#include <stdint.h>

typedef struct dt_time_limits {
    /* Heartbeats and the clock that measures silence (channel/poll_clock.h). */
    double heartbeat_seconds;         /* period of an agent's `alive` lines */
    double heartbeat_longest_seconds; /* most that one heartbeat adds to a rank's silence */
    double clock_turn_seconds;        /* most that one turn of the loop moves the poll clock */
    double link_look_seconds;         /* period at which the supervisor judges a node's silence */

    /* The silence of a node (supervisor/policy/liveness.h). */
    double silent_seconds;        /* a connection that is silent this long is replaced */
    double connect_more_seconds;  /* added to silent_seconds for each failed connection */
    double connect_most_seconds;  /* upper bound of the sum of the two */
    double login_seconds;         /* a connection on which no command has run yet may still log in;
                                   * more than DT_REMOTE_OPEN_SECONDS (transport/remote.h) */
    double doubt_seconds;         /* a silent node is probed, and shown as not reachable */
    double probe_every_seconds;   /* least time between two probes of a node */
    double probe_late_seconds;    /* a probe that took longer proves only this last part */
    double unproven_seconds;      /* after such a gap a probe does not vouch for the time before */
    double no_agent_seconds;      /* a new agent that never answered is given up */
    double lost_seconds;          /* a node without a sign of life is lost */
    double stopping_hang_seconds; /* a silent agent hangs, while the run stops */
    double training_hang_seconds; /* a silent agent hangs, while no step is made */
    double replaced_seconds;      /* the agent that replaced a hung one is given up */
    double
        refused_seconds; /* a node whose sshd refuses connections at once is tried again this long */
    double node_patience_seconds; /* most that a run waits for a node that is away */
    double peer_heard_seconds;    /* a peer counts as heard if its last line is newer */
    double backoff_first_seconds; /* pause before the second connection to a node; then doubled */
    double backoff_most_seconds;  /* longest pause between two connections to a node */
    double prepare_again_seconds; /* pause between two tries to prepare a node */
    double end_again_seconds;     /* pause between two tries to end what an unusable agent left */
    double end_most_seconds; /* most that one try may take: the login, the kill and the proof */

    /* How ranks are ended (supervisor/policy/restart.h). */
    double failed_grace_seconds;   /* grace of the other ranks after a rank or node failed */
    double default_grace_seconds;  /* grace where the plan does not say */
    double shutdown_grace_seconds; /* grace of ranks whose agent got SIGTERM before `start` ended */
    double lease_margin_seconds;   /* added to lease and grace before ranks count as gone */

    /* An agent's own life. */
    double agent_quiet_seconds;   /* an agent with neither ranks nor supervisor exits */
    double agent_held_seconds;    /* the same for an agent that no `connect` started */
    double client_silent_seconds; /* a supervisor's connection that is silent this long is closed */
    double system_seconds;        /* period of `system` events (agent/system.c) */
    double gpu_proof_seconds;     /* most that `released` waits for GPUs to free their memory */

    /* The end of an attempt and of a run. */
    double agents_leave_seconds;     /* most that the end of an attempt waits for agents to exit */
    double reap_first_seconds;       /* until nodes of earlier attempts are first asked again */
    double reap_again_seconds;       /* period of asking them */
    double reap_last_seconds;        /* most that the end of a run waits for their answers */
    double supervisor_retry_seconds; /* pause of a supervisor after a failed session */
    double fetch_again_seconds;      /* pause between two tries to fetch a checkpoint */
    double
        restart_first_seconds; /* pause before a restart of a command; each further one is four times as long */
    double restart_most_seconds;
    double grow_first_seconds; /* least time of an attempt before it grows; doubled each time */
    double grow_most_seconds;
    double at_once_seconds; /* an attempt that fails sooner has failed at once */

    /* A stop. */
    double stop_check_seconds;  /* period at which a stop checks supervisor and free space */
    double stop_stored_seconds; /* most that the answer to a stop waits for the store */
    double
        starts_settled_seconds; /* a supervisor that stores journals this late does not end at once */
    double starts_window_seconds; /* starts further apart are not in a row (channel/detach.h) */
    double ask_connect_seconds;   /* most that a command waits for a supervisor to listen */
    double ask_answer_seconds;    /* most that a command waits for a supervisor's answer */
    double ask_paused_seconds;    /* a supervisor without an answer is checked for a pause */
    double direct_stop_seconds;   /* beyond the grace, for an agent to end its ranks */
    double direct_leave_seconds;  /* most that a direct stop waits for the agent to exit */
    double
        direct_supervisor_end_seconds; /* most that a direct stop waits for the supervisor's end */
} dt_time_limits;

/* The limits of this process. */
const dt_time_limits *dt_times(void);

static inline uint64_t dt_times_ms(double seconds)
{
    return (uint64_t)(seconds * 1e3 + 0.5);
}

#endif
