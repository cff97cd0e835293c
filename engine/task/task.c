#include "engine/task/task.h"

#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "engine/channel/activity.h"
#include "engine/channel/stop.h"
#include "engine/generate/loaded.h"
#include "engine/task/part.h"
#include "engine/task/share.h"

#define LINES_MOST ((size_t)1 << 30) /* maximum size of an input file in bytes */

typedef struct task {
    const dt_plan *plan;
    const dt_plan_rank *place;
    const dt_task_how *how;
    dt_events *events;
    int64_t rank;
    dt_task_share share, target; /* lines of the input, and of the translations to score */
    dt_task_parts parts;
} task;

/* --- processing the lines */

static dt_status heed_stop(void *context, dt_error *err)
{
    (void)context;
    return dt_stop_asked() ? DT_FAIL(err, DT_ERR_TIMEOUT, "a stop was requested") : DT_OK;
}

static dt_status take_continued(void *context, const char *prompt, size_t length,
                                const dt_text *text, dt_error *err)
{
    task *t = context;
    dt_strbuf line;
    dt_status st;

    dt_strbuf_init(&line);
    dt_continued_line(&line, prompt, length, text);
    st = dt_task_parts_add(&t->parts, line.data, line.length, text->added, 0, err);
    dt_strbuf_release(&line);
    return st;
}

static dt_status take_translated(void *context, const char *text, size_t length, double score,
                                 dt_error *err)
{
    task *t = context;
    dt_strbuf line;
    dt_status st;

    (void)score;
    dt_strbuf_init(&line);
    dt_strbuf_add(&line, text, length);
    dt_strbuf_add_char(&line, '\n');
    st = dt_task_parts_add(&t->parts, line.data, line.length, 0, 0, err);
    dt_strbuf_release(&line);
    return st == DT_OK ? heed_stop(t, err) : st;
}

/* With all digits, because the total is summed from them (runner/supervisor/folder/task_output.h). */
static dt_status take_scored(void *context, double log_likelihood, int64_t tokens, dt_error *err)
{
    task *t = context;
    dt_strbuf line;
    dt_status st;

    dt_strbuf_init(&line);
    dt_strbuf_add_fmt(&line, "%.17g\t%lld\n", log_likelihood, (long long)tokens);
    st = dt_task_parts_add(&t->parts, line.data, line.length, tokens, log_likelihood, err);
    dt_strbuf_release(&line);
    return st == DT_OK ? heed_stop(t, err) : st;
}

static dt_status continue_lines(task *t, dt_error *err)
{
    dt_continue_options options = {.checkpoint = t->plan->resume_from,
                                   .text = t->share.text.data,
                                   .length = t->share.text.length,
                                   .numbers = t->share.numbers,
                                   .batch = t->how->batch,
                                   .rules = t->how->rules,
                                   .device = t->place->device,
                                   .threads = t->place->threads,
                                   .precision = t->how->precision,
                                   .emit = take_continued,
                                   .before = heed_stop,
                                   .context = t};
    int64_t step;

    return dt_continue(&step, &options, err);
}

static dt_status translate(task *t, dt_error *err)
{
    dt_translate_options options = {.checkpoint = t->plan->resume_from,
                                    .text = t->share.text.data,
                                    .length = t->share.text.length,
                                    .numbers = t->share.numbers,
                                    .batch = t->how->batch,
                                    .beams = t->how->rules.beams,
                                    .length_penalty = t->how->rules.length_penalty,
                                    .past_end = t->how->rules.past_end,
                                    .device = t->place->device,
                                    .threads = t->place->threads,
                                    .precision = t->how->precision,
                                    .emit = take_translated,
                                    .context = t};

    return dt_translate(&options, err);
}

static dt_status score(task *t, dt_error *err)
{
    bool pairs = t->plan->task.target[0] != '\0';
    dt_score_options options = {
        .checkpoint = t->plan->resume_from,
        .input = {t->share.text.data, t->share.text.length},
        .target = {pairs ? t->target.text.data : NULL, t->target.text.length},
        .numbers = t->share.numbers,
        .device = t->place->device,
        .threads = t->place->threads,
        .emit = take_scored,
        .context = t};

    return dt_score(&options, err);
}

static dt_status make(task *t, dt_error *err)
{
    dt_status st = DT_OK;
    bool pairs;

    if (t->share.count == 0)
        return DT_OK;
    if (t->plan->recipe.task == DT_TASK_SCORE)
        return score(t, err);
    DT_TRY(dt_loaded_is_of_pairs(&pairs, t->plan->resume_from, err));
    DT_TRY(pairs ? translate(t, err) : continue_lines(t, err));
out:
    return st;
}

/* --- other events */

static dt_status tell_ready(const task *t, dt_error *err)
{
    const char *phase = t->plan->recipe.task == DT_TASK_SCORE ? "score" : "generate";
    dt_status st = DT_OK;

    dt_activity_phase(phase);
    DT_TRY(dt_events_send(t->events,
                          json_pack("{s:s, s:I, s:s, s:I, s:I, s:I}", "event", "ready", "pid",
                                    (json_int_t)getpid(), "device", t->place->device, "threads",
                                    (json_int_t)t->place->threads, "step", (json_int_t)0, "steps",
                                    (json_int_t)t->plan->task.lines),
                          err));
    DT_TRY(
        dt_events_send(t->events, json_pack("{s:s, s:s}", "event", "phase", "phase", phase), err));
out:
    return st;
}

/* step is 0: only the run as a whole has a step, which a rank does not know. */
static dt_status tell_finished(const task *t, const char *reason, dt_error *err)
{
    return dt_events_send(t->events,
                          json_pack("{s:s, s:i, s:I, s:s}", "event", "finished", "step", 0, "steps",
                                    (json_int_t)t->plan->task.lines, "reason", reason),
                          err);
}

static dt_status tell_failed(const task *t, const dt_error *failure, dt_error *err)
{
    return dt_events_send(t->events,
                          json_pack("{s:s, s:s, s:o}", "event", "failed", "status",
                                    dt_status_name(failure->code), "message",
                                    dt_json_text(failure->message)),
                          err);
}

/* --- all of it */

static dt_status take_share(dt_task_share *out, const task *t, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_file_read(&text, path, LINES_MOST, err));
    DT_TRY(dt_task_share_take(out, &t->plan->task, &text, t->rank, t->plan->world_size, err));
out:
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_task_run(const dt_plan *plan, int64_t rank, const dt_task_how *how, dt_events *events,
                      dt_error *err)
{
    task t = {
        .plan = plan, .place = &plan->ranks[rank], .how = how, .events = events, .rank = rank};
    bool scores = plan->recipe.task == DT_TASK_SCORE, stopped;
    dt_error unsent = DT_ERROR_INIT;
    dt_status st = DT_OK;

    dt_task_parts_open(&t.parts, events, &plan->task, &t.share, scores);
    DT_TRY(tell_ready(&t, err));
    DT_TRY(take_share(&t.share, &t, plan->task.input, err));
    if (plan->task.target[0] != '\0')
        DT_TRY(take_share(&t.target, &t, plan->task.target, err));
    dt_log_info("this rank processes %lld of %lld lines", (long long)t.share.count,
                (long long)plan->task.lines);
    st = make(&t, err);
    stopped = st == DT_ERR_TIMEOUT && dt_stop_asked();
    if (stopped)
        dt_error_clear(err);
    else
        DT_TRY(st);
    DT_TRY(tell_finished(&t, stopped ? "stopped" : "steps", err));
out:
    if (st != DT_OK && tell_failed(&t, err, &unsent) != DT_OK)
        dt_log_error("cannot report the failure: %s", unsent.message);
    dt_task_parts_close(&t.parts);
    dt_task_share_release(&t.share);
    dt_task_share_release(&t.target);
    return st;
}
