#include "runner/supervisor/cleanup/cleanup.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "runner/supervisor/cleanup/cleanup_int.h"

/* No folder is started later than this. One folder takes a login and up to 30 s more
 * (node_setup/forget.c); a node that does not answer is not asked again. */
#define BEGIN_SECONDS 60.0

/* --- on the threads */

/* Marks a folder as done, unless checkpoints are kept there: then it is handled and reported
 * again when the run ends the next time. */
static void note_done(const dt_cleanup_folder *one)
{
    dt_strbuf path;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/" DT_CLEANUP_DONE_FILE, one->here);
    if (one->kept.length == 0)
        (void)dt_file_write_atomic(path.data, "", 0, 0600,
                                   NULL); /* if this fails, it is only done once more */
    dt_strbuf_release(&path);
}

/* True if this is the last folder on the node: only that one also removes the node's
 * checkpoints, which belong to the whole run. */
static bool is_last_there(const dt_cleanup_folder *one)
{
    const dt_cleanup_folder *end = one->cleanup->folders + one->cleanup->count, *at = one + 1;

    while (at < end && (strcmp(at->place.node, one->place.node) != 0 ||
                        strcmp(at->place.checkpoints, one->place.checkpoints) != 0))
        at++;
    return at == end;
}

/* Removes one folder. agent: of the newest attempt; older agents may lack a feature or be gone.
 * Returns false if the node did not answer: it is not asked again. */
static bool forget(dt_cleanup_folder *one, const char *agent)
{
    dt_cleanup *cleanup = one->cleanup;
    dt_node_layout place = one->place;
    dt_status st;

    place.agent = agent;
    if (!is_last_there(one)) {
        place.checkpoints_shared = true;
        place.workdir = NULL;
    }
    st = dt_node_forget(&one->kept, &one->files, &place, cleanup->home.data, &cleanup->cancelled,
                        &one->err);
    if (st == DT_OK)
        note_done(one);
    return st == DT_OK || st == DT_ERR_IO;
}

static bool is_first(const dt_cleanup_folder *one)
{
    const dt_cleanup_folder *at = one->cleanup->folders;

    while (at < one && strcmp(at->place.node, one->place.node) != 0)
        at++;
    return at == one;
}

static void forget_node(uv_work_t *work)
{
    dt_cleanup_folder *first = work->data, *end = first->cleanup->folders + first->cleanup->count;
    const char *agent = first->place.agent;
    bool reached = true;

    for (dt_cleanup_folder *one = first; one < end; one++)
        if (strcmp(one->place.node, first->place.node) == 0)
            agent = one->place.agent;
    for (dt_cleanup_folder *one = first; one < end; one++) {
        if (strcmp(one->place.node, first->place.node) != 0)
            continue;
        if (!reached)
            (void)DT_FAIL(&one->err, DT_ERR_PEER, "the node did not answer");
        else if (dt_clock_monotonic_seconds() > first->cleanup->deadline)
            (void)DT_FAIL(&one->err, DT_ERR_TIMEOUT, "the time for cleaning up was over");
        else
            reached = forget(one, agent);
    }
}

static void tell(dt_cleanup *cleanup)
{
    for (int64_t i = 0; i < cleanup->count; i++) {
        const dt_cleanup_folder *one = &cleanup->folders[i];

        if (one->err.code != DT_OK)
            dt_log_warn("%s: cannot remove the folder '%s': %s", one->place.node, one->place.folder,
                        one->err.message);
        if (one->kept.length > 0)
            dt_log_warn("%s: checkpoints that were not fetched are kept in '%s': %s",
                        one->place.node, one->place.checkpoints, one->kept.data);
        if (one->files.length > 0)
            cleanup->calls.kept(cleanup->context,
                                dt_arena_printf(&cleanup->arena,
                                                "%s keeps what the command wrote: %s",
                                                one->place.node, one->files.data));
    }
}

static void on_forgotten(uv_work_t *work, int status)
{
    dt_cleanup_folder *first = work->data;
    dt_cleanup *cleanup = first->cleanup;

    cleanup->running--;
    if (cleanup->running > 0 || cleanup->calls.is_over(cleanup->context))
        return;
    tell(cleanup);
    cleanup->calls.settled(cleanup->context);
}

/* --- open and close */

dt_cleanup *dt_cleanup_open(const dt_cleanup_setup *setup, const dt_cleanup_calls *calls,
                            void *context)
{
    dt_cleanup *cleanup = dt_calloc(1, sizeof(*cleanup));

    cleanup->setup = *setup;
    cleanup->calls = *calls;
    cleanup->context = context;
    dt_arena_init(&cleanup->arena, 0);
    dt_strbuf_init(&cleanup->home);
    atomic_init(&cleanup->cancelled, false);
    return cleanup;
}

static void begin(dt_cleanup *cleanup)
{
    dt_error problem = DT_ERROR_INIT;

    cleanup->begun = true;
    cleanup->deadline = dt_clock_monotonic_seconds() + BEGIN_SECONDS;
    if (dt_cleanup_list_folders(cleanup, &problem) != DT_OK) {
        dt_log_warn("cannot clean up the nodes: %s", problem.message);
        return;
    }
    for (int64_t i = 0; i < cleanup->count; i++) {
        dt_cleanup_folder *one = &cleanup->folders[i];

        one->work.data = one;
        if (is_first(one) &&
            uv_queue_work(cleanup->setup.loop, &one->work, forget_node, on_forgotten) == 0)
            cleanup->running++;
    }
}

bool dt_cleanup_is_done(dt_cleanup *cleanup)
{
    if (!cleanup->begun)
        begin(cleanup);
    return cleanup->running == 0;
}

void dt_cleanup_cancel(dt_cleanup *cleanup)
{
    if (cleanup != NULL)
        atomic_store(&cleanup->cancelled, true);
}

void dt_cleanup_free(dt_cleanup *cleanup)
{
    if (cleanup == NULL)
        return;
    for (int64_t i = 0; i < cleanup->count; i++) {
        dt_strbuf_release(&cleanup->folders[i].kept);
        dt_strbuf_release(&cleanup->folders[i].files);
    }
    free(cleanup->folders);
    dt_strbuf_release(&cleanup->home);
    dt_arena_release(&cleanup->arena);
    free(cleanup);
}
