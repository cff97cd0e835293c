/* dtrun-agent: owns the processes of one run, attempt and node (runner/PROTOCOL.md). */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/process.h"
#include "base/version.h"
#include "runner/agent/agent_int.h"
#include "runner/node_setup/remote_helper/remote_helper.h"

static const char usage[] =
    "usage: dtrun-agent connect DIR [--start [--replace]]   bridge stdin and stdout to the agent\n"
    "                                                       in DIR; start it; kill a hung one\n"
    "       dtrun-agent serve DIR                           run the agent of DIR\n"
    "       dtrun-agent end DIR                             end the agent in DIR and its ranks\n"
    "       dtrun-agent stop DIR [--now]                    stop with the grace period of the "
    "plan\n"
    "       dtrun-agent running                             list what runs here, one per line\n"
    "       dtrun-agent node ...                            inspect this machine, receive files\n"
    "       dtrun-agent --version\n"
    "dtrun starts it; you need not run it by hand.\n";

static int finish(dt_status st, const dt_error *err)
{
    if (st != DT_OK)
        fprintf(stderr, "dtrun-agent: %s\n", err->message);
    return st == DT_OK ? 0 : 3;
}

int main(int argc, char **argv)
{
    dt_error err = DT_ERROR_INIT;

    dt_startup(0);
    dt_log_init("agent");
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("dtrun-agent %s (%s)\n", DT_VERSION, DT_COMMIT);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "serve") == 0)
        return finish(dt_agent_serve(argv[2], &err), &err);
    if (argc == 3 && strcmp(argv[1], "end") == 0)
        return finish(dt_agent_end(argv[2], false, &err), &err);
    if (argc >= 3 && argc <= 4 && strcmp(argv[1], "stop") == 0 &&
        (argc < 4 || strcmp(argv[3], "--now") == 0))
        return finish(dt_agent_stop(argv[2], argc == 4, &err), &err);
    if (argc == 2 && strcmp(argv[1], "running") == 0)
        return finish(dt_agent_running(&err), &err);
    if (argc >= 3 && argc <= 5 && strcmp(argv[1], "connect") == 0 &&
        (argc < 4 || strcmp(argv[3], "--start") == 0) &&
        (argc < 5 || strcmp(argv[4], "--replace") == 0))
        return finish(dt_agent_connect(argv[2], argc >= 4, argc == 5, &err), &err);
    if (argc >= 3 && strcmp(argv[1], "node") == 0)
        return dt_remote_helper_main(argc - 2, argv + 2);
    fputs(usage, stderr);
    return 2;
}
