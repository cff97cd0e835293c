/* allowed: decides which commands can run on a server, and finds the server. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runner/relay/relay.h"

/* Appends the names of the commands that a server runs: "list, show, ..." */
static void list_remote(dt_strbuf *out)
{
    for (size_t i = 0; dt_commands[i] != NULL; i++)
        if (dt_commands[i]->runs == DT_RUNS_REMOTE)
            dt_strbuf_add_fmt(out, "%s%s", out->length > 0 ? ", " : "", dt_commands[i]->name);
}

static const dt_command *find_remote(const char *name)
{
    for (size_t i = 0; dt_commands[i] != NULL; i++)
        if (dt_commands[i]->runs == DT_RUNS_REMOTE && strcmp(dt_commands[i]->name, name) == 0)
            return dt_commands[i];
    return NULL;
}

dt_status dt_relay_server(const char **url, const dt_command *command, const dt_arguments *args,
                          dt_error *err)
{
    const char *wanted = getenv("DTRUN_SERVER");
    dt_status st = DT_OK;
    dt_strbuf remote;

    *url = wanted != NULL && wanted[0] != '\0' ? wanted : NULL;
    if (command->runs == DT_RUNS_REMOTE) {
        if (dt_arguments_get(args, "server")->given)
            *url = dt_arguments_get(args, "server")->text;
        return DT_OK;
    }
    if (*url == NULL)
        return DT_OK;
    *url = NULL;
    if (command->runs != DT_RUNS_LOCAL)
        return DT_OK;
    dt_strbuf_init(&remote);
    list_remote(&remote);
    st = DT_FAIL(err, DT_ERR_USAGE,
                 "DTRUN_SERVER is set, but '%s' only works on local runs: unset it, or run this "
                 "there (a server runs: %s)",
                 command->name, remote.data);
    dt_strbuf_release(&remote);
    return st;
}

dt_status dt_relay_check(int argc, char **argv, dt_error *err)
{
    const dt_command *command = find_remote(argv[0]);
    dt_status st = DT_OK;
    dt_strbuf remote;
    dt_arguments args;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    dt_strbuf_init(&remote);
    list_remote(&remote);
    if (command == NULL)
        DT_THROW(err, DT_ERR_USAGE, "a server does not run '%s' for clients (supported: %s)",
                 argv[0], remote.data);
    DT_TRY(dt_arguments_parse(&args, command, argc, argv, &arena, err));
    if (dt_arguments_get(&args, "server")->given)
        DT_THROW(err, DT_ERR_USAGE, "--server cannot be used in a request to a server");
out:
    dt_strbuf_release(&remote);
    dt_arena_release(&arena);
    return st;
}

bool dt_relay_is_served(void)
{
    return getenv("DTRUN_TERMINAL") != NULL;
}

void dt_relay_follow_server(void)
{
    pid_t server = getppid();

    if (!dt_relay_is_served())
        return;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != server)
        _exit(DT_EXIT_SYSTEM);
}
