/* end_commands: kills commands that a supervisor started on this node and left running. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process.h"
#include "runner/agent/agent_int.h"

#define COMMANDS_SECONDS 5.0

typedef struct commands {
    const char *folder; /* absolute: .../RUN/attempt-1/node-0 */
    size_t run;         /* length of ".../RUN/" in `folder` */
    bool paused_only;
} commands;

/* True for the shell by which a transport runs a command: "/bin/sh -c '... dtrun-agent connect
 * FOLDER ...'". Quoting may change characters of the path, but not those from the run's id on. */
static bool is_shell_of(const commands *of, const char *text, size_t length, bool paused)
{
    const char *run = of->folder + of->run;
    size_t id = 0;

    while (run > of->folder && (run[-1] != '/' || id++ == 0))
        run--; /* back to "RUN/attempt-1/node-0" */
    id = strcspn(run, "/") + 1;
    return (memmem(text, length, " connect ", 9) != NULL &&
            memmem(text, length, run, strlen(run)) != NULL) ||
           (paused && memmem(text, length, " node ", 6) != NULL &&
            memmem(text, length, run, id) != NULL);
}

/* True for "dtrun-agent connect FOLDER ...", whatever the program is called, and for
 * "dtrun-agent node OPERATION PATH ..." of the run if it is paused. Others end with their
 * connection, and may belong to a running supervisor of another node. */
static bool is_command(const void *context, char state, const char *words, size_t length)
{
    const commands *of = context;
    const char *word = words, *end = words + length;
    size_t count = 0;
    bool connects = false, works = false, paused = dt_proc_is_paused(state);

    if (of->paused_only && !paused)
        return false;
    if (length > strlen(words) + 4 && strcmp(words + strlen(words) + 1, "-c") == 0)
        return is_shell_of(of, words, length, paused);
    for (; word < end; word += strnlen(word, (size_t)(end - word)) + 1, count++) {
        if (count == 1) {
            connects = strcmp(word, "connect") == 0;
            works = strcmp(word, "node") == 0 && paused;
        }
        if (count > 1 && ((connects && strcmp(word, of->folder) == 0) ||
                          (works && strncmp(word, of->folder, of->run) == 0)))
            return true;
    }
    return false;
}

void dt_agent_end_commands(const char *folder, bool paused_only)
{
    char absolute[PATH_MAX];
    const char *end;

    /* the folder is gone: commands name it as the caller does */
    if (realpath(folder, absolute) == NULL)
        snprintf(absolute, sizeof(absolute), "%s", folder);
    end = absolute + strlen(absolute);
    for (int i = 0; i < 2 && end != NULL; i++)
        end = memrchr(absolute, '/', (size_t)(end - absolute));
    if (end == NULL || end == absolute)
        return;
    (void)dt_proc_end_all("cmdline", is_command,
                          &(commands){absolute, (size_t)(end - absolute) + 1, paused_only},
                          COMMANDS_SECONDS);
}
