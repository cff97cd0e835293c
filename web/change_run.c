/* change_run: runs the commands of changes, each on a thread of its own, and answers with their results. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/child.h"
#include "base/clock.h"
#include "web/web_int.h"

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
