/* environment: builds the environment of a child process: a copy of ours with some variables
 * set. */
#ifndef DT_RUNNER_AGENT_PROCESS_ENVIRONMENT_H
#define DT_RUNNER_AGENT_PROCESS_ENVIRONMENT_H

#include <stddef.h>
#include <stdint.h>

typedef struct dt_environment {
    char **items; /* "NAME=value", ended by NULL, as for execve */
    size_t count, capacity;
} dt_environment;

void dt_environment_init(dt_environment *environment); /* copies this process's environment */
void dt_environment_release(dt_environment *environment);
void dt_environment_set(dt_environment *environment, const char *name, const char *value);
void dt_environment_set_int(dt_environment *environment, const char *name, int64_t value);

#endif
