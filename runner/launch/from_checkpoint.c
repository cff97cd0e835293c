#include "runner/launch/existing_run.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "engine/checkpoint/checkpoint.h"
#include "runner/cli/program.h"
#include "runner/cli/report.h"
#include "runner/launch/preflight.h"
#include "runner/supervisor/folder/run_folder.h"
#include "runner/supervisor/folder/task_folder.h"
#include "runner/supervisor/supervisor.h"

const char *const dt_from_checkpoint_precisions[] = {"fp32", "bf16", NULL};

dt_status dt_from_checkpoint_ref(const char **run, const char **which, const char *ref, bool option,
                                 const dt_call *call, dt_error *err)
{
    const char *at = strrchr(ref, '@');
    const char *given = option ? dt_arguments_get(call->args, "checkpoint")->text : NULL;

    *run = ref;
    *which = given;
    if (at == NULL)
        return DT_OK;
    if (given != NULL)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "'%s' and --checkpoint both name a checkpoint; leave one out", ref);
    *which = at + 1;
    *run = dt_arena_strndup(call->arena, ref, (size_t)(at - ref));
    return DT_OK;
}

/* The newest checkpoint is read completely, to skip damaged ones: once, since it may take a second. */
dt_status dt_from_checkpoint_find(const char **path, dt_store *store, const dt_run *run,
                                  const char *which, const dt_call *call, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;

    DT_TRY(dt_task_refuse(run, "give a checkpoint", call->arena, err));
    st = dt_existing_run_checkpoint_path(path, store, run, which, call->arena, &problem);
    if (st == DT_ERR_NOT_FOUND && which == NULL)
        DT_THROW(err, DT_ERR_NOT_FOUND,
                 "run '%s' has no complete checkpoint: it is %s, and one is saved every"
                 " checkpoint.every steps and at the end",
                 run->id, dt_run_state_name(run->state));
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
out:
    return st;
}

/* --- the engine's arguments */

typedef struct arguments {
    const char **items; /* ends with NULL */
    size_t count;
    dt_arena *arena;
} arguments;

/* Options of generate and score that the engine does not have, or gets in another way. */
static const char *const only_dtrun[] = {
    "checkpoint", "help",  "hypothesis", "reference", "tokenize", "output",
    "force",      "ranks", "nodes",      "gpus",      "name",     "tag",
    "group",      "note",  "wait",       "detach",    NULL};

static bool is_in(const char *const *names, const char *name)
{
    for (size_t i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void add(arguments *out, const dt_option *option, const char *value)
{
    const char *name = dt_arena_printf(out->arena, "--%s", option->name);

    out->items[out->count++] = name;
    if (value != NULL)
        out->items[out->count++] = value;
}

static void add_option(arguments *out, const dt_option *option, const dt_value *value)
{
    if (option->kind == DT_OPTION_FLAG && value->given)
        add(out, option, NULL);
    else if (option->kind != DT_OPTION_FLAG && option->kind != DT_OPTION_LIST &&
             value->text != NULL)
        add(out, option, value->text);
    for (size_t i = 0; i < value->items_count; i++)
        add(out, option, value->items[i]);
}

/* Allocates room for all options and a few more arguments. */
static void open_arguments(arguments *out, const dt_call *call)
{
    const dt_arguments *args = call->args;
    size_t most = 8;

    for (size_t i = 0; i < args->options_count; i++)
        most += 2 * (1 + args->values[i].items_count);
    *out = (arguments){.arena = call->arena};
    out->items = dt_arena_alloc_array(call->arena, most, sizeof(*out->items));
    memset(out->items, 0, most * sizeof(*out->items));
}

static void add_options(arguments *out, const dt_call *call)
{
    const dt_arguments *args = call->args;

    for (size_t i = 0; i < args->options_count; i++)
        if (!is_in(only_dtrun, args->options[i].name))
            add_option(out, &args->options[i], &args->values[i]);
}

/* Whether the command reads conversations, with the template of the run. */
static bool reads_chats(const dt_call *call)
{
    const dt_arguments *args = call->args;

    if (strcmp(args->command->name, "chat") == 0)
        return true;
    return strcmp(args->command->name, "generate") == 0 && dt_arguments_get(args, "chat")->given;
}

static dt_status list_arguments(arguments *out, const dt_run *run, const char *checkpoint,
                                const dt_call *call, dt_error *err)
{
    const char *origin;
    dt_status st = DT_OK;

    open_arguments(out, call);
    DT_TRY(dt_program_engine(&out->items[out->count++], call->arena, err));
    out->items[out->count++] = call->args->command->name;
    out->items[out->count++] = "--checkpoint";
    out->items[out->count++] = checkpoint;
    add_options(out, call);
    if (reads_chats(call)) {
        DT_TRY(dt_run_path(&origin, run->id, DT_WEIGHTS_ORIGIN, call->arena, err));
        out->items[out->count++] = "--template";
        out->items[out->count++] = origin;
    }
    if (call->json && strcmp(call->args->command->name, "chat") == 0)
        out->items[out->count++] = "--json";
out:
    return st;
}

/* --- the call */

/* For the engine, which inherits the environment of this process. */
static void set_threads_up(void)
{
    if (dt_omp_spin_is_open())
        setenv(DT_OMP_SPIN, DT_OMP_SPIN_COUNT, 1);
}

static dt_status show(void *context, const char *bytes, size_t length, dt_error *err)
{
    dt_strbuf part;
    dt_status st;

    dt_strbuf_init(&part);
    dt_strbuf_add(&part, bytes, length);
    dt_strbuf_add(context, bytes, length);
    st = dt_report_data(&part, err);
    dt_strbuf_release(&part);
    return st;
}

static dt_status keep(void *context, const char *bytes, size_t length, dt_error *err)
{
    (void)err;
    dt_strbuf_add(context, bytes, length);
    return DT_OK;
}

static dt_status add_run(json_t **object, const dt_strbuf *text, const dt_run *run, dt_error *err)
{
    json_t *from_engine = NULL;
    dt_status st = DT_OK;

    /* a model can generate any character */
    DT_TRY(dt_json_parse_with_nul(&from_engine, text->data, text->length, "dtrun-engine", err));
    *object = dt_report_object();
    json_object_set_new(*object, "run", json_string(run->id));
    json_object_update_missing(*object, from_engine);
out:
    json_decref(from_engine);
    return st;
}

dt_status dt_from_checkpoint_call(json_t **object, dt_strbuf *text, const dt_run *run,
                                  const char *checkpoint, bool quiet, const dt_call *call,
                                  dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf errors;
    int exit_code = 0;
    arguments argv;

    *object = NULL;
    dt_strbuf_init(&errors);
    DT_TRY(list_arguments(&argv, run, checkpoint, call, err));
    set_threads_up();
    DT_TRY(dt_child_run(&exit_code,
                        &(dt_child_call){.argv = argv.items,
                                         .take = call->json || quiet ? keep : show,
                                         .context = text,
                                         .errors = &errors,
                                         .follows = true,     /* it may occupy a GPU */
                                         .foreground = true}, /* may read stdin, or /dev/fd/N */
                        err));
    DT_TRY(dt_program_engine_status(exit_code, &errors, err));
    if (call->json) {
        DT_TRY(add_run(object, text, run, err));
        dt_strbuf_reset(text);
    }
out:
    dt_strbuf_release(&errors);
    return st;
}

dt_status dt_from_checkpoint_talk(const dt_run *run, const char *checkpoint, const dt_call *call,
                                  dt_error *err)
{
    dt_child_spec spec = {.in = DT_CHILD_SHARE,
                          .out = DT_CHILD_SHARE,
                          .errors = DT_CHILD_SHARE,
                          .follows = true,
                          .foreground = true};
    struct sigaction before;
    dt_child child = {0};
    dt_status st = DT_OK;
    sigset_t mask, interrupt;
    arguments argv;
    int code = 0;

    DT_TRY(list_arguments(&argv, run, checkpoint, call, err));
    spec.argv = argv.items;
    set_threads_up();
    /* Ctrl-C is for the engine, which shares the terminal: it ends an answer, not the conversation. It may come as soon
     * as the engine has started, which must not start with the signal ignored: this process blocks it until then. */
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, &mask);
    st = dt_child_start(&child, &spec, err);
    sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_IGN}, &before);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    while (st == DT_OK && !dt_child_wait(&child, &code, 1.0))
        ;
    sigaction(SIGINT, &before, NULL);
    if (st == DT_OK && code != 0)
        st = DT_FAIL(err, code == 2 ? DT_ERR_USAGE : DT_ERR_IO,
                     "the engine ended with exit code %d", code);
out:
    dt_child_end(&child);
    return st;
}
