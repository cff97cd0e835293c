#include "runner/view/runs/incidents.h"

#include <string.h>

#include "base/json.h"

static json_t *parse(const dt_store_event *event)
{
    json_t *json = NULL;

    /* Events were checked when they were stored; a damaged one is only left out. */
    if (dt_json_parse(&json, event->json, strlen(event->json), "event", NULL) != DT_OK)
        return NULL;
    return json;
}

/* Reports only the preparation that can take hours: waiting for a Slurm job. */
static const char *preparing_sentence(const json_t *json, dt_arena *arena)
{
    const char *message;

    if (dt_json_get_string_or(&message, json, "message", "", "event", NULL) != DT_OK ||
        strncmp(message, "Slurm job ", strlen("Slurm job ")) != 0)
        return NULL;
    return dt_arena_strdup(arena, message);
}

static const char *message_sentence(const json_t *json, dt_arena *arena)
{
    const char *message = json_string_value(json_object_get(json, "message"));

    return message != NULL ? dt_arena_strdup(arena, message) : NULL;
}

static const char *checkpoint_failed_sentence(const json_t *json, dt_arena *arena)
{
    const char *message;
    int64_t step;

    if (dt_json_get_string_or(&message, json, "message", "", "event", NULL) != DT_OK ||
        dt_json_get_int_or(&step, json, "step", 0, "event", NULL) != DT_OK)
        return NULL;
    return dt_arena_printf(arena, "step %lld  checkpoint failed, training continues: %s",
                           (long long)step, message);
}

static const char *restart_sentence(const json_t *json, dt_arena *arena)
{
    const char *reason;
    int64_t attempt, step;

    if (dt_json_get_string_or(&reason, json, "reason", "", "event", NULL) != DT_OK ||
        dt_json_get_int_or(&attempt, json, "attempt", 0, "event", NULL) != DT_OK ||
        dt_json_get_int_or(&step, json, "step", 0, "event", NULL) != DT_OK)
        return NULL;
    return dt_arena_printf(arena, "attempt %lld continues from step %lld: %s", (long long)attempt,
                           (long long)step, reason);
}

const char *dt_incident_sentence(const dt_store_event *event, dt_arena *arena)
{
    const char *(*say)(const json_t *json, dt_arena *arena) = NULL;
    const char *sentence;
    json_t *json;

    if (strcmp(event->kind, "preparing") == 0)
        say = preparing_sentence;
    else if (strcmp(event->kind, "checkpoint_failed") == 0)
        say = checkpoint_failed_sentence;
    else if (strcmp(event->kind, "restart") == 0)
        say = restart_sentence;
    else if (strcmp(event->kind, "collected") == 0 || strcmp(event->kind, "kept") == 0)
        say = message_sentence;
    json = say != NULL ? parse(event) : NULL;
    sentence = json != NULL ? say(json, arena) : NULL;
    json_decref(json);
    return sentence;
}

/* Whether a rank ended other than with exit code 0. */
static bool ended_badly(const json_t *exited)
{
    const json_t *code = json_object_get(exited, "code");

    return !json_is_integer(code) || json_integer_value(code) != 0;
}

static void keep_lines(const char ***out, int64_t *count, const json_t *lines, dt_arena *arena)
{
    size_t total = json_is_array(lines) ? json_array_size(lines) : 0;

    *count = 0;
    *out = dt_arena_alloc_array(arena, total + 1, sizeof((*out)[0]));
    for (size_t i = 0; i < total; i++) {
        const char *text = json_string_value(json_array_get(lines, i));
        (*out)[(*count)++] = dt_arena_strdup(arena, text != NULL ? text : "");
    }
}

static void keep(dt_incident *out, int64_t rank, const json_t *exited, dt_arena *arena)
{
    *out = (dt_incident){.rank = rank};
    keep_lines(&out->lines, &out->lines_count, json_object_get(exited, "lines"), arena);
    keep_lines(&out->kernel_lines, &out->kernel_lines_count,
               json_object_get(exited, "kernel_lines"), arena);
}

/* How likely a rank is the cause of a failure, the most likely first. A rank that lost its peer, or that was
 * stopped because of another, only shows the failure of the other. */
enum { BLAME_OWN, BLAME_PEER, BLAME_ENDED, BLAME_NONE };

/* Whether this rank reported a lost peer, in the events up to `count`. */
static bool lost_its_peer(const dt_store_event *events, int64_t count, int64_t attempt,
                          int64_t rank)
{
    bool lost = false;

    for (int64_t i = 0; i < count && !lost; i++) {
        json_t *json;
        const char *status = NULL;
        if (events[i].attempt != attempt || events[i].rank != rank ||
            strcmp(events[i].kind, "failed") != 0)
            continue;
        json = parse(&events[i]);
        if (json != NULL)
            status = json_string_value(json_object_get(json, "status"));
        lost = status != NULL && (strcmp(status, dt_status_name(DT_ERR_PEER)) == 0 ||
                                  strcmp(status, dt_status_name(DT_ERR_COMM)) == 0);
        json_decref(json);
    }
    return lost;
}

static int blame_of(const json_t *exited, bool lost_peer)
{
    static const char *const ended[] = {"peer_failed", "stopped", "agent_stopped", "launcher_lost"};
    const char *reason = json_string_value(json_object_get(exited, "reason"));

    for (size_t i = 0; reason != NULL && i < sizeof(ended) / sizeof(ended[0]); i++)
        if (strcmp(reason, ended[i]) == 0)
            return BLAME_ENDED;
    return lost_peer ? BLAME_PEER : BLAME_OWN;
}

dt_status dt_incident_find(dt_incident *out, dt_store *store, const dt_run *run, dt_arena *arena,
                           dt_error *err)
{
    int blame, least = BLAME_NONE;
    dt_store_event *events;
    dt_status st = DT_OK;
    json_t *json = NULL;
    int64_t count, first_ms = 0;

    *out = (dt_incident){.rank = -1};
    DT_TRY(dt_store_event_list(store, &events, &count, run->id, 0, 0, arena, err));
    for (int64_t i = 0; i < count; i++) {
        if (events[i].attempt != run->attempt || strcmp(events[i].kind, "exited") != 0)
            continue;
        json = parse(&events[i]);
        if (json != NULL && ended_badly(json)) {
            blame = blame_of(json, lost_its_peer(events, i, run->attempt, events[i].rank));
            if (blame < least || (blame == least && events[i].time_ms < first_ms)) {
                least = blame;
                first_ms = events[i].time_ms;
                keep(out, events[i].rank, json, arena);
            }
        }
        json_decref(json);
        json = NULL;
    }
out:
    json_decref(json);
    return st;
}
