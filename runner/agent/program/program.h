/* program: one rank of a run whose recipe has a `command`: the user's program, which the agent starts (rank/start.c).
 *
 * Prepare  dt_program_plan: the plan, and MASTER_PORT, which the ranks agree on through the rendezvous "program"
 * Start    dt_program_open, the first look at files, dt_program_command for spawn.h; then what the child says until it is
 *          executed. `ready` is sent once it was executed
 * Output   metrics in stdout and stderr; the end of stderr, for the cause of a failure
 * Files    metrics in files and checkpoints, of rank 0 alone. A file system can hang, so dt_program_look is for a thread
 *          other than that of all other functions; dt_program_looked sends what it found
 * Stop     the recipe's stop_signal, with `shell` for the process group. A program that then ends with code 0, by this
 *          signal or with the code of a shell for it has stopped as asked. The agent enforces the grace period
 * Limit    time_limit counts from the start of the program: the stop_signal, and SIGKILL after grace_seconds
 * End      of a program that fails, the error that it wrote last is sent as `failed` (last_error.c); one that another
 *          rank's death causes has the status "peer". `finished` is sent by rank 0 when it ends well
 */
#ifndef DT_RUNNER_AGENT_PROGRAM_PROGRAM_H
#define DT_RUNNER_AGENT_PROGRAM_PROGRAM_H

#include "base/json.h"
#include "recipes/plan/plan.h"
#include "runner/agent/process/spawn.h"

/* --- what the programs of a node share */

#define DT_PROGRAM_RENDEZVOUS "program"
enum { DT_PROGRAM_OFFER_SIZE = 5 };

typedef struct dt_program_plan {
    dt_arena arena;
    dt_plan plan;
    int64_t port; /* MASTER_PORT */
    bool port_agreed;
    int held; /* socket that has the port until the programs start; -1: none, or not the node of rank 0 */
} dt_program_plan;

/* Returns whether the plan is one of a command. */
bool dt_program_is_planned(const json_t *plan);
dt_status dt_program_plan_open(dt_program_plan **out, const json_t *plan, dt_error *err);
void dt_program_plan_close(dt_program_plan *shared); /* accepts NULL */
/* Makes the rank's value of the rendezvous. Rank 0 chooses a free port and holds it: one from 20000 to
 * 32767, below those that Linux gives to outgoing connections, whose remainder by 16 is that of the
 * attempt, so that the port of a new attempt is another one than that of the last. */
dt_status dt_program_offer(char *value, dt_program_plan *shared, int64_t rank, dt_error *err);
/* Takes the port from the values of all ranks, and releases it. */
dt_status dt_program_agree(dt_program_plan *shared, const json_t *values, dt_error *err);

/* --- one program */

typedef struct dt_program dt_program;

/* Where events and warnings go. */
typedef struct dt_reports {
    void (*send)(void *context, json_t *event); /* takes the event */
    void (*warn)(void *context, const char *text);
    void *context;
} dt_reports;

dt_status dt_program_open(dt_program **out, const dt_program_plan *shared, int64_t rank,
                          const dt_reports *reports, dt_error *err);
/* Accepts NULL. A program whose look was given up is left as it is. */
void dt_program_close(dt_program *program);

/* Returns what to start, which lives as long as the program. of_rank: the variables that each rank gets. */
dt_status dt_program_command(dt_spawn_program *out, dt_program *program,
                             const dt_environment *of_rank, dt_error *err);
void dt_program_started(dt_program *program, pid_t pid);
void dt_program_take_line(dt_program *program,
                          const char *line);   /* of the child, before it is executed */
void dt_program_executed(dt_program *program); /* or not, if it has said why */

void dt_program_read(dt_program *program, const char *bytes, size_t length);
void dt_program_read_errors(dt_program *program, const char *bytes, size_t length);

/* Returns the milliseconds until dt_program_tick has something to do; -1: nothing is planned. */
int64_t dt_program_tick_ms(const dt_program *program);
void dt_program_tick(dt_program *program);
void dt_program_stop(dt_program *program);

/* Returns the milliseconds between two looks; 0: there are no files to look at. */
int64_t dt_program_look_ms(const dt_program *program);
void dt_program_look(dt_program *program);
void dt_program_looked(dt_program *program);

/* Notes its end. */
void dt_program_ended(dt_program *program, int wait_status);
/* The next look is the last one. Not while a look runs. */
void dt_program_last_look(dt_program *program);
/* Sends the last events, and returns the wait status that the rank has: that of the program, unless it was
 * asked to end. look_given_up: the last look has not returned. */
int dt_program_finish(dt_program *program, bool look_given_up);
/* Sends why the program cannot be started. */
void dt_program_refused(dt_program *program, const dt_error *why);

#endif
