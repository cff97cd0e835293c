/* fence_old_attempts: what an earlier attempt of the run left on this node ends before a new one
 * starts.
 *
 * A node that was cut off and given up for lost still has its agent and its ranks when it is back,
 * and nobody asks for them any more: the next attempt does. Its folder is BASE/attempt-N/node-K;
 * those of the earlier ones lie beside it.
 *
 * Only an agent that lives on this very machine is touched: where BASE is shared between nodes, the
 * other folders are other nodes'.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "runner/agent/agent_int.h"
#include "runner/agent/apart.h"

#include "base/banned.h"

/* As `dtrun-agent end` does it; it says so in the agent's own log. */
static void end_agent(const char *folder)
{
    dt_error err = DT_ERROR_INIT;
    int log;

    if (chdir(folder) == 0 && (log = open("agent.log", O_WRONLY | O_APPEND | O_CLOEXEC)) >= 0)
        dup2(log, STDERR_FILENO);
    if (dt_agent_end(folder, false, &err) != DT_OK)
        dt_log_error("%s", err.message);
}

static void end_nodes_of(const char *attempt)
{
    DIR *dir = opendir(attempt);
    struct dirent *entry;
    dt_strbuf folder;

    dt_strbuf_init(&folder);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, "node-", 5) != 0)
            continue;
        dt_strbuf_reset(&folder);
        dt_strbuf_add_fmt(&folder, "%s/%s", attempt, entry->d_name);
        if (dt_agent_holder_is_here(folder.data))
            dt_agent_apart(end_agent, folder.data);
    }
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&folder);
}

void dt_agent_fence_old_attempts(const char *folder)
{
    struct dirent *entry;
    char base[PATH_MAX];
    dt_strbuf attempt;
    long own, other;
    char *slash;
    DIR *dir;

    if (realpath(folder, base) == NULL || (slash = strrchr(base, '/')) == NULL)
        return;
    *slash = '\0';
    slash = strrchr(base, '/');
    if (slash == NULL || sscanf(slash, "/attempt-%ld", &own) != 1)
        return; /* a folder that was made by hand */
    *slash = '\0';
    dir = opendir(base);
    dt_strbuf_init(&attempt);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (sscanf(entry->d_name, "attempt-%ld", &other) != 1 || other >= own)
            continue;
        dt_strbuf_reset(&attempt);
        dt_strbuf_add_fmt(&attempt, "%s/%s", base, entry->d_name);
        end_nodes_of(attempt.data);
    }
    if (dir != NULL)
        closedir(dir);
    dt_strbuf_release(&attempt);
}
