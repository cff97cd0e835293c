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
void dt_environment_copy(dt_environment *out, const dt_environment *from);
void dt_environment_release(dt_environment *environment);
void dt_environment_set(dt_environment *environment, const char *name, const char *value);
void dt_environment_set_int(dt_environment *environment, const char *name, int64_t value);
/* Removes all items that begin so, as in "NAME=". */
void dt_environment_unset(dt_environment *environment, const char *start);
/* Returns the value; NULL: it is not set. */
const char *dt_environment_get(const dt_environment *environment, const char *name);

#endif
