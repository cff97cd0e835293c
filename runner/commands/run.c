/* dtrun run: launches a program on all nodes without a recipe file. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/names.h"
#include "runner/cli/command.h"
#include "runner/cli/read_recipe.h"
#include "runner/cli/report.h"
#include "runner/cli/tags.h"
#include "runner/convert/tool.h"
#include "runner/gc/gc.h"
#include "runner/launch/estimate.h"
#include "runner/launch/nodes.h"
#include "runner/launch/preflight.h"
#include "runner/queue/queue.h"
#include "runner/stop/stop.h"
#include "runner/view/follow/follow.h"

/* --- the recipe */

/* Appends `KEY: VALUE`; the text is YAML because it is JSON. */
static void add_text(dt_strbuf *out, const char *key, const char *text)
{
    json_t *json = dt_json_text(text);

    dt_strbuf_add_fmt(out, "%s: ", key);
    dt_json_write(out, json);
    dt_strbuf_add_char(out, '\n');
    json_decref(json);
}

static bool is_script(const char *word)
{
    size_t length = strlen(word);

    return length > 3 &&
           (strcmp(word + length - 3, ".py") == 0 || strcmp(word + length - 3, ".sh") == 0);
}

/* Returns the name of the script among the words, else that of the program, as far as a run can have it. */
static const char *name_of(const dt_call *call)
{
    const char *word = call->args->operands[0], *slash, *name;
    size_t length;

    for (int i = call->args->operands_count - 1; i >= 0; i--)
        if (is_script(call->args->operands[i]))
            word = call->args->operands[i];
    slash = strrchr(word, '/');
    name = slash != NULL ? slash + 1 : word;
    length = strlen(name) - (is_script(name) ? 3 : 0);
    name = dt_arena_strndup(call->arena, name, length);
    return dt_run_name_is_valid(name) ? name : "run";
}

/* Any text but a kind is a pattern. */
static void write_metrics(dt_strbuf *out, const dt_value *given)
{
    const char *text = given->given ? given->text : "json";
    json_t *pattern;

    if (strchr(text, '(') == NULL) {
        add_text(out, "metrics", text);
        return;
    }
    pattern = json_pack("{s:o}", "pattern", dt_json_text(text));
    dt_strbuf_add_str(out, "metrics: ");
    dt_json_write(out, pattern);
    dt_strbuf_add_char(out, '\n');
    json_decref(pattern);
}

static void write_recipe(dt_strbuf *out, const dt_call *call)
{
    const dt_value *name = dt_arguments_get(call->args, "name");
    const dt_value *gpus = dt_arguments_get(call->args, "gpus");
    const dt_value *processes = dt_arguments_get(call->args, "processes");
    const char *nodes, *given = dt_arguments_get(call->args, "nodes")->text;
    json_t *words = json_array();

    dt_nodes_option(&nodes, given, call->arena);
    add_text(out, "name", name->given ? name->text : name_of(call));
    if (nodes != NULL && nodes[0] == '[')
        dt_strbuf_add_fmt(out, "nodes: %s\n", nodes);
    else if (nodes != NULL)
        add_text(out, "nodes", nodes);
    if (gpus->given)
        dt_strbuf_add_fmt(out, "gpus: %s\n", gpus->text);
    if (processes->given)
        add_text(out, "processes", processes->text);
    for (int i = 0; i < call->args->operands_count; i++)
        json_array_append_new(words, dt_json_text(call->args->operands[i]));
    dt_strbuf_add_str(out, "command: ");
    dt_json_write(out, words);
    dt_strbuf_add_char(out, '\n');
    write_metrics(out, dt_arguments_get(call->args, "metrics"));
    json_decref(words);
}

/* --- the run */

static dt_status print_dry_run(const dt_preflight *flight, const char *text, dt_call *call,
                               dt_error *err)
{
    dt_strbuf out;
    dt_status st = DT_OK;

    dt_strbuf_init(&out);
    DT_TRY(dt_dry_run_print_command(flight, call, err));
    if (!call->json) {
        dt_strbuf_add_fmt(&out, "\nas a recipe:\n%s", text);
        DT_TRY(dt_report_text(&out, err));
    }
out:
    dt_strbuf_release(&out);
    return st;
}

/* Warns of words that look like secrets, since the history keeps the command. */
static void warn_of_secrets(const dt_call *call)
{
    const dt_arguments *args = call->args;

    for (int i = 0; i < args->operands_count; i++) {
        const char *next = i + 1 < args->operands_count ? args->operands[i + 1] : NULL;
        const char *reason = dt_secret_reason(args->operands[i], next, call->arena);

        if (reason != NULL)
            dt_report_note(call, "warning: %s", reason);
    }
}

static dt_status run(dt_call *call, dt_error *err)
{
    dt_recipe_source source = {.path = "dtrun-run", .unwritten = true};
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_labels labels = {0};
    dt_preflight flight;
    dt_recipe recipe;
    const char *id, *nodes = NULL;
    dt_queue_wish wish;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_follow_options_check(call, err));
    DT_TRY(dt_quotas_check(err));
    DT_TRY(dt_label_options_read(&labels, call, err));
    DT_TRY(dt_queue_wish_read(&wish, call, err));
    warn_of_secrets(call);
    write_recipe(&text, call);
    source.text = text.data;
    DT_TRY(dt_read_recipe_text(&recipe, &source, call, err));
    if (wish.queues)
        DT_TRY(dt_queue_take_recipe(&nodes, &wish, &recipe, &source, call, err));
    if (nodes != NULL) {
        dt_add_set(call, nodes);
        DT_TRY(dt_read_recipe_text(&recipe, &source, call, err));
    }
    DT_TRY(dt_preflight_check(&flight, &recipe, &source, call->arena, err));
    DT_TRY(dt_nodes_check(&flight, recipe.name, call, err));
    if (dt_arguments_flag(call->args, "dry-run")) {
        DT_TRY(print_dry_run(&flight, text.data, call, err));
        goto out;
    }
    dt_interrupt_catch(); /* from here on Ctrl-C never leaves half of a run */
    DT_TRY(dt_store_open(&store, NULL, err));
    if (!wish.queues)
        (void)dt_orphans_settle(store, flight.plan.node_names, flight.plan.node_count, call->arena,
                                NULL);
    DT_TRY(dt_queue_launch(&id, store, &source, &labels, &wish, NAN, &flight, call, err));
    DT_TRY(dt_follow_as_asked(store, id, 0, call, err));
out:
    dt_store_close(store);
    dt_strbuf_release(&text);
    return st;
}

static const dt_option options[] = {
    {.name = "nodes",
     .kind = DT_OPTION_TEXT,
     .value = "LIST",
     .help = "machines, as in gpu[01-04],big or slurm:4 (default: this one)"},
    {.name = "gpus",
     .kind = DT_OPTION_INT,
     .value = "N",
     .low = 0,
     .high = 1024,
     .help = "GPUs per node (default: all)"},
    {.name = "processes",
     .kind = DT_OPTION_TEXT,
     .value = "N",
     .help = "processes per node: gpu (default), node or a number"},
    {.name = "metrics",
     .kind = DT_OPTION_TEXT,
     .value = "PATTERN",
     .help = "json (default), tensorboard, none, or 'step (?P<step>\\d+) loss (?P<loss>\\S+)'"},
    {.name = "name",
     .kind = DT_OPTION_TEXT,
     .value = "NAME",
     .help = "name of the run (default: that of the script)"},
    DT_RECIPE_OPTIONS("set a value of the recipe, as in --set failure.max_restarts=2"),
    DT_LABEL_OPTIONS,
    DT_FOLLOW_OPTIONS,
    DT_QUEUE_OPTIONS,
    {.name = "dry-run",
     .letter = 'n',
     .kind = DT_OPTION_FLAG,
     .help = "check everything, print the recipe, start nothing"},
    {0},
};

const dt_command dt_command_run = {
    .name = "run",
    .summary = "run any program on all nodes, supervised",
    .operands = "PROGRAM...",
    .takes = DT_OPERAND_TEXT,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 1,
    .operands_max = -1,
    .options = options,
    .notes =

        "Everything after -- is the program and its arguments. It runs in the current folder,\n"
        "with the environment that torchrun sets. Nodes that do not share the folder get a\n"
        "copy of it, without what git ignores and .dtrunignore names; --set workdir.ship=never\n"
        "sends nothing. This is 'dtrun launch' with a recipe that has only a 'command'\n"
        "(docs/command.md): --dry-run prints it. JSON lines on stdout with a \"step\" are\n"
        "metrics. The exit code is that of the run.\n",
    .run = run,
};
