/* components: handles the callbacks of the collector, the checkpoint fetcher, the reaper and the cleanup, and
 * applies them to the run.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "runner/channel/detach.h"
#include "runner/node_setup/transfer/saved.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/session/session_int.h"
#include "runner/times.h"

static bool is_over(void *context)
{
    const dt_session *session = context;

    return session->failure != DT_OK;
}

static void consider(void *context)
{
    dt_state_update(context);
}

/* Checks whether the end waits for anything else. */
static void conclude(void *context)
{
    dt_state_dispatch(context, DT_EVENT_RELEASED, NULL);
}

/* --- the collector */

static void on_event(void *context, int64_t node, const dt_message *message)
{
    dt_session *session = context;

    if (message->kind == DT_MESSAGE_RELEASED)
        dt_node_link_release(session->nodes[node].link);
    if (message->kind == DT_MESSAGE_DIAGNOSIS && json_array_size(session->watch.diagnoses) > 0)
        json_array_set(session->watch.diagnoses, (size_t)message->rank, message->json);
    dt_watch_event(session, message);
    dt_verdict_see(&session->verdict, message, session->nodes[node].name);
}

static bool on_checkpoint(void *context, const dt_message *message)
{
    dt_session *session = context;

    dt_grow_at_save(session);
    if (dt_message_is_program_checkpoint(message)) {
        if (dt_components_bring_saved(session))
            dt_components_fetch(session, message);
        return false; /* it has a row in any case */
    }
    if (!dt_components_fetch_checkpoints(session))
        return false;
    dt_components_fetch(session, message);
    return true;
}

/* Clears the record of failed starts once events arrive some time after the start: this
 * supervisor does not crash right away. */
static void note_progress(dt_session *session)
{
    const char *path;

    if (session->progressed ||
        dt_session_now(session) - session->begun_seconds < dt_times()->starts_settled_seconds)
        return;
    session->progressed = true;
    path = dt_arena_printf(&session->arena, "%s/" DT_SUPERVISOR_STARTS, session->folder);
    dt_starts_clear(path);
}

static void on_acknowledge(void *context, int64_t node, int64_t sequence)
{
    dt_session *session = context;
    dt_node_link *link = session->nodes[node].link;

    note_progress(session);
    if (dt_node_link_is_attached(link))
        dt_node_link_send(
            link, json_pack("{s:s, s:I}", "command", "ack", "sequence", (json_int_t)sequence));
}

static void on_released(void *context, int64_t node)
{
    dt_session *session = context;

    dt_node_link_stored(session->nodes[node].link);
}

static void on_stored(void *context)
{
    dt_control_stored(context);
    dt_state_update(context);
}

static void on_pause(void *context, bool pause)
{
    dt_session *session = context;

    for (int64_t i = 0; i < session->node_count; i++)
        dt_node_link_pause(session->nodes[i].link, pause);
}

static void on_failed(void *context, dt_status st, const dt_error *err)
{
    dt_session_fail(context, st, err);
}

dt_status dt_components_open_collector(dt_session *session, dt_error *err)
{
    static const dt_collector_calls calls = {.is_over = is_over,
                                             .event = on_event,
                                             .checkpoint = on_checkpoint,
                                             .acknowledge = on_acknowledge,
                                             .released = on_released,
                                             .stored = on_stored,
                                             .pause = on_pause,
                                             .failed = on_failed};
    dt_collector_setup setup = {.rows = {.store = session->store,
                                         .run = session->run,
                                         .folder = session->folder,
                                         .attempt = session->attempt},
                                .clock = &session->clock,
                                .checkpoints = session->settings.checkpoints,
                                .world_size = session->world_size,
                                .node_count = session->node_count,
                                .task =
                                    session->task_plan != NULL ? &session->task_plan->task : NULL};

    return dt_collector_open(&session->collector, &setup, &calls, session, err);
}

/* --- fetching checkpoints */

static bool is_ending(void *context)
{
    const dt_session *session = context;

    return session->state != DT_RUN_RUNNING && session->state != DT_RUN_STARTING;
}

static void end_unless_good(dt_session *session, dt_status st, const dt_error *err)
{
    if (st == DT_OK)
        return;
    dt_session_fail(session, st, err);
}

static void on_fetched(void *context, const dt_message *message)
{
    dt_session *session = context;
    dt_error err = DT_ERROR_INIT;
    dt_status st = dt_collector_checkpoint(session->collector, message, &err);

    if (st == DT_OK)
        st = dt_collector_commit(session->collector, &err);
    end_unless_good(session, st, &err);
}

static void on_fetched_saved(void *context, const dt_message *message)
{
    dt_session *session = context;
    dt_error err = DT_ERROR_INIT;
    dt_status st =
        dt_collector_note(session->collector,
                          json_pack("{s:s, s:s, s:I}", "event", "checkpoint_brought", "directory",
                                    dt_message_string(message, "directory"), "step",
                                    (json_int_t)dt_message_int(message, "step", 0)),
                          &err);

    if (st == DT_OK)
        st = dt_collector_commit(session->collector, &err);
    end_unless_good(session, st, &err);
}

static void on_dropped(void *context, const dt_message *message, const char *why)
{
    dt_session *session = context;
    dt_error err = DT_ERROR_INIT;
    dt_status st = dt_collector_note(
        session->collector,
        json_pack("{s:s, s:s, s:I, s:o}", "event", "checkpoint_left", "directory",
                  dt_message_string(message, "directory"), "step",
                  (json_int_t)dt_message_int(message, "step", 0), "message", dt_json_text(why)),
        &err);

    if (st == DT_OK)
        st = dt_collector_commit(session->collector, &err);
    end_unless_good(session, st, &err);
}

bool dt_components_fetch_checkpoints(const dt_session *session)
{
    bool shared = true;

    for (int64_t i = 0; i < session->node_count; i++) {
        const dt_node_layout *place = dt_node_link_place(session->nodes[i].link);

        shared = shared && (place == NULL || place->checkpoints_shared);
    }
    return !shared;
}

bool dt_components_bring_saved(const dt_session *session)
{
    const json_t *checkpoints =
        json_object_get(json_object_get(session->plan, "recipe"), "checkpoints");
    bool far = false;

    for (int64_t i = 0; i < session->node_count; i++) {
        const dt_node_layout *place = dt_node_link_place(session->nodes[i].link);

        far = far || (place != NULL && dt_saved_is_far(place, session->plan));
    }
    return far && json_integer_value(json_object_get(checkpoints, "max_mb")) > 0;
}

void dt_components_fetch(dt_session *session, const dt_message *message)
{
    dt_node_layout *places = dt_calloc((size_t)session->node_count, sizeof(places[0]));

    for (int64_t i = 0; i < session->node_count; i++)
        if (dt_node_link_place(session->nodes[i].link) != NULL)
            places[i] = *dt_node_link_place(session->nodes[i].link);
    dt_checkpoint_fetcher_add(session->fetcher, message, places);
    free(places);
}

static void open_fetcher(dt_session *session)
{
    static const dt_checkpoint_fetcher_calls calls = {.is_over = is_over,
                                                      .is_ending = is_ending,
                                                      .fetched = on_fetched,
                                                      .fetched_saved = on_fetched_saved,
                                                      .dropped = on_dropped,
                                                      .settled = consider};
    dt_checkpoint_fetcher_setup setup = {.loop = &session->loop,
                                         .checkpoints = session->settings.checkpoints,
                                         .folder = session->folder,
                                         .attempt = session->attempt,
                                         .plan = session->plan,
                                         .node_count = session->node_count};

    session->fetcher = dt_checkpoint_fetcher_open(&setup, &calls, session);
}

/* --- what is left on nodes */

static void on_reaped(void *context, int64_t attempt, const dt_node *node)
{
    const dt_row row = {.kind = DT_ROW_NODE, .attempt = attempt, .node = *node};
    dt_session *session = context;
    dt_error err = DT_ERROR_INIT;

    if (dt_collector_put(session->collector, &row, &err) != DT_OK ||
        dt_collector_commit(session->collector, &err) != DT_OK)
        dt_log_warn("%s", err.message); /* it is tried again */
}

/* --- files of a command */

static void on_collected(void *context, const char *text)
{
    dt_session *session = context;
    dt_error err = DT_ERROR_INIT;

    dt_log_info("%s", text);
    end_unless_good(session, dt_session_note(session, "collected", text, &err), &err);
}

static void open_collection(dt_session *session)
{
    static const dt_collection_calls calls = {
        .is_over = is_over, .collected = on_collected, .settled = conclude};
    dt_collection_setup setup = {.loop = &session->loop,
                                 .plan = session->plan,
                                 .folder = session->folder,
                                 .node_count = session->node_count};

    session->collection = dt_collection_open(&setup, &calls, session);
}

static dt_status open_reaper(dt_session *session, dt_error *err)
{
    static const dt_reaper_calls calls = {
        .is_over = is_over, .reaped = on_reaped, .settled = conclude};
    dt_reaper_setup setup = {.loop = &session->loop,
                             .store = session->store,
                             .run = session->run,
                             .folder = session->folder,
                             .attempt = session->attempt};

    return dt_reaper_open(&session->reaper, &setup, &calls, session, err);
}

static bool is_lost(void *context, const char *name)
{
    const dt_session *session = context;
    bool lost = false;

    for (int64_t i = 0; i < session->node_count; i++)
        lost = lost ||
               (dt_node_is_lost(&session->nodes[i]) && strcmp(session->nodes[i].name, name) == 0);
    return lost;
}

static void on_kept(void *context, const char *text)
{
    dt_session *session = context;
    dt_error err = DT_ERROR_INIT;

    dt_log_info("%s", text);
    end_unless_good(session, dt_session_note(session, "kept", text, &err), &err);
}

static void open_cleanup(dt_session *session)
{
    static const dt_cleanup_calls calls = {
        .is_over = is_over, .is_lost = is_lost, .kept = on_kept, .settled = conclude};
    dt_cleanup_setup setup = {.loop = &session->loop,
                              .store = session->store,
                              .run = session->run,
                              .folder = session->folder,
                              .attempt = session->attempt};

    session->cleanup = dt_cleanup_open(&setup, &calls, session);
}

/* --- all of them */

dt_status dt_components_open(dt_session *session, dt_error *err)
{
    open_fetcher(session);
    open_collection(session);
    open_cleanup(session);
    return open_reaper(session, err);
}

void dt_components_close(dt_session *session)
{
    dt_checkpoint_fetcher_close(session->fetcher);
    dt_reaper_close(session->reaper);
    dt_collection_cancel(session->collection);
    dt_cleanup_cancel(session->cleanup);
}

void dt_components_free(dt_session *session)
{
    dt_checkpoint_fetcher_free(session->fetcher);
    dt_reaper_free(session->reaper);
    dt_collection_free(session->collection);
    dt_cleanup_free(session->cleanup);
    dt_collector_close(session->collector);
}
