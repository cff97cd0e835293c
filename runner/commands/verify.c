/* dtrun verify: replays recorded steps of a run and compares them with its record to the bit. */
#include <limits.h>
#include <string.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/verify/verify.h"
#include "runner/view/runs/runs.h"

/* What was found, in the order in which it is printed. */
typedef struct findings {
    const dt_run *run;
    dt_verified_record record;
    dt_verified_checkpoints checkpoints;
    const char *repeated; /* steps that two attempts computed differently; NULL: none */
    int64_t repeated_steps;
    dt_verify_task task;
    dt_verify_replay replay;
    bool replayed;
    dt_records_compared compared;
    const char *against; /* the run's checkpoint of the last step; NULL: it has none */
    const char *tensor;  /* the first that differs from it; NULL: none */
    int64_t elems, differ;
    bool failed;
} findings;

/* --- comparing */

static const dt_verified_checkpoint *last_checkpoint(const findings *f)
{
    for (int64_t i = 0; i < f->checkpoints.count; i++)
        if (f->checkpoints.items[i].step == f->task.until &&
            f->checkpoints.items[i].attempt == f->task.attempt->attempt)
            return &f->checkpoints.items[i];
    return NULL;
}

static dt_status compare(findings *f, dt_arena *arena, dt_error *err)
{
    const dt_record_span span = {.after = f->task.from, .until = f->task.until};
    const dt_verified_checkpoint *saved = last_checkpoint(f);
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;

    DT_TRY(dt_records_compare(&f->compared, f->task.attempt->files, f->replay.files,
                              f->replay.ranks, &span, arena, err));
    if (saved == NULL || f->replay.checkpoint[0] == '\0')
        goto out;
    f->against = saved->path;
    if (dt_verify_tensors(&f->tensor, &f->elems, &f->differ, saved->path, f->replay.checkpoint,
                          arena, &problem) != DT_OK) /* damaged where names and sizes are */
        f->tensor = dt_arena_strdup(arena, problem.message);
out:
    return st;
}

static int64_t count_damaged(const findings *f)
{
    int64_t count = 0;

    for (int64_t i = 0; i < f->checkpoints.count; i++)
        count += f->checkpoints.items[i].damage != NULL;
    return count;
}

static void judge(findings *f)
{
    f->failed = count_damaged(f) > 0 || f->repeated != NULL ||
                f->compared.first.kind != DT_DIFFERENT_NOTHING || f->tensor != NULL ||
                (f->replayed && f->compared.equal < f->compared.recorded);
}

/* --- what was covered */

/* Rounds of the rotation, and how many of them the replayed steps have. */
static void count_rounds(int64_t *rounds, int64_t *covered, const findings *f)
{
    int64_t steps = f->task.until - f->task.from;

    *rounds = 1;
    for (int64_t rank = 0; rank < f->task.attempt->ranks; rank++) {
        const json_t *header = f->task.attempt->files[rank].header;
        int64_t own = (int64_t)json_array_size(json_object_get(header, "rounds"));

        *rounds = own > *rounds ? own : *rounds;
    }
    *covered = steps < *rounds ? steps : *rounds;
}

/* --- text */

static void add_checkpoints(dt_strbuf *text, const findings *f)
{
    int64_t damaged = count_damaged(f);

    dt_strbuf_add_fmt(text, "checkpoints: %lld on disk, %lld damaged\n",
                      (long long)f->checkpoints.count, (long long)damaged);
    for (int64_t i = 0; i < f->checkpoints.count; i++)
        if (f->checkpoints.items[i].damage != NULL)
            dt_strbuf_add_fmt(text, "  DAMAGED step %lld: %s\n",
                              (long long)f->checkpoints.items[i].step,
                              f->checkpoints.items[i].damage);
}

static void add_replay(dt_strbuf *text, const findings *f, dt_arena *arena)
{
    const dt_verify_task *task = &f->task;
    long long ranks = task->attempt->ranks;
    int64_t rounds, covered;

    dt_strbuf_add_fmt(text, "replayed: steps %lld to %lld of attempt %lld on %lld %s, from %s\n",
                      (long long)task->from + 1, (long long)task->until,
                      (long long)task->attempt->attempt, ranks, ranks == 1 ? "rank" : "ranks",
                      task->path[0] != '\0' ? dt_arena_printf(arena, "the checkpoint of step %lld",
                                                              (long long)task->from)
                                            : "the beginning");
    if (f->compared.first.kind != DT_DIFFERENT_NOTHING)
        dt_strbuf_add_fmt(text, "DIFFERS: %s\n", dt_difference_text(&f->compared.first, arena));
    else
        dt_strbuf_add_fmt(text, "equal to the bit: %lld of %lld recorded steps%s\n",
                          (long long)f->compared.equal / ranks,
                          (long long)f->compared.recorded / ranks,
                          f->compared.equal < f->compared.recorded
                              ? "; DIFFERS: the replay has not computed the others"
                              : "");
    count_rounds(&rounds, &covered, f);
    dt_strbuf_add_fmt(
        text,
        "covered: input, losses and gradient norm of every step; %lld of %lld parts of "
        "the parameters, gradients and moments%s\n",
        (long long)covered, (long long)rounds, covered < rounds ? " (--steps covers more)" : "");
    if (f->replay.failure != NULL)
        dt_strbuf_add_fmt(text, "the replay ended early: %s\n", f->replay.failure);
    if (f->against == NULL)
        return;
    if (f->tensor != NULL)
        dt_strbuf_add_fmt(
            text, "DIFFERS: checkpoint of step %lld: %s; %lld of %lld elements differ\n",
            (long long)task->until, f->tensor, (long long)f->differ, (long long)f->elems);
    else
        dt_strbuf_add_fmt(text, "checkpoint of step %lld: all %lld elements are equal to the bit\n",
                          (long long)task->until, (long long)f->elems);
}

static dt_status print(const findings *f, dt_arena *arena, dt_error *err)
{
    dt_status st;
    dt_strbuf text;

    dt_strbuf_init(&text);
    add_checkpoints(&text, f);
    if (f->repeated != NULL)
        dt_strbuf_add_fmt(&text, "DIFFERS: %s\n", f->repeated);
    else if (f->repeated_steps > 0)
        dt_strbuf_add_fmt(&text, "repeated: %lld steps that two attempts computed are equal\n",
                          (long long)f->repeated_steps);
    if (f->replayed)
        add_replay(&text, f, arena);
    st = dt_report_text(&text, err);
    dt_strbuf_release(&text);
    return st;
}

/* --- JSON */

static json_t *difference_to_json(const dt_difference *difference, dt_arena *arena)
{
    static const char *const kinds[] = {"none", "input", "losses", "sent",  "gradient",
                                        "norm", "loss",  "value",  "moment"};
    json_t *object;

    if (difference->kind == DT_DIFFERENT_NOTHING)
        return json_null();
    object = json_pack("{s:I, s:I, s:s, s:s}", "step", (json_int_t)difference->step, "rank",
                       (json_int_t)difference->rank, "what", kinds[difference->kind], "text",
                       dt_difference_text(difference, arena));
    if (difference->name[0] != '\0')
        json_object_update_new(object, json_pack("{s:o, s:I, s:I}", "parameter",
                                                 dt_json_text(difference->name), "first",
                                                 (json_int_t)difference->first, "elems",
                                                 (json_int_t)difference->elems));
    return object;
}

static json_t *text_or_null(const char *text)
{
    return text != NULL ? dt_json_text(text) : json_null();
}

static json_t *replay_to_json(const findings *f, dt_arena *arena)
{
    const dt_verify_task *task = &f->task;
    int64_t rounds, covered;

    count_rounds(&rounds, &covered, f);
    return json_pack("{s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "attempt",
                     (json_int_t)task->attempt->attempt, "ranks", (json_int_t)task->attempt->ranks,
                     "from", (json_int_t)task->from, "until", (json_int_t)task->until, "checkpoint",
                     text_or_null(task->path[0] != '\0' ? task->path : NULL), "recorded",
                     (json_int_t)(f->compared.recorded / task->attempt->ranks), "equal",
                     (json_int_t)(f->compared.equal / task->attempt->ranks), "parts",
                     (json_int_t)rounds, "parts_covered", (json_int_t)covered, "difference",
                     difference_to_json(&f->compared.first, arena), "checkpoint_difference",
                     text_or_null(f->tensor), "failure", text_or_null(f->replay.failure));
}

static dt_status print_json(const findings *f, dt_arena *arena, dt_error *err)
{
    json_t *object = dt_report_object(), *list = json_array();

    for (int64_t i = 0; i < f->checkpoints.count; i++) {
        const dt_verified_checkpoint *one = &f->checkpoints.items[i];

        json_array_append_new(
            list, json_pack("{s:I, s:I, s:o, s:o}", "attempt", (json_int_t)one->attempt, "step",
                            (json_int_t)one->step, "path", dt_json_text(one->path), "damage",
                            text_or_null(one->damage)));
    }
    json_object_set_new(object, "run", json_string(f->run->id));
    json_object_set_new(object, "equal", json_boolean(!f->failed));
    json_object_set_new(object, "checkpoints", list);
    json_object_set_new(object, "repeated_steps", json_integer((json_int_t)f->repeated_steps));
    json_object_set_new(object, "repeated_difference", text_or_null(f->repeated));
    json_object_set_new(object, "replay", f->replayed ? replay_to_json(f, arena) : json_null());
    return dt_report_json(object, err);
}

/* --- the command */

static dt_verify_wish read_wish(const dt_call *call)
{
    const dt_value *from = dt_arguments_get(call->args, "from");

    return (dt_verify_wish){.from = from->given ? from->integer : -1,
                            .steps = dt_arguments_get(call->args, "steps")->integer};
}

static void note_start(const findings *f, const dt_verify_wish *wish, const dt_call *call)
{
    if (!dt_run_state_is_terminal(f->run->state))
        dt_report_note(call, "run %s is %s: what it has recorded so far is verified", f->run->id,
                       dt_run_state_name(f->run->state));
    if (wish->from > f->task.from)
        dt_report_note(
            call, "step %lld has no undamaged checkpoint on disk: the replay starts at %s %lld",
            (long long)wish->from, f->task.path[0] != '\0' ? "that of step" : "step",
            (long long)f->task.from);
}

static dt_status replay(findings *f, const dt_call *call, dt_error *err)
{
    const dt_value *on = dt_arguments_get(call->args, "on");
    const dt_verify_wish wish = read_wish(call);
    dt_status st = DT_OK;

    DT_TRY(dt_verify_choose(&f->task, &f->record, &f->checkpoints, &wish, call->arena, err));
    note_start(f, &wish, call);
    DT_TRY(dt_replay_run(&f->replay, f->run, &f->task, on->given ? on->text : NULL, call, err));
    f->replayed = true;
    DT_TRY(compare(f, call->arena, err));
    if (f->replay.failure != NULL && f->compared.first.kind == DT_DIFFERENT_NOTHING)
        DT_THROW(err, DT_ERR_IO, "the replay failed: %s", f->replay.failure);
out:
    return st;
}

static dt_status verify(dt_call *call, dt_error *err)
{
    findings f = {0};
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_run run;

    f.compared.first.name = "";
    dt_interrupt_catch();
    DT_TRY(dt_runs_open(&store, &run, call->args->operands[0], call, err));
    f.run = &run;
    DT_TRY(dt_task_refuse(&run, "be verified", call->arena, err));
    DT_TRY(dt_verify_record_read(&f.record, &run, call->arena, err));
    DT_TRY(dt_verify_checkpoints(&f.checkpoints, store, &run, call->arena, err));
    if (f.record.count == 0 && f.checkpoints.count == 0)
        DT_THROW(err, DT_ERR_NOT_FOUND, "run %s has neither a record nor a checkpoint on disk",
                 run.id);
    DT_TRY(dt_verify_repeated(&f.repeated, &f.repeated_steps, &f.record, call->arena, err));
    if (f.record.count > 0)
        DT_TRY(replay(&f, call, err));
    judge(&f);
    if (f.failed)
        call->exit_code = 1;
    DT_TRY(call->json ? print_json(&f, call->arena, err) : print(&f, call->arena, err));
    if (f.record.count == 0)
        dt_report_note(
            call,
            "run %s has no record of its steps (a dtrun without 'verify' trained it): only "
            "the digests of its checkpoints were checked",
            run.id);
out:
    dt_replay_close(&f.replay);
    dt_verify_record_release(&f.record);
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "from",
     .kind = DT_OPTION_INT,
     .value = "STEP",
     .low = 0,
     .high = 1e15,
     .help = "replay the steps after this one (default: those after the newest checkpoint)"},
    {.name = "steps",
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "100",
     .low = 1,
     .high = 1e15,
     .help = "replay this many steps, at most those that are recorded"},
    {.name = "on",
     .kind = DT_OPTION_TEXT,
     .value = "NODE",
     .help = "replay on this node instead of those of the run"},
    {0},
};

const dt_command dt_command_verify = {
    .name = "verify",
    .summary = "replay steps and compare them to the bit",
    .operands = "RUN",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =

        "Every step of a training run is recorded as digests. verify checks the digests of the\n"
        "checkpoints, replays recorded steps from a checkpoint in a folder of its own, and names\n"
        "the first step, rank and parameter, gradient or input that differs. The run is only\n"
        "read. Without --from, a damaged checkpoint is replayed and compared element by element;\n"
        "otherwise the steps after the newest checkpoint that has recorded steps after it.\n"
        "If STEP has no checkpoint, the replay starts at the one before. Bits are only compared\n"
        "between the same kinds of processors, with the same instruction set, threads and ranks.\n"
        "Exit code 1: something differs.\n",
    .run = verify,
};
