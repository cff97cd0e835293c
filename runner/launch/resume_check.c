#include "runner/launch/existing_run.h"

#include "engine/checkpoint/checkpoint.h"
#include "engine/data/fingerprint.h"
#include "recipes/architecture/architecture.h"
#include "runner/cli/report.h"
#include "runner/supervisor/policy/restart.h"

/* *differ: the data have changed, and are allowed to. note: text about them to print, or "". */
static dt_status check_data(bool *differ, dt_strbuf *note, const dt_preflight *flight,
                            const dt_checkpoint_info *info, const dt_run *run, const dt_call *call,
                            dt_error *err)
{
    json_t *now = NULL;
    dt_status st = DT_OK;
    dt_strbuf words;

    dt_strbuf_init(&words);
    *differ = false;
    if (info->data == NULL) {
        dt_strbuf_add_str(
            note, "the checkpoint does not name its training data: the data are not compared");
        goto out;
    }
    DT_TRY(dt_fingerprint_make(&now, &flight->plan.recipe, err));
    *differ = dt_fingerprint_differs(&words, info->data, now);
    if (*differ && !flight->plan.new_data)
        DT_THROW(err, DT_ERR_RECIPE,
                 "the data of run '%s' have changed: %s (undo that, or add --new-data to 'dtrun %s "
                 "%s' to begin the new data at their start)",
                 run->id, words.data, call->args->command->name, run->id);
    if (*differ)
        dt_strbuf_add_fmt(note, "new data, from their start: %s", words.data);
    else if (dt_fingerprint_validation_differs(info->data, now))
        dt_strbuf_add_str(
            note, "the validation data differ from the checkpoint's; the best loss is reset");
out:
    json_decref(now);
    dt_strbuf_release(&words);
    return st;
}

/* Checks that these data can be encoded with the checkpoint's tokens. */
static dt_status check_tokens(const dt_preflight *flight, const dt_checkpoint_info *info,
                              dt_error *err)
{
    dt_tokenizer *tokenizer = NULL;
    dt_dataset_facts facts;
    dt_status st = DT_OK;

    DT_TRY(dt_tokenizer_from_json(&tokenizer, info->tokenizer, err));
    DT_TRY(dt_dataset_check(&facts, &flight->plan.recipe, tokenizer, err));
out:
    dt_tokenizer_free(tokenizer);
    return st;
}

/* True if the schedule is unchanged: a checkpoint at the end of its epochs is at the end with
 * any number of ranks. */
static bool same_schedule(const dt_recipe *recipe, const dt_checkpoint_info *info)
{
    const json_t *schedule = json_object_get(info->recipe, "schedule");

    return json_integer_value(json_object_get(schedule, "steps")) == recipe->schedule.steps &&
           json_integer_value(json_object_get(schedule, "epochs")) == recipe->schedule.epochs;
}

/* Refuses a checkpoint at which all steps of this recipe, and their evaluations, are done. */
static dt_status refuse_complete(const dt_run *run, const dt_preflight *flight,
                                 const dt_checkpoint_info *info,
                                 const dt_budget_place *resume_place, bool new_data,
                                 const dt_call *call, dt_error *err)
{
    const dt_recipe *recipe = &flight->recipe;
    dt_completion facts = {.saved_step = info->step,
                           .told_total = dt_preflight_steps(flight, resume_place),
                           .steps = recipe->schedule.steps,
                           .epochs = recipe->schedule.epochs};
    dt_strbuf more;

    if (facts.told_total == 0 && !new_data && same_schedule(recipe, info))
        facts.saved_total = info->steps_total;
    if (!dt_completion_reached(&facts) || (info->missing != 0 && run->state != DT_RUN_FINISHED))
        return DT_OK;
    dt_strbuf_init(&more);
    if (recipe->schedule.steps > 0)
        dt_strbuf_add_fmt(&more, " --set schedule.steps=%lld", (long long)info->step * 2);
    if (recipe->schedule.epochs > 0)
        dt_strbuf_add_fmt(&more, " --set schedule.epochs=%lld",
                          (long long)recipe->schedule.epochs * 2);
    if (run->state == DT_RUN_FINISHED)
        DT_FAIL(err, DT_ERR_RECIPE,
                "run '%s' has completed all its %lld steps: to continue, give it more, as in"
                " 'dtrun %s %s%s'",
                run->id, (long long)info->step, call->args->command->name, run->id, more.data);
    else
        DT_FAIL(
            err, DT_ERR_RECIPE,
            "the checkpoint of run '%s' is at step %lld, and the recipe has %lld steps: give it "
            "more, as in 'dtrun %s %s%s'",
            run->id, (long long)info->step, (long long)dt_completion_total(&facts),
            call->args->command->name, run->id, more.data);
    dt_strbuf_release(&more);
    return DT_ERR_RECIPE;
}

/* Prints the changes that --new-model allowed. */
static void report_changes(const dt_checkpoint *checkpoint, const dt_preflight *flight,
                           const dt_call *call)
{
    dt_strbuf words;

    dt_strbuf_init(&words);
    dt_checkpoint_model_changes(&words, checkpoint, &flight->plan.recipe);
    if (words.length > 0)
        dt_report_note(call, "another model with the same parameters: %s", words.data);
    dt_strbuf_release(&words);
}

dt_status dt_resume_check(dt_budget_place *resume_place, const dt_preflight *flight,
                          const dt_checkpoint *checkpoint, const dt_run *run, const dt_call *call,
                          dt_error *err)
{
    const dt_checkpoint_info *info = dt_checkpoint_get_info(checkpoint);
    bool new_data;
    dt_status st = DT_OK;
    dt_strbuf note;

    dt_strbuf_init(&note);
    DT_TRY(check_data(&new_data, &note, flight, info, run, call, err));
    *resume_place = (dt_budget_place){.step = info->step};
    if (new_data || info->data == NULL)
        DT_TRY(check_tokens(flight, info, err));
    if (!new_data)
        *resume_place = (dt_budget_place){info->step, info->epoch, info->sample};
    DT_TRY(dt_checkpoint_fits(checkpoint, &flight->plan.recipe, flight->plan.new_model, err));
    report_changes(checkpoint, flight, call);
    DT_TRY(refuse_complete(run, flight, info, resume_place, new_data, call, err));
    if (note.length > 0)
        dt_report_note(call, "%s", note.data);
out:
    dt_strbuf_release(&note);
    return st;
}

/* Adds how to keep the number of sequences (pairs: tokens) per step, if possible. */
static void add_batch_remedy(dt_strbuf *out, const dt_recipe *recipe, int64_t replicas,
                             int64_t before)
{
    int64_t pass = dt_recipe_pass(recipe, replicas);

    if (recipe->batch.total > 0)
        return; /* the recipe asks for this number */
    if (before % pass == 0)
        dt_strbuf_add_fmt(out, "; --set batch.total=%lld keeps the number", (long long)before);
    else
        dt_strbuf_add_fmt(
            out,
            "; to keep the number, choose 'batch.sequences' so that %lld is a multiple of "
            "it times %lld, and set 'batch.total' to %lld",
            (long long)before, (long long)replicas, (long long)before);
}

void dt_resume_note_batch(const dt_preflight *flight, const dt_checkpoint *checkpoint,
                          const dt_call *call)
{
    const dt_checkpoint_info *info = dt_checkpoint_get_info(checkpoint);
    const json_t *batch = json_object_get(info->recipe, "batch");
    const json_t *optimizer = json_object_get(info->recipe, "optimizer");
    const dt_recipe *recipe = &flight->plan.recipe;
    int64_t max_tokens = json_integer_value(json_object_get(batch, "max_tokens"));
    int64_t length = max_tokens > 0 ? 1 : json_integer_value(json_object_get(batch, "tokens"));
    int64_t before = info->step_samples * (max_tokens > 0 ? max_tokens : 1);
    int64_t replicas = dt_preflight_replicas(flight), now = dt_recipe_pass(recipe, replicas);
    /* as written in the recipe */
    bool same_rate = json_number_value(json_object_get(optimizer, "lr")) == recipe->optimizer.lr;
    dt_strbuf text;

    now *= recipe->batch.accumulate;
    if (before <= 0 || (max_tokens > 0) != (recipe->batch.max_tokens > 0) ||
        before * length == now * (max_tokens > 0 ? 1 : recipe->batch.tokens))
        return;
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "a step now has %s%lld %ss (%lld rank%s), before %lld%s",
                      max_tokens > 0 ? "up to " : "",
                      (long long)(now * (max_tokens > 0 ? 1 : recipe->batch.tokens)),
                      dt_architecture_find(recipe->model.kind)->item, (long long)replicas,
                      replicas == 1 ? "" : "s", (long long)(before * length),
                      same_rate ? ", and the learning rate is the same" : "");
    add_batch_remedy(&text, recipe, replicas, before);
    dt_report_note(call, "%s", text.data);
    dt_strbuf_release(&text);
}
