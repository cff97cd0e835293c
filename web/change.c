/* change: turns the body of a request into a command line, and runs the commands. */
#include "web/change.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/child.h"
#include "base/clock.h"
#include "web/web_int.h"

/* --- the body */

static void add_word(dt_web_change *out, const char *word)
{
    DT_ASSERT(out->count < DT_WEB_CHANGE_WORDS);
    out->words[out->count++] = word;
    out->words[out->count] = NULL;
}

/* Begins the command line: what follows "--" is never an option. */
static void add_command(dt_web_change *out, const char *command, const char *option,
                        const char *option_value, const char *run)
{
    add_word(out, command);
    add_word(out, "--json");
    if (option != NULL)
        add_word(out, option);
    if (option_value != NULL)
        add_word(out, option_value);
    add_word(out, "--");
    add_word(out, run);
}

/* Refuses keys that are not in `keys`, which ends with NULL. */
static dt_status refuse_others(json_t *object, const char *const *keys, dt_error *err)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value) {
        int at = 0;

        while (keys[at] != NULL && strcmp(keys[at], key) != 0)
            at++;
        if (keys[at] == NULL)
            return DT_FAIL(err, DT_ERR_USAGE, "body: unknown key '%.32s'", key);
    }
    return DT_OK;
}

static dt_status read_name(dt_web_change *out, json_t *body, const char *run, dt_arena *arena,
                           dt_error *err)
{
    const char *name;
    dt_status st = DT_OK;

    DT_TRY(refuse_others(body, (const char *const[]){"name", NULL}, err));
    DT_TRY(dt_json_get_string(&name, body, "name", "body", err));
    add_command(out, "rename", NULL, NULL, run);
    add_word(out, dt_arena_strdup(arena, name));
out:
    return st;
}

static dt_status read_note(dt_web_change *out, json_t *body, const char *run, dt_arena *arena,
                           dt_error *err)
{
    const char *note, *replaces;
    dt_status st = DT_OK;

    DT_TRY(refuse_others(body, (const char *const[]){"note", "replaces", NULL}, err));
    DT_TRY(dt_json_get_string(&note, body, "note", "body", err));
    DT_TRY(dt_json_get_string_or(&replaces, body, "replaces", NULL, "body", err));
    if (replaces != NULL && strspn(replaces, "0123456789abcdef") != strlen(replaces))
        DT_THROW(err, DT_ERR_USAGE, "body: 'replaces': expected a version, as in .../notes");
    add_word(out, "note");
    add_word(out, "--file");
    add_word(out, "-");
    if (replaces != NULL) {
        add_word(out, "--replaces");
        add_word(out, dt_arena_strdup(arena, replaces));
    }
    add_word(out, "--json");
    add_word(out, "--");
    add_word(out, run);
    out->input = dt_arena_strdup(arena, note);
out:
    return st;
}

static dt_status add_tags(dt_web_change *out, json_t *body, const char *key, char sign,
                          dt_arena *arena, dt_error *err)
{
    json_t *list = json_object_get(body, key), *tag;
    size_t i;

    if (list == NULL)
        return DT_OK;
    if (!json_is_array(list) || json_array_size(list) > DT_WEB_TAGS_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "body: '%s': expected a list of at most %d tags", key,
                       DT_WEB_TAGS_MOST);
    json_array_foreach(list, i, tag) {
        if (!json_is_string(tag))
            return DT_FAIL(err, DT_ERR_USAGE, "body: '%s': expected texts", key);
        add_word(out, dt_arena_printf(arena, "%c%s", sign, json_string_value(tag)));
    }
    return DT_OK;
}

static dt_status read_tags(dt_web_change *out, json_t *body, const char *run, dt_arena *arena,
                           dt_error *err)
{
    dt_status st = DT_OK;
    int before;

    DT_TRY(refuse_others(body, (const char *const[]){"add", "remove", NULL}, err));
    add_command(out, "tag", NULL, NULL, run);
    before = out->count;
    DT_TRY(add_tags(out, body, "add", '+', arena, err));
    DT_TRY(add_tags(out, body, "remove", '-', arena, err));
    if (out->count == before)
        DT_THROW(err, DT_ERR_USAGE, "body: expected tags to 'add' or to 'remove'");
out:
    return st;
}

static dt_status read_archive(dt_web_change *out, json_t *body, const char *run, dt_arena *arena,
                              dt_error *err)
{
    dt_status st = DT_OK;
    bool archived;

    DT_TRY(refuse_others(body, (const char *const[]){"archived", NULL}, err));
    DT_TRY(dt_json_get_bool(&archived, body, "archived", "body", err));
    add_command(out, "archive", archived ? NULL : "--undo", NULL, run);
out:
    return st;
}

static dt_status read_stop(dt_web_change *out, json_t *body, const char *run, dt_arena *arena,
                           dt_error *err)
{
    dt_status st = DT_OK;
    bool now = false;

    DT_TRY(refuse_others(body, (const char *const[]){"now", NULL}, err));
    if (json_object_get(body, "now") != NULL)
        DT_TRY(dt_json_get_bool(&now, body, "now", "body", err));
    add_command(out, "stop", now ? "--now" : NULL, NULL, run);
out:
    return st;
}

static dt_status read_remove(dt_web_change *out, json_t *body, const char *run, dt_arena *arena,
                             dt_error *err)
{
    const char *name;
    dt_status st = DT_OK;
    bool dry = false;

    DT_TRY(refuse_others(body, (const char *const[]){"name", "dry_run", NULL}, err));
    if (json_object_get(body, "dry_run") != NULL)
        DT_TRY(dt_json_get_bool(&dry, body, "dry_run", "body", err));
    if (!dry) {
        DT_TRY(dt_json_get_string(&name, body, "name", "body", err));
        out->confirm = dt_arena_strdup(arena, name);
    }
    add_command(out, "rm", dry ? "--dry-run" : "--yes", NULL, run);
out:
    return st;
}

static const struct {
    const char *what;
    dt_status (*read)(dt_web_change *out, json_t *body, const char *run, dt_arena *arena,
                      dt_error *err);
} kinds[] = {
    {"name", read_name},       {"note", read_note}, {"tags", read_tags},
    {"archive", read_archive}, {"stop", read_stop}, {"remove", read_remove},
};

dt_status dt_web_change_read(dt_web_change *out, const char *what, const char *run,
                             const char *body, size_t length, dt_arena *arena, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    json_t *object = NULL;
    dt_status st = DT_OK;

    *out = (dt_web_change){.what = what};
    if (dt_json_parse(&object, body != NULL ? body : "", length, "body", &problem) != DT_OK)
        DT_THROW(err, DT_ERR_USAGE, "%s", problem.message);
    if (!json_is_object(object))
        DT_THROW(err, DT_ERR_USAGE, "body: expected an object");
    st = DT_FAIL(&problem, DT_ERR_USAGE, "'%s' is not a change", what);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i].what, what) == 0)
            st = kinds[i].read(out, object, run, arena, &problem);
    if (st != DT_OK) /* a wrong type is an error of the request, not of a file */
        st = DT_FAIL(err, DT_ERR_USAGE, "%s", problem.message);
out:
    json_decref(object);
    return st;
}

/* --- the commands that run */

#define OUTPUT_BYTES_MOST ((size_t)1 << 20)
#define WAIT_SECONDS      5.0 /* time that an answer waits for the end of a command */

typedef struct dt_web_job {
    dt_web_changes *changes;
    int64_t number;
    char run[64];
    const char *what; /* static */
    const char *const *argv;
    char *const *environment;
    const char *input;
    dt_arena arena; /* of the three above, until the end of the command */
    bool ended;
    int exit_code;
    dt_strbuf out, errors;
} dt_web_job;

static void job_free(dt_web_job *job)
{
    if (job == NULL)
        return;
    dt_arena_release(&job->arena);
    dt_strbuf_release(&job->out);
    dt_strbuf_release(&job->errors);
    free(job);
}

static void *job_run(void *context)
{
    dt_web_job *job = context;
    dt_web_changes *changes = job->changes;
    dt_error problem = DT_ERROR_INIT;
    int code = 1;

    if (dt_child_run(&code,
                     &(dt_child_call){.argv = job->argv,
                                      .environment = job->environment,
                                      .input = job->input,
                                      .out = &job->out,
                                      .errors = &job->errors,
                                      .most_bytes = OUTPUT_BYTES_MOST},
                     &problem) != DT_OK) {
        dt_strbuf_reset(&job->errors);
        dt_strbuf_add_str(&job->errors, problem.message);
    }
    pthread_mutex_lock(&changes->lock);
    job->exit_code = code;
    job->ended = true;
    changes->running--;
    pthread_cond_broadcast(&changes->ended);
    pthread_mutex_unlock(&changes->lock);
    return NULL;
}

/* Copies the environment without what belongs to a client of a server. */
static char *const *copy_environment(dt_arena *arena)
{
    char **all;
    size_t count = dt_web_environment(&all, arena, 0);

    for (size_t i = 0; i < count; i++)
        all[i] = dt_arena_strdup(arena, all[i]);
    return all;
}

static dt_web_job *job_new(dt_web_changes *changes, const dt_web_change *change, const char *run)
{
    dt_web_job *job = dt_calloc(1, sizeof(*job));
    const char **argv;

    job->changes = changes;
    job->what = change->what;
    snprintf(job->run, sizeof(job->run), "%s", run);
    dt_arena_init(&job->arena, 0);
    dt_strbuf_init(&job->out);
    dt_strbuf_init(&job->errors);
    argv = dt_arena_alloc_array(&job->arena, (size_t)change->count + 2, sizeof(*argv));
    argv[0] = changes->program;
    for (int i = 0; i < change->count; i++)
        argv[i + 1] = dt_arena_strdup(&job->arena, change->words[i]);
    argv[change->count + 1] = NULL;
    job->argv = argv;
    job->input = change->input != NULL ? dt_arena_strdup(&job->arena, change->input) : NULL;
    job->environment = copy_environment(&job->arena);
    return job;
}

/* Starts the thread of a job and keeps the job. DT_ERR_BUSY: too many run. */
static dt_status job_start(dt_web_job *job, dt_error *err)
{
    dt_web_changes *changes = job->changes;
    dt_web_job **place;
    dt_status st = DT_OK;
    pthread_t thread;

    pthread_mutex_lock(&changes->lock);
    place = &changes->jobs[changes->next % DT_WEB_CHANGES_KEPT];
    if (changes->closing || changes->running >= DT_WEB_CHANGES_RUNNING ||
        (*place != NULL && !(*place)->ended))
        DT_THROW(err, DT_ERR_BUSY, "%d changes are running: try again in a moment",
                 changes->running);
    job->number = changes->next;
    if (pthread_create(&thread, NULL, job_run, job) != 0)
        DT_THROW(err, DT_ERR_BUSY, "no thread for the change: try again in a moment");
    pthread_detach(thread);
    changes->next++;
    changes->running++;
    job_free(*place);
    *place = job;
out:
    pthread_mutex_unlock(&changes->lock);
    return st;
}

/* Waits for the end of a job with the lock held, but not for long. */
static void job_wait(dt_web_changes *changes, const dt_web_job *job)
{
    int64_t number = job->number;
    struct timespec end;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (time_t)WAIT_SECONDS;
    while (!changes->closing && changes->jobs[number % DT_WEB_CHANGES_KEPT] == job && !job->ended &&
           pthread_cond_timedwait(&changes->ended, &changes->lock, &end) != ETIMEDOUT)
        continue;
}

dt_status dt_web_changes_begin(dt_web_changes **out, const char *program, dt_error *err)
{
    dt_web_changes *changes = dt_calloc(1, sizeof(*changes));
    pthread_condattr_t monotonic;

    *out = changes;
    changes->program = program;
    changes->next = dt_clock_wall_ms(); /* no number of an earlier server */
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    if (pthread_mutex_init(&changes->lock, NULL) != 0 ||
        pthread_cond_init(&changes->ended, &monotonic) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot serve: no lock for changes");
    pthread_condattr_destroy(&monotonic);
    return DT_OK;
}

void dt_web_changes_end_waits(dt_web_changes *changes)
{
    if (changes == NULL)
        return;
    pthread_mutex_lock(&changes->lock);
    changes->closing = true;
    pthread_cond_broadcast(&changes->ended);
    pthread_mutex_unlock(&changes->lock);
}

void dt_web_changes_end(dt_web_changes *changes)
{
    if (changes == NULL ||
        changes->running > 0) /* its threads still use it: the process is about to end */
        return;
    for (int i = 0; i < DT_WEB_CHANGES_KEPT; i++)
        job_free(changes->jobs[i]);
    pthread_cond_destroy(&changes->ended);
    pthread_mutex_destroy(&changes->lock);
    free(changes);
}

/* --- the answers */

static int status_of(const char *name)
{
    static const struct {
        const char *name;
        int status;
    } all[] = {{"usage", 400}, {"recipe", 400},      {"not-found", 404},
               {"busy", 409},  {"unsupported", 409}, {"timeout", 504}};

    for (size_t i = 0; name != NULL && i < sizeof(all) / sizeof(all[0]); i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].status;
    return 500;
}

/* Answers with the state of a job, or with the error of its command. */
static dt_status reply_job(dt_web_reply *reply, const dt_web_job *job, dt_error *err)
{
    json_t *answer =
        json_pack("{sI so ss sb}", "change", (json_int_t)job->number, "run",
                  dt_web_string_json(job->run), "what", job->what, "done", (int)job->ended);
    json_t *result = NULL, *error;
    const char *message;
    int status;

    if (!job->ended)
        return dt_web_reply_json(reply, 202, answer, err);
    (void)dt_json_parse(&result, job->out.data, job->out.length, "result", NULL);
    error = json_object_get(result, "error");
    message = json_string_value(json_object_get(error, "message"));
    if (message == NULL && job->exit_code != 0)
        message = job->errors.data;
    json_object_del(result, "version");
    json_object_set_new(answer, "exit_code", json_integer(job->exit_code));
    if (error != NULL || (result == NULL && job->exit_code != 0)) {
        status = status_of(json_string_value(json_object_get(error, "status")));
        json_object_set_new(
            answer, "error",
            json_pack("{si so}", "status", status, "message", dt_web_string_json(message)));
        json_decref(result);
        return dt_web_reply_json(reply, status, answer, err);
    }
    json_object_set_new(answer, "message", dt_web_string_json(message));
    json_object_set_new(answer, "result", result != NULL ? dt_web_value_json(result) : json_null());
    return dt_web_reply_json(reply, 200, answer, err);
}

/* Waits for a job with the lock held, and answers with what has become of it. */
static dt_status wait_and_reply(dt_web_reply *reply, dt_web_changes *changes, dt_web_job *job,
                                dt_error *err)
{
    int64_t number = job->number;

    job_wait(changes, job);
    if (changes->jobs[number % DT_WEB_CHANGES_KEPT] != job) /* many others came meanwhile */
        return DT_FAIL(err, DT_ERR_NOT_FOUND, "no such change");
    return reply_job(reply, job, err);
}

/* Finds the run of a request, and gives the store back: a command may take long. */
static dt_status find_run(dt_run *out, dt_web_request *request, dt_error *err)
{
    dt_web_handle *handle;
    dt_status st = dt_web_stores_take(&handle, request->live->stores, DT_WEB_CHEAP, err);

    if (st != DT_OK)
        return st;
    request->store = handle->store;
    st = dt_web_run(out, request, err);
    request->store = NULL;
    dt_web_stores_give_back(request->live->stores, handle);
    return st;
}

static dt_status change_run(const char *what, dt_web_request *request, dt_web_reply *reply,
                            dt_error *err)
{
    dt_web_changes *changes = request->changes;
    dt_web_job *job = NULL;
    dt_web_change change;
    dt_status st = DT_OK;
    dt_run run;

    if (changes == NULL)
        DT_THROW(err, DT_ERR_NOT_FOUND, "this server changes nothing ('dtrun serve --write')");
    DT_TRY(find_run(&run, request, err));
    if (strcmp(run.id, request->run) != 0) /* a name or 'last' can mean another run by now */
        DT_THROW(err, DT_ERR_NOT_FOUND, "a change needs the whole id of a run, here '%s'", run.id);
    DT_TRY(dt_web_change_read(&change, what, run.id, request->body, request->body_bytes,
                              request->arena, err));
    if (change.confirm != NULL && strcmp(change.confirm, run.name) != 0)
        DT_THROW(err, DT_ERR_USAGE,
                 "'name' must be the name of the run, to confirm that it is removed");
    job = job_new(changes, &change, run.id);
    DT_TRY(job_start(job, err));
    pthread_mutex_lock(&changes->lock);
    st = wait_and_reply(reply, changes, job, err);
    pthread_mutex_unlock(&changes->lock);
    job = NULL;
out:
    job_free(job);
    return st;
}

dt_status dt_web_change_name(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    return change_run("name", request, reply, err);
}

dt_status dt_web_change_note(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    return change_run("note", request, reply, err);
}

dt_status dt_web_change_tags(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    return change_run("tags", request, reply, err);
}

dt_status dt_web_change_archive(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    return change_run("archive", request, reply, err);
}

dt_status dt_web_change_stop(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    return change_run("stop", request, reply, err);
}

dt_status dt_web_change_remove(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    return change_run("remove", request, reply, err);
}

dt_status dt_web_change_result(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    dt_web_changes *changes = request->changes;
    long long number = strtoll(request->run, NULL, 10);
    dt_web_job *job = NULL;
    dt_status st;

    if (changes == NULL || number <= 0)
        return DT_FAIL(err, DT_ERR_NOT_FOUND, "no such change");
    pthread_mutex_lock(&changes->lock);
    job = changes->jobs[number % DT_WEB_CHANGES_KEPT];
    if (job == NULL || job->number != number) {
        st = DT_FAIL(err, DT_ERR_NOT_FOUND, "no such change (the last %d are kept)",
                     DT_WEB_CHANGES_KEPT);
    } else {
        st = wait_and_reply(reply, changes, job, err);
    }
    pthread_mutex_unlock(&changes->lock);
    return st;
}

dt_status dt_web_rights(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    return dt_web_reply_json(reply, 200, json_pack("{sb}", "write", (int)request->may_write), err);
}
