/* dtrun smoke: recipes tried in small, before they are run at length. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "runner/cli/command.h"
#include "runner/cli/interrupt.h"
#include "runner/cli/read_recipe.h"
#include "runner/cli/report.h"
#include "runner/smoke/formats.h"
#include "runner/smoke/smoke.h"

#include "base/banned.h"

/* Reports each check as soon as its result is known. */
typedef struct teller {
    const dt_call *call;
    const char *recipe; /* that is tried */
    bool tap;
    int64_t number; /* of checks told */
    dt_term term;
    dt_error unsent; /* stdout is gone */
} teller;

static void print(teller *to, dt_strbuf *text)
{
    (void)(to->tap ? dt_report_text(text, &to->unsent) : dt_report_styled(text, &to->unsent));
    dt_strbuf_reset(text);
}

static void tell(void *context, const dt_smoke_result *result)
{
    teller *to = context;
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

static void tell_begin(teller *to)
{
    dt_strbuf text;

    if (to->call->json || to->tap)
        return;
    dt_strbuf_init(&text);
    dt_term_add(&text, &to->term, DT_STYLE_BOLD, "%s\n", to->recipe);
    print(to, &text);
    dt_strbuf_release(&text);
}

static void tell_end(teller *to, const dt_smoke_report *report)
{
    dt_strbuf text;

    if (report->folder != NULL)
        dt_report_note(to->call, "%s: what it left is in '%s'", report->path, report->folder);
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

/* What cannot be read has failed, and hides none of the others. */
static dt_status try_recipe(dt_smoke_report *out, const dt_smoke_wish *wish, dt_call *call,
                            const char *path, dt_error *err)
{
    teller *to = wish->context;
    dt_error problem = DT_ERROR_INIT;
    dt_recipe_source source;
    dt_status st = DT_OK;
    dt_recipe recipe;

    to->recipe = path;
    tell_begin(to);
    *out = (dt_smoke_report){.path = path};
    st = dt_read_recipe(&recipe, &source, path, call, &problem);
    if (st == DT_OK)
        st = dt_smoke_recipe(out, &recipe, &source, wish, call->arena, &problem);
    if (st != DT_OK && out->count == 0) {
        if (!call->json && call->problems->errors > 0)
            dt_report_problems(call->args->command, call->problems);
        DT_TRY(dt_smoke_unread(out, path, &problem, call->arena, err));
        tell(to, &out->results[0]);
        if (problem.code == DT_ERR_RECIPE)
            call->exit_code = DT_EXIT_USAGE;
    } else if (st != DT_OK) {
        dt_report_note(call, "%s", problem.message);
        call->exit_code = DT_EXIT_LEFT;
    }
    st = DT_OK;
    dt_problems_init(call->problems, call->arena); /* they are told */
    tell_end(to, out);
out:
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
    if (faults == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
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

static dt_status print_end(const teller *to, const dt_smoke_report *reports, size_t count,
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
    teller to = {
        .call = call, .tap = dt_arguments_flag(call->args, "tap"), .unsent = DT_ERROR_INIT};
    dt_smoke_wish wish = {
        .how = {.ranks = dt_arguments_get(call->args, "ranks")->integer,
                .steps = dt_arguments_get(call->args, "steps")->integer,
                .full = dt_arguments_flag(call->args, "full"),
                .here = dt_arguments_flag(call->args, "here")},
        .limit_seconds = dt_arguments_get(call->args, "limit")->number,
        .keep = dt_arguments_flag(call->args, "keep"),
        .tell = tell,
        .context = &to,
    };
    char version[] = "TAP version 14\n";
    dt_status st = DT_OK;

    if (reports == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    if (wish.how.here && wish.how.ranks > 0)
        DT_THROW(err, DT_ERR_USAGE, "--ranks: with --here the recipe says how many");
    DT_TRY(read_faults(&wish, call, err));
    dt_term_init(&to.term, STDOUT_FILENO);
    if (to.tap && !call->json)
        DT_TRY(dt_report_text(&(dt_strbuf){.data = version, .length = strlen(version)}, err));
    dt_interrupt_catch(); /* what runs is ended, and the folder removed */
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
    DT_RECIPE_OPTIONS("try with this change, as launch takes it"),
    {.name = "ranks",
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "0",
     .low = 0,
     .high = 64,
     .help = "processes of this machine that train; 0: two, or one where the recipe has no more"},
    {.name = "steps",
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "12",
     .low = 8,
     .high = 1000000,
     .help = "how many each run does"},
    {.name = "full",
     .kind = DT_OPTION_FLAG,
     .help = "the model and its batch as they are, instead of small ones"},
    {.name = "here",
     .kind = DT_OPTION_FLAG,
     .help = "on the recipe's own nodes and cards, with as many ranks as it has there"},
    {.name = "limit",
     .kind = DT_OPTION_NUMBER,
     .value = "SECONDS",
     .fallback = "120",
     .low = 1,
     .high = 1e6,
     .help = "a run that takes longer has failed"},
    {.name = "kill",
     .kind = DT_OPTION_LIST,
     .value = "rank=R@S",
     .help = "kill rank R after step S, and see that no bit is lost"},
    {.name = "hang",
     .kind = DT_OPTION_LIST,
     .value = "rank=R@S",
     .help = "stop rank R after step S, and see that it is noticed"},
    {.name = "slow",
     .kind = DT_OPTION_LIST,
     .value = "rank=R@SxN",
     .help = "make rank R N times as slow from step S on, and see that it is waited for"},
    {.name = "disk-full",
     .kind = DT_OPTION_LIST,
     .value = "rank=R@S",
     .help = "give rank R no room for files after step S, and see that the run continues"},
    {.name = "bitflip",
     .kind = DT_OPTION_LIST,
     .value = "rank=R@S",
     .help = "flip a bit of rank R's parameters after step S, and see that it is noticed"},
    {.name = "cut",
     .kind = DT_OPTION_LIST,
     .value = "node=N@S:Ts",
     .help =
         "cut the connection to node N (from 1) after step S for T seconds, and see that nothing "
         "is lost"},
    {.name = "tap", .kind = DT_OPTION_FLAG, .help = "print TAP version 14, a line a check"},
    {.name = "junit",
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "write JUnit XML there as well, which code hosts show"},
    {.name = "keep",
     .kind = DT_OPTION_FLAG,
     .help = "keep the folder of the runs, which stays by itself where a check fails"},
    {0},
};

const dt_command dt_command_smoke = {
    .name = "smoke",
    .summary = "try recipes in small on this machine, before they cost anything",
    .operands = "RECIPE...",
    .operands_min = 1,
    .operands_max = -1,
    .options = options,
    .notes =
        "Runs of the recipe on a few processes of this machine, with its strategy, data,\n"
        "precision and shape of schedule, a small model and few steps, through launch,\n"
        "supervisor, agent and engine, in a state folder of their own below TMPDIR. Checked is\n"
        "that it trains, is validated, makes text, takes the memory that was forecast, learns,\n"
        "agrees with one process, loses no bit when a rank is killed, and is stopped without a\n"
        "trace.\n"
        "\n"
        "0 where all is good, 1 where a check failed, 2 where a recipe cannot be read.\n"
        "docs/smoke.md has each check, and a job for CI.\n",
    .run = smoke,
};
