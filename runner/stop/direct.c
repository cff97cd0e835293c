/* direct: finds a run without the history, from the folders of runs or from what runs on a node, and ends
 * what it has on its nodes: all nodes at once, by one command of the agent each. */
#include "runner/stop/direct.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/names.h"
#include "runner/channel/protocol.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/supervisor.h"
#include "runner/times.h"
#include "runner/transport/remote.h"

/* --- finding a run by its name */

#define PLAN_BYTES ((size_t)16 << 20)

typedef struct candidate {
    const char *id, *name;
    int64_t made_ns;
} candidate;

static const char *name_of(const char *folder, dt_arena *arena)
{
    json_t *plan = NULL;
    const char *name = "";
    dt_strbuf path;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/attempt-1/plan.json", folder);
    if (dt_json_read(&plan, path.data, PLAN_BYTES, NULL) == DT_OK) {
        const char *text =
            json_string_value(json_object_get(json_object_get(plan, "recipe"), "name"));

        name = text != NULL ? dt_arena_strdup(arena, text) : "";
    }
    json_decref(plan);
    dt_strbuf_release(&path);
    return name != NULL ? name : "";
}

/* Returns the launch time: no later attempt changes attempt-1/plan.json. */
static int64_t made_ns(const char *folder, dt_arena *arena)
{
    const char *path = dt_arena_printf(arena, "%s/attempt-1/plan.json", folder);
    struct stat info;

    if (stat(path, &info) != 0)
        return 0;
    return (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
}

static bool is_prefix(const char *ref, const char *id)
{
    return strlen(ref) >= DT_RUN_PREFIX_LEAST && strncmp(id, ref, strlen(ref)) == 0;
}

/* Returns how well the run matches: 0 not at all, 1 as a prefix, 2 by name, 3 "last", 4 exactly. */
static int fit_of(const candidate *one, const char *ref)
{
    if (strcmp(one->id, ref) == 0)
        return 4;
    if (strcmp(ref, DT_RUN_LAST) == 0)
        return 3;
    if (strcmp(one->name, ref) == 0)
        return 2;
    return is_prefix(ref, one->id) ? 1 : 0;
}

static dt_status check_named(const char *ref, dt_error *err)
{
    return ref[0] != '\0' ? DT_OK
                          : DT_FAIL(err, DT_ERR_USAGE,
                                    "the name of the run is empty: give an id, or the beginning of"
                                    " one");
}

dt_status dt_direct_find(const char **run, const char *ref, dt_arena *arena, dt_error *err)
{
    const char *state, *runs, *other = NULL;
    candidate best = {.made_ns = -1};
    struct dirent *entry;
    dt_status st = DT_OK;
    int best_fit = 0;
    DIR *dir = NULL;

    *run = NULL;
    DT_TRY(check_named(ref, err));
    DT_TRY(dt_dir_path(&state, DT_DIR_STATE, arena, err));
    runs = dt_arena_printf(arena, "%s/runs", state);
    dir = opendir(runs);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const char *folder = dt_arena_printf(arena, "%s/%s", runs, entry->d_name);
        candidate one = {.id = dt_arena_strdup(arena, entry->d_name)};
        int fit;

        if (entry->d_name[0] == '.')
            continue;
        one.name = name_of(folder, arena);
        one.made_ns = made_ns(folder, arena);
        fit = fit_of(&one, ref);
        if (fit == 1 && best_fit == 1)
            other = one.id;
        if (fit > best_fit || (fit > 1 && fit == best_fit && one.made_ns > best.made_ns)) {
            best = one;
            best_fit = fit;
        }
    }
    if (best_fit == 0)
        DT_THROW(err, DT_ERR_NOT_FOUND, "no run '%s' in the folder '%s'", ref, runs);
    if (best_fit == 1 && other != NULL)
        DT_THROW(err, DT_ERR_USAGE, "'%s' is the beginning of several runs, among them %s and %s",
                 ref, best.id, other);
    *run = best.id;
out:
    if (dir != NULL)
        closedir(dir);
    return st;
}

/* True if no earlier entry has the same run: several attempts of a run may have processes. */
static bool is_first_of(const json_t *runs, size_t at, const char *id)
{
    for (size_t i = 0; i < at; i++) {
        const char *before = json_string_value(json_object_get(json_array_get(runs, i), "run"));

        if (before != NULL && strcmp(before, id) == 0)
            return false;
    }
    return true;
}

dt_status dt_direct_pick(const char **run, const json_t *runs, const char *ref, dt_error *err)
{
    int64_t count = 0;
    dt_status st = DT_OK;
    dt_strbuf several;
    json_t *entry;
    size_t i;

    *run = NULL;
    dt_strbuf_init(&several);
    DT_TRY(check_named(ref, err));
    json_array_foreach(runs, i, entry) {
        const char *id = json_string_value(json_object_get(entry, "run"));

        if (id == NULL || (strcmp(id, ref) != 0 && !is_prefix(ref, id)) ||
            !is_first_of(runs, i, id))
            continue;
        *run = id;
        if (strcmp(id, ref) == 0)
            goto out;
        dt_strbuf_add_fmt(&several, "%s%s", count++ > 0 ? ", " : "", id);
    }
    if (count > 1)
        DT_THROW(err, DT_ERR_USAGE,
                 "'%s' is the beginning of several runs there: %s (give more of the id)", ref,
                 several.data);
out:
    dt_strbuf_release(&several);
    return st;
}

/* --- asking the nodes */

/* Ten of them log in at a time (transport/connections.c); a node that is off holds its turn for 8 s, and a turn is
 * waited for up to 60 s. */
#define THREADS_MOST  64
#define ANSWER_BYTES  ((size_t)16 << 20)
#define PLAN_SECONDS  20.0
#define LOOK_SECONDS  0.05
#define FIRST_SECONDS 4.0 /* until the first line that names the nodes that are waited for */
#define TELL_SECONDS  10.0
#define NAMES_MOST    8

/* What is asked of all places. */
typedef struct asking {
    dt_direct_place *places;
    int64_t count;
    dt_direct_how how;
    dt_arena *arenas;     /* [count]: threads share none */
    _Atomic int64_t next; /* of the threads */
    atomic_bool *done;    /* [count] */
    atomic_bool cancelled;
} asking;

/* --- one command on a node */

static bool is_here(const char *node)
{
    return dt_transport_local.reaches(node);
}

static bool is_preempted(const char *node)
{
    const dt_transport *transport;

    return dt_transport_find(&transport, node, NULL) == DT_OK && transport->is_preempted != NULL &&
           transport->is_preempted(node);
}

/* Returns the message without the node's name in front. */
static const char *without_node(const char *message, const char *node)
{
    size_t length = strlen(node);

    if (strncmp(message, "node '", 6) == 0 && strncmp(message + 6, node, length) == 0 &&
        strncmp(message + 6 + length, "': ", 3) == 0)
        return message + 6 + length + 3;
    return message;
}

/* Runs the words on the node of the place. Returns true if the node answered: then its problem is that of
 * the command, or NULL. A preemption has ended everything that the command would end. */
static bool run_there(dt_strbuf *out, dt_direct_place *place, const char *const *words,
                      double seconds, asking *all, dt_arena *arena)
{
    dt_error err = DT_ERROR_INIT, failed = DT_ERROR_INIT;
    int code = 0;
    dt_status st = dt_remote_ask(out, place->node, words, NULL, 0, ANSWER_BYTES, seconds, &code,
                                 &failed, &all->cancelled, &err);

    place->problem = NULL;
    if (st == DT_OK && code != 0)
        place->problem = dt_arena_strdup(arena, failed.message);
    if (st == DT_OK || is_preempted(place->node))
        return true;
    place->problem = st == DT_ERR_BUSY
                         ? "interrupted before it answered"
                         : dt_arena_strdup(arena, without_node(err.message, place->node));
    return false;
}

/* Finds the path of this dtrun's agent on the node; copies it there if it is missing. */
static dt_status find_agent(const char **agent, const char *node, asking *all, dt_arena *arena,
                            dt_error *err)
{
    dt_bootstrap bootstrap = {0};
    json_t *facts = NULL;
    dt_status st = DT_OK;
    int64_t skew_ms;

    if (is_here(node))
        return dt_dir_program(agent, "dtrun-agent", "DTRUN_AGENT", arena, err);
    DT_TRY(dt_bootstrap_init(&bootstrap, arena, err));
    DT_TRY(dt_bootstrap_probe(&facts, &skew_ms, &bootstrap, node, "-", &all->cancelled, err));
    DT_TRY(dt_bootstrap_agent(agent, &bootstrap, node, facts, arena, err));
out:
    json_decref(facts);
    dt_bootstrap_release(&bootstrap);
    return st;
}

/* --- one place */

static double direct_grace(const json_t *plan);

/* Returns how long the node may take for the answer: the grace period, the kill and the proof. */
static double answer_seconds(dt_direct_place *place, asking *all, dt_arena *arena)
{
    const dt_time_limits *times = dt_times();
    double seconds = times->direct_stop_seconds + times->end_most_seconds;

    if (all->how != DT_DIRECT_GRACE)
        return seconds;
    if (place->grace_seconds < 0) {
        const char *path = dt_arena_printf(arena, "%s/plan.json", place->folder);
        const char *const words[] = {place->agent, "node", "get", path, "0", NULL};
        json_t *plan = NULL;
        dt_strbuf text;

        dt_strbuf_init(&text);
        if (run_there(&text, place, words, PLAN_SECONDS, all, arena))
            (void)dt_json_parse(&plan, text.data, text.length, path, NULL);
        place->grace_seconds = direct_grace(plan);
        if (place->grace_seconds < 0)
            place->grace_seconds = times->default_grace_seconds;
        json_decref(plan);
        dt_strbuf_release(&text);
    }
    return seconds + place->grace_seconds + times->direct_leave_seconds;
}

static void end_there(dt_direct_place *place, asking *all, dt_arena *arena)
{
    const char *now = all->how == DT_DIRECT_NOW ? "--now" : NULL;
    double seconds = answer_seconds(place, all, arena);
    const char *const stop[] = {place->agent, "stop", place->folder, now, NULL};
    const char *const end[] = {place->agent, "end", place->folder, NULL};
    dt_error unreached = DT_ERROR_INIT;
    bool answered = true;
    const char *fresh;
    dt_strbuf out;

    dt_strbuf_init(&out);
    if (all->how != DT_DIRECT_ALL) {
        answered = run_there(&out, place, stop, seconds, all, arena);
        place->stays = place->problem == NULL && strstr(out.data, DT_PROTOCOL_AGENT_STAYS) != NULL;
    }
    /* `end` also for an agent that does not know `stop` */
    if (all->how == DT_DIRECT_ALL || (answered && place->problem != NULL))
        answered = run_there(&out, place, end, seconds, all, arena);
    /* its program may be missing */
    if (place->problem != NULL && answered != is_here(place->node) &&
        find_agent(&fresh, place->node, all, arena, &unreached) == DT_OK) {
        const char *const again[] = {fresh, "end", place->folder, NULL};

        (void)run_there(&out, place, again, seconds, all, arena);
    }
    dt_strbuf_release(&out);
}

static void list_there(dt_direct_place *place, asking *all, dt_arena *arena)
{
    const char *const words[] = {place->agent, "running", NULL};
    dt_error err = DT_ERROR_INIT;
    dt_strbuf out;

    dt_strbuf_init(&out);
    (void)run_there(&out, place, words, answer_seconds(place, all, arena), all, arena);
    if (place->problem == NULL)
        place->running = json_array();
    for (const char *line = out.data, *end;
         place->problem == NULL && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        json_t *entry = NULL;

        if (dt_json_parse(&entry, line, (size_t)(end - line), "running", &err) == DT_OK)
            json_array_append_new(place->running, entry);
        else
            place->problem = dt_arena_strdup(arena, err.message);
    }
    dt_strbuf_release(&out);
}

static void ask_place(dt_direct_place *place, asking *all, dt_arena *arena)
{
    dt_error err = DT_ERROR_INIT;
    dt_status st = DT_OK;

    if (!is_here(place->node))
        dt_remote_renew(place->node); /* a connection that is open may be stuck */
    if (place->agent == NULL)
        st = find_agent(&place->agent, place->node, all, arena, &err);
    if (st != DT_OK)
        place->problem = dt_arena_strdup(arena, without_node(err.message, place->node));
    else if (all->how == DT_DIRECT_LIST)
        list_there(place, all, arena);
    else
        end_there(place, all, arena);
    if (place->problem == NULL)
        place->problem = place->doubt;
}

/* --- all places */

static void *work(void *argument)
{
    asking *all = argument;

    for (int64_t i; (i = atomic_fetch_add(&all->next, 1)) < all->count;) {
        ask_place(&all->places[i], all, &all->arenas[i]);
        atomic_store(&all->done[i], true);
    }
    return NULL;
}

/* True if an earlier place that is still waited for has the same node. */
static bool is_named(const asking *all, int64_t at)
{
    for (int64_t i = 0; i < at; i++)
        if (!atomic_load(&all->done[i]) && strcmp(all->places[i].node, all->places[at].node) == 0)
            return true;
    return false;
}

/* Appends the names of the nodes that have not answered. Returns false if all have. */
static bool add_waiting(dt_strbuf *names, const asking *all)
{
    int64_t waiting = 0;

    for (int64_t i = 0; i < all->count; i++) {
        if (atomic_load(&all->done[i]) || is_named(all, i))
            continue;
        if (waiting++ < NAMES_MOST)
            dt_strbuf_add_fmt(names, "%s'%s'", names->length > 0 ? ", " : "", all->places[i].node);
    }
    if (waiting > NAMES_MOST)
        dt_strbuf_add_fmt(names, " and %lld more", (long long)(waiting - NAMES_MOST));
    return waiting > 0;
}

/* Waits until all places have answered, which each does within its time limit. */
static void wait_for_all(asking *all, const char *teller)
{
    double start = dt_clock_monotonic_seconds(), next = start + FIRST_SECONDS;
    dt_strbuf names;

    dt_strbuf_init(&names);
    while (dt_strbuf_reset(&names), add_waiting(&names, all)) {
        double now = dt_clock_monotonic_seconds();

        if (dt_interrupt_seen())
            atomic_store(&all->cancelled, true);
        if (teller != NULL && now > next) {
            dt_report_say("%s: waiting for the answer of %s (%.0f s)", teller, names.data,
                          now - start);
            next = now + TELL_SECONDS;
        }
        dt_clock_sleep_seconds(LOOK_SECONDS);
    }
    dt_strbuf_release(&names);
}

static const char *keep(const char *text, dt_arena *arena)
{
    return text != NULL ? dt_arena_strdup(arena, text) : NULL;
}

void dt_direct_ask(dt_direct_place *places, int64_t count, dt_direct_how how, const char *teller,
                   dt_arena *arena)
{
    asking all = {.places = places, .count = count, .how = how};
    pthread_t threads[THREADS_MOST];
    int started = 0;

    all.arenas = dt_calloc((size_t)count + 1, sizeof(*all.arenas));
    all.done = dt_calloc((size_t)count + 1, sizeof(*all.done));
    for (int64_t i = 0; i < count; i++)
        dt_arena_init(&all.arenas[i], 4096);
    while (started < THREADS_MOST && started < count &&
           pthread_create(&threads[started], NULL, work, &all) == 0)
        started++;
    if (started == 0)
        (void)work(&all);
    wait_for_all(&all, teller);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (int64_t i = 0; i < count; i++) {
        places[i].agent = keep(places[i].agent, arena);
        places[i].problem = keep(places[i].problem, arena);
        dt_arena_release(&all.arenas[i]);
    }
    free(all.arenas);
    free(all.done);
}

void dt_direct_add_left(dt_strbuf *left, const dt_direct_place *places, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        bool told = places[i].problem == NULL;

        for (int64_t k = 0; k < i && !told; k++) /* of an earlier attempt */
            told = places[k].problem != NULL && strcmp(places[k].node, places[i].node) == 0 &&
                   strcmp(places[k].problem, places[i].problem) == 0;
        if (!told)
            dt_strbuf_add_fmt(left, "%s%s: %s", left->length > 0 ? "; " : "", places[i].node,
                              places[i].problem);
    }
}

#define PLAN_BYTES ((size_t)16 << 20)

typedef struct listing {
    const char *run;
    dt_direct_place *places;
    int64_t count, capacity, named;
    double grace_seconds; /* of the attempt; negative: unknown */
    dt_arena *arena;
} listing;

/* Returns the grace period of the recipe in a plan; negative if it has none. */
static double direct_grace(const json_t *plan)
{
    const json_t *grace = json_object_get(json_object_get(plan, "recipe"), "grace_seconds");

    return json_is_number(grace) ? json_number_value(grace) : -1;
}

static void add(listing *all, const dt_direct_place *place)
{
    all->places = dt_arena_array_room(all->arena, all->places, all->count + 1, &all->capacity,
                                      sizeof(*place));
    all->places[all->count++] = *place;
}

static dt_status add_place(listing *all, const char *here, dt_error *err)
{
    dt_error unread = DT_ERROR_INIT;
    dt_direct_place place = {.grace_seconds = all->grace_seconds};
    dt_node_layout layout;
    dt_status read_st = dt_node_layout_read(&layout, here, all->arena, &unread);

    json_decref(layout.paths);
    if (read_st == DT_OK) {
        place.node = layout.node;
        place.agent = layout.agent;
        place.folder = layout.folder;
    } else { /* on this machine the node's folder is this folder */
        place.node = "localhost";
        place.folder = here;
        if (read_st != DT_ERR_NOT_FOUND &&
            !dt_file_exists(dt_arena_printf(all->arena, "%s/agent.lock", here)))
            place.doubt = dt_arena_printf(all->arena, "%s (see 'dtrun stop --node HOST %s')",
                                          unread.message, all->run);
    }
    all->named += read_st != DT_ERR_NOT_FOUND ? 1 : 0;
    add(all, &place);
    return DT_OK;
}

/* Calls `act` for each folder PREFIX-N in `parent`. */
static dt_status each_folder(listing *all, const char *parent, const char *prefix,
                             dt_status (*act)(listing *, const char *, dt_error *), dt_error *err)
{
    DIR *dir = opendir(parent);
    struct dirent *entry;
    dt_status st = DT_OK;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const char *path;

        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        path = dt_arena_printf(all->arena, "%s/%s", parent, entry->d_name);
        DT_TRY(act(all, path, err));
    }
out:
    if (dir != NULL)
        closedir(dir);
    return st;
}

static dt_status add_attempt(listing *all, const char *folder, dt_error *err)
{
    const char *path = dt_arena_printf(all->arena, "%s/plan.json", folder);
    json_t *plan = NULL;

    (void)dt_json_read(&plan, path, PLAN_BYTES, NULL);
    all->grace_seconds = direct_grace(plan);
    json_decref(plan);
    return each_folder(all, folder, "node-", add_place, err);
}

dt_status dt_direct_places(dt_direct_place **places, int64_t *count, int64_t *named,
                           const char *run, dt_arena *arena, dt_error *err)
{
    listing all = {.run = run, .arena = arena};
    const char *folder;
    dt_status st;

    DT_TRY(dt_run_path(&folder, run, NULL, arena, err));
    DT_TRY(each_folder(&all, folder, "attempt-", add_attempt, err));
out:
    *places = all.places;
    *count = all.count;
    *named = all.named;
    return st;
}
