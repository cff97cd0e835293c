/* dtrun serve: the page. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "web/server.h"

#include "base/banned.h"

/* A descriptor that can be read once Ctrl-C or a polite kill has come; they do nothing else. */
static dt_status stop_signals(int *fd, dt_error *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot block signals: %s", strerror(errno));
    *fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (*fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot wait for signals: %s", strerror(errno));
    return DT_OK;
}

static void listening(void *context, const char *url)
{
    const dt_call *call = context;
    json_t *object;

    if (!call->json) {
        dprintf(STDOUT_FILENO, "%s\n", url);
        dt_report_note(call, "Ctrl-C ends it");
        return;
    }
    object = dt_report_object();
    json_object_set_new(object, "url", json_string(url));
    (void)dt_report_json(object, NULL); /* serving does not depend on who reads this */
}

static dt_status serve(dt_call *call, dt_error *err)
{
    dt_web_options options = {.listen = dt_arguments_get(call->args, "listen")->text,
                              .stop_fd = -1,
                              .listening = listening,
                              .context = call};
    dt_status st = DT_OK;

    dt_log_init("serve");
    (void)mallopt(M_ARENA_MAX, 2); /* or each of many short threads leaves a heap behind */
    DT_TRY(stop_signals(&options.stop_fd, err));
    DT_TRY(dt_web_serve(&options, err));
out:
    if (options.stop_fd >= 0)
        close(options.stop_fd);
    return st;
}

static const dt_option options[] = {
    {.name = "listen",
     .kind = DT_OPTION_TEXT,
     .value = "HOST:PORT",
     .fallback = DT_WEB_LISTEN_DEFAULT,
     .help = "where the page is; port 0 takes any that is free"},
    {0},
};

const dt_command dt_command_serve = {
    .name = "serve",
    .summary = "the page: runs, live charts, logs, for a browser on this machine",
    .operands = "",
    .options = options,
    .notes =
        "Prints the address, as an object with \"url\" under --json, and serves until Ctrl-C.\n"
        "It only reads, and only loopback addresses are taken.\n",
    .run = serve,
};
