/* spawn: starts one rank as a process, with its environment and pipes to the agent: the engine, or the
 * user's program.
 *
 * The child leads its own session, has the channel as descriptor 3 if it is the engine, pipes as stdout and stderr,
 * /dev/null as stdin, default signal handling, and dies with the agent (PR_SET_PDEATHSIG), so no rank runs without an agent.
 *
 * Ownership  the caller closes the three descriptors
 * Errors     DT_ERR_IO: "cannot run '/x/dtrun-engine': No such file or directory"
 */
#ifndef DT_RUNNER_AGENT_PROCESS_SPAWN_H
#define DT_RUNNER_AGENT_PROCESS_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* environment: builds the environment of a child process: a copy of ours with some variables
 * set. */

typedef struct dt_environment {
    char **items; /* "NAME=value", ended by NULL, as for execve */
    size_t count;
    int64_t capacity;
} dt_environment;

void dt_environment_init(dt_environment *environment); /* copies this process's environment */
void dt_environment_copy(dt_environment *out, const dt_environment *from);
void dt_environment_release(dt_environment *environment);
void dt_environment_set(dt_environment *environment, const char *name, const char *value);
void dt_environment_set_int(dt_environment *environment, const char *name, int64_t value);
/* Removes all items that begin so, as in "NAME=". */
void dt_environment_unset(dt_environment *environment, const char *start);
/* Returns the value; NULL: it is not set. */
const char *dt_environment_get(const dt_environment *environment, const char *name);

#define DT_SPAWN_CHANNEL_FD 3

typedef struct dt_spawned {
    pid_t pid;
    int channel, out, err;
} dt_spawned;

typedef struct dt_spawn_place {
    int cgroup_procs; /* cgroup.procs of the group that the child joins if allowed; -1: none */
    mode_t mask;      /* umask of the child */
    const int *kept;  /* [kept_count] descriptors, above 3, that the child inherits */
    size_t kept_count;
} dt_spawn_place;

/* The user's program as a rank. Its folder and files can be on a file system that hangs, so the child looks
 * for them, and writes a line into `channel` for each thing that is missing: "WHAT ERRNO INDEX EXISTS",
 * with the index of the candidate that it tried and whether that file exists (1). The channel ends when the
 * program is executed, or with the child. */
typedef struct dt_spawn_program {
    const char *folder;      /* where it runs; "": here */
    const char *checkpoint;  /* path of the checkpoint that it continues from; "": none */
    bool needs_checkpoint;   /* it does not start without */
    const char **candidates; /* files that may be the program, ended by NULL */
    bool search;             /* only a candidate that is an executable file is tried */
    char *const *words, *const *environment;
} dt_spawn_program;

enum {
    DT_SPAWN_NO_FOLDER = 'd',
    DT_SPAWN_NO_CHECKPOINT = 'c',
    DT_SPAWN_NOT_FOUND = 'n',
    DT_SPAWN_NOT_EXECUTED = 'x'
};

dt_status dt_spawn_program_rank(dt_spawned *spawned, const dt_spawn_program *program,
                                const dt_spawn_place *place, dt_error *err);

dt_status dt_spawn(dt_spawned *spawned, char *const *argv, char *const *environment,
                   const dt_spawn_place *place, dt_error *err);

#endif
