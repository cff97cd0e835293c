/* dtrun smoke: tests recipes with short, scaled-down runs. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "recipes/fields/fields.h"
#include "runner/cli/command.h"
#include "runner/cli/read_recipe.h"
#include "runner/cli/report.h"
#include "runner/smoke/smoke.h"

/* Reports each check as soon as its result is known. */
typedef struct reporter {
    const dt_call *call;
    const char *recipe; /* under test */
    bool tap;
    int64_t number; /* of checks reported */
    dt_term term;
    dt_error unsent; /* why stdout could not be written */
} reporter;

static void print(reporter *to, dt_strbuf *text)
{
    (void)(to->tap ? dt_report_text(text, &to->unsent) : dt_report_styled(text, &to->unsent));
    dt_strbuf_reset(text);
}

static void report_result(void *context, const dt_smoke_result *result)
{
    reporter *to = context;
    dt_strbuf text;

    to->number++;
    if (to->call->json)
        return;
    dt_strbuf_init(&text);
    if (to->tap)
        dt_smoke_add_tap(&text, to->number, to->recipe, result);
    else
        dt_smoke_add_line(&text, &to->term, result);
    print(to, &text);
    dt_strbuf_release(&text);
}

static void report_begin(reporter *to)
{
    dt_strbuf text;

    if (to->call->json || to->tap)
        return;
    dt_strbuf_init(&text);
    dt_term_add(&text, &to->term, DT_STYLE_BOLD, "%s\n", to->recipe);
    print(to, &text);
    dt_strbuf_release(&text);
}

static void report_end(reporter *to, const dt_smoke_report *report)
{
    dt_strbuf text;

    if (report->folder != NULL)
        dt_report_note(to->call, "%s: kept the files in '%s'", report->path, report->folder);
    if (to->call->json || to->tap)
        return;
    dt_strbuf_init(&text);
    if (report->failed > 0)
        dt_term_add(&text, &to->term, DT_STYLE_BAD, "%s: %zu of %zu checks failed\n", report->path,
                    report->failed, report->count);
    else if (!report->interrupted)
        dt_term_add(&text, &to->term, DT_STYLE_GOOD, "%s: good, %zu checks in %.1f s\n",
                    report->path, report->count, report->seconds);
    print(to, &text);
    dt_strbuf_release(&text);
}

/* Tests one recipe. One that cannot be read counts as failed and does not end the command. */
static dt_status try_recipe(dt_smoke_report *out, const dt_smoke_wish *wish, dt_call *call,
                            const char *path, dt_error *err)
{
    reporter *to = wish->context;
    dt_error problem = DT_ERROR_INIT;
    dt_recipe_source source;
    dt_status st = DT_OK;
    dt_recipe recipe;

    to->recipe = path;
    report_begin(to);
    *out = (dt_smoke_report){.path = path};
    st = dt_read_recipe(&recipe, &source, path, call, &problem);
    if (st == DT_OK && dt_task_has_lines(recipe.task))
        st = DT_FAIL(&problem, DT_ERR_RECIPE,
                     "%s: 'dtrun smoke' takes only recipes that train or have a 'command', and "
                     "this one has 'task: %s'",
                     path, dt_task_name(recipe.task));
    if (st == DT_OK)
        st = dt_smoke_recipe(out, &recipe, &source, wish, call->arena, &problem);
    if (st != DT_OK && out->count == 0) {
        if (!call->json && call->problems->errors > 0)
            dt_report_problems(call->args->command, call->problems);
        dt_smoke_unread(out, path, &problem, call->arena);
        report_result(to, &out->results[0]);
        if (problem.code == DT_ERR_RECIPE)
            call->exit_code = DT_EXIT_USAGE;
    } else if (st != DT_OK) {
        dt_report_note(call, "%s", problem.message);
        call->exit_code = DT_EXIT_LEFT;
    }
    st = DT_OK;
    dt_problems_init(call->problems, call->arena); /* they are reported */
    report_end(to, out);
    return st;
}

static dt_status read_faults(dt_smoke_wish *out, const dt_call *call, dt_error *err)
{
    dt_smoke_fault *faults;
    size_t most = 0;
    dt_status st = DT_OK;

    for (size_t i = 0; i < DT_SMOKE_FAULT_KINDS; i++)
        most += dt_arguments_get(call->args, dt_smoke_fault_kinds[i].option)->items_count;
    faults = dt_arena_alloc_array(call->arena, most + 1, sizeof(*faults));
    for (size_t i = 0; i < DT_SMOKE_FAULT_KINDS; i++) {
        const dt_smoke_fault_kind *kind = &dt_smoke_fault_kinds[i];
        const dt_value *given = dt_arguments_get(call->args, kind->option);

        for (size_t j = 0; j < given->items_count; j++)
            DT_TRY(dt_smoke_fault_read(&faults[out->faults_count++], kind, given->items[j],
                                       call->arena, err));
    }
    out->faults = faults;
out:
    return st;
}

static dt_status print_end(const reporter *to, const dt_smoke_report *reports, size_t count,
                           const dt_call *call, dt_error *err)
{
    const char *junit = dt_arguments_get(call->args, "junit")->text;
    json_t *object = NULL, *recipes;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (junit != NULL) {
        dt_smoke_add_junit(&text, reports, count);
        DT_TRY(dt_file_write_atomic(junit, text.data, text.length, 0644, err));
    }
    if (call->json) {
        object = dt_report_object();
        recipes = json_array();
        for (size_t i = 0; i < count; i++)
            json_array_append_new(recipes, dt_smoke_to_json(&reports[i]));
        json_object_set_new(object, "recipes", recipes);
        DT_TRY(dt_report_json(object, err));
    } else if (to->tap) {
        dt_strbuf_reset(&text);
        dt_strbuf_add_fmt(&text, "1..%lld\n", (long long)to->number);
        DT_TRY(dt_report_text(&text, err));
    }
    if (to->unsent.code != DT_OK)
        DT_THROW(err, to->unsent.code, "%s", to->unsent.message);
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status smoke(dt_call *call, dt_error *err)
{
    int count = call->args->operands_count, done = 0;
    dt_smoke_report *reports = dt_arena_alloc_array(call->arena, (size_t)count, sizeof(*reports));
    reporter to = {
        .call = call, .tap = dt_arguments_flag(call->args, "tap"), .unsent = DT_ERROR_INIT};
    dt_smoke_wish wish = {
        .how = {.ranks = dt_arguments_get(call->args, "ranks")->integer,
                .steps = dt_arguments_get(call->args, "steps")->integer,
                .full = dt_arguments_flag(call->args, "full"),
                .here = dt_arguments_flag(call->args, "here")},
        .limit_seconds = dt_arguments_get(call->args, "limit")->number,
        .keep = dt_arguments_flag(call->args, "keep"),
        .on_result = report_result,
        .context = &to,
    };
    char version[] = "TAP version 14\n";
    dt_status st = DT_OK;

    if (wish.how.here && wish.how.ranks > 0)
        DT_THROW(err, DT_ERR_USAGE,
                 "--ranks cannot be combined with --here: the recipe sets the ranks");
    DT_TRY(read_faults(&wish, call, err));
    dt_term_init(&to.term, STDOUT_FILENO);
    if (to.tap && !call->json)
        DT_TRY(dt_report_text(&(dt_strbuf){.data = version, .length = strlen(version)}, err));
    dt_interrupt_catch(); /* Ctrl-C ends what runs and removes the folder */
    for (; done < count && !dt_interrupt_seen(); done++) {
        DT_TRY(try_recipe(&reports[done], &wish, call, call->args->operands[done], err));
        if (reports[done].failed > 0 && call->exit_code == DT_EXIT_GOOD)
            call->exit_code = DT_EXIT_FAILED;
    }
    if (dt_interrupt_seen())
        call->exit_code = DT_EXIT_INTERRUPTED;
    DT_TRY(print_end(&to, reports, (size_t)done, call, err));
out:
    return st;
}

static const dt_option options[] = {
    DT_RECIPE_OPTIONS("override a recipe value, as in launch"),
    {.name = "ranks",
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "0",
     .low = 0,
     .high = 64,
     .help = "training processes on this machine; 0: two (four with 'tensor'), or one if the "
             "recipe has one"},
    {.name = "steps",
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "12",
     .low = 8,
     .high = 1000000,
     .help = "steps of each run"},
    {.name = "full",
     .kind = DT_OPTION_FLAG,
     .help = "use the model and batch of the recipe instead of small ones"},
    {.name = "here",
     .kind = DT_OPTION_FLAG,
     .help = "use the recipe's own nodes, devices and ranks"},
    {.name = "limit",
     .kind = DT_OPTION_NUMBER,
     .value = "SECONDS",
     .fallback = "120",
     .low = 1,
     .high = 1e6,
     .help = "time limit of a run; a slower one fails"},
    {.name = "kill",
     .kind = DT_OPTION_LIST,
     .value = "rank=R@S",
     .help = "kill rank R after step S; check that the result is the same bit for bit"},
    {.name = "hang",
     .kind = DT_OPTION_LIST,
     .value = "rank=R@S",
     .help = "suspend rank R after step S; check that it is noticed"},
    {.name = "slow",
     .kind = DT_OPTION_LIST,
     .value = "rank=R@SxN",
     .help = "make rank R N times slower from step S on; check that the others wait"},
    {.name = "disk-full",
     .kind = DT_OPTION_LIST,
     .value = "rank=R@S",
     .help = "fill the disk of rank R after step S; check that the run continues"},
    {.name = "bitflip",
     .kind = DT_OPTION_LIST,
     .value = "rank=R@S",
     .help = "flip a bit of the parameters of rank R after step S; check that it is noticed"},
    {.name = "cut",
     .kind = DT_OPTION_LIST,
     .value = "node=N@S:Ts",
     .help = "cut the connection to node N (from 1) after step S for T seconds; check that nothing "
             "is lost"},
    {.name = "tap", .kind = DT_OPTION_FLAG, .help = "print TAP version 14, one line a check"},
    {.name = "junit",
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "also write JUnit XML to this file, for code hosts"},
    {.name = "keep",
     .kind = DT_OPTION_FLAG,
     .help = "keep the folder of the runs; it is always kept if a check fails"},
    {0},
};

const dt_command dt_command_smoke = {
    .name = "smoke",
    .summary = "test recipes on this machine with a scaled-down model",
    .operands = "RECIPE...",
    .takes = DT_OPERAND_FILE,
    .operands_min = 1,
    .operands_max = -1,
    .options = options,
    .notes =

        "Runs each recipe on a few processes of this machine with a small model and few steps,\n"
        "but with its own strategy, data, precision and shape of schedule. The runs go through\n"
        "launch, supervisor, agent and engine, in their own state folder below TMPDIR. Checks\n"
        "that the recipe trains, validates, generates text, needs the predicted memory, learns,\n"
        "agrees with one process, loses no bit when a rank is killed, and stops cleanly.\n"
        "\n"
        "A recipe with a command runs its program in a copy of its folder, with two processes.\n"
        "Checks that it starts, reports a metric, saves a checkpoint, continues from it when a\n"
        "rank is killed, and stops. --set args.* makes the program small.\n"
        "\n"
        "Exit codes: 0 all checks passed, 1 a check failed, 2 a recipe cannot be read.\n"
        "docs/smoke.md describes each check and a CI job.\n",
    .run = smoke,
};
