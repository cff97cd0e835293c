/* preflight: downloads data that a recipe names by URL, and checks data, placement, memory, programs and
 * disk before a run exists. */
#include "runner/launch/preflight.h"

#include <string.h>

#include "base/dirs.h"
#include "base/names.h"
#include "base/resources.h"
#include "engine/data/data.h"
#include "engine/data/files.h"
#include "engine/evaluation/evaluation.h"
#include "recipes/architecture/architecture.h"
#include "recipes/fields/nodes.h"
#include "runner/cli/program.h"
#include "runner/cli/report.h"
#include "runner/corpus/corpus.h"
#include "runner/fetch/fetch.h"
#include "runner/launch/nodes.h"
#include "runner/supervisor/supervisor.h"
#include "runner/term/term.h"

static void report_download(void *context, const char *text)
{
    dt_report_say("%s", text);
}

static dt_status fetch_list(dt_string_list *list, dt_arena *arena, dt_error *err)
{
    static const dt_fetch_progress progress = {.progress = report_download};
    const char **items = dt_arena_alloc_array(arena, (size_t)list->count + 1, sizeof(items[0]));
    dt_status st = DT_OK;

    for (int64_t i = 0; i < list->count; i++) {
        items[i] = list->items[i];
        if (strstr(items[i], "://") != NULL)
            DT_TRY(dt_fetch(&items[i], items[i], &progress, arena, err));
    }
    list->items = items;
out:
    return st;
}

dt_status dt_fetch_recipe(dt_recipe *out, const dt_recipe *recipe, dt_arena *arena, dt_error *err)
{
    dt_status st;

    *out = *recipe;
    DT_TRY(fetch_list(&out->data.train, arena, err));
    DT_TRY(fetch_list(&out->data.validation, arena, err));
out:
    return st;
}

/* Parameters and two moments, fp32. */
enum { CHECKPOINT_BYTES_PER_PARAMETER = 12 };
/* Space for store, journals and logs of a long run. */
enum { BOOKKEEPING_BYTES = 16 << 20 };

void dt_preflight_each_warning(const char *warnings,
                               void (*take)(const char *line, size_t length, void *context),
                               void *context)
{
    while (warnings != NULL && *warnings != '\0') {
        size_t length = strcspn(warnings, "\n");

        take(warnings, length, context);
        warnings += length + (warnings[length] == '\n');
    }
}

/* Checks the webhook before the run, not at its end. */
static dt_status check_webhook(const dt_recipe *recipe, dt_error *err)
{
    dt_strbuf url;
    dt_status st;

    dt_strbuf_init(&url);
    st = dt_notify_expand(&url, recipe->notify.webhook, err);
    dt_strbuf_release(&url);
    return st;
}

static int64_t fullest_node(const dt_plan *plan)
{
    int64_t most = 0;

    for (int64_t r = 0; r < plan->world_size; r++)
        if (plan->ranks[r].local_rank + 1 > most)
            most = plan->ranks[r].local_rank + 1;
    return most;
}

/* Counts the ranks on this machine's processors; the engine checks GPU memory itself. */
static int64_t ranks_here(const dt_plan *plan)
{
    int64_t count = 0;

    for (int64_t r = 0; r < plan->world_size; r++)
        count += dt_node_is_here(plan->node_names[plan->ranks[r].node]) &&
                 strcmp(plan->ranks[r].device, DT_DEVICE_CPU) == 0;
    return count;
}

/* A save needs space before an older checkpoint is removed. */
static dt_status check_disk(const dt_preflight *flight, dt_arena *arena, dt_error *err)
{
    int64_t wanted = BOOKKEEPING_BYTES;
    char need[DT_FORMAT_SIZE], have[DT_FORMAT_SIZE], parameters[DT_FORMAT_SIZE];
    const char *state;
    int64_t free_bytes;
    dt_status st = DT_OK;

    DT_TRY(dt_supervisor_check_limits(err));
    DT_TRY(dt_dir_make(&state, DT_DIR_STATE, arena, err));
    DT_TRY(dt_resources_disk(&free_bytes, state, err));
    wanted += flight->memory.trained_count * CHECKPOINT_BYTES_PER_PARAMETER;
    if (free_bytes < wanted)
        DT_THROW(
            err, DT_ERR_IO,
            "not enough space in '%s': %s free, but one checkpoint (%s parameters x %d bytes) and "
            "the logs need %s; free some, or set XDG_STATE_HOME to a larger disk",
            state, dt_format_bytes(have, sizeof(have), (double)free_bytes),
            dt_format_count(parameters, sizeof(parameters), (double)flight->memory.trained_count),
            CHECKPOINT_BYTES_PER_PARAMETER, dt_format_bytes(need, sizeof(need), (double)wanted));
out:
    return st;
}

static void report_preparation(const char *text)
{
    dt_report_say("%s", text);
}

static void report_warning(const char *line, size_t length, void *unused)
{
    (void)unused;
    dt_report_say("warning: %.*s", (int)length, line);
}

static void report_prepared(const char *name, const dt_prepared *made)
{
    dt_strbuf text;

    if (made->files.count == 0 || made->found)
        return;
    dt_strbuf_init(&text);
    dt_prepared_describe(&text, made);
    dt_report_say("%s: %s", name, text.data);
    dt_strbuf_release(&text);
}

/* Tokenizes text if the run will be started or was trained on it: this can take an hour. */
static dt_status prepare_text(dt_preflight *out, dt_prepared *train, dt_prepared *validation,
                              dt_recipe *here, bool make, dt_arena *arena, dt_error *err)
{
    dt_preflight_chats *chats;
    dt_status st = DT_OK;

    DT_TRY(dt_prepare_recipe(here, make, report_preparation, train, validation, arena, err));
    out->prompts = train->prompts;
    out->prompt_count = train->prompt_count;
    report_prepared("data.train", train);
    report_prepared("data.validation", validation);
    out->warnings = train->warnings;
    if (make)
        dt_preflight_each_warning(out->warnings, report_warning, NULL);
    if (train->chats && (train->files.count > 0 || train->rows != NULL)) {
        out->chats = chats = dt_arena_alloc(arena, sizeof(*chats));
        *chats = (dt_preflight_chats){train->facts, train->files.count > 0 || train->counted};
    }
out:
    return st;
}

/* Counts files and bytes; dt_dataset_check reports problems. */
static void count_files(dt_preflight *out, const dt_recipe *here, dt_arena *arena)
{
    bool rows = dt_architecture_find(here->model.kind)->reads_rows;
    dt_tokens_kind kind = rows ? DT_TOKENS_ROWS : dt_tokens_kind_of(here);
    dt_data_files files;

    if (dt_data_files_find(&files, &here->data.train, kind, "data.train", arena, NULL) != DT_OK)
        return;
    out->data_files = files.count;
    out->data_bytes = files.bytes;
    out->data_kind = dt_tokens_kind_name(files.items[0].kind);
}

/* What is known of conversations without files. */
static void take_rows(dt_dataset_facts *out, const dt_prepared *train, const dt_prepared *valid,
                      int64_t parts)
{
    if (out->chats.rows > 0 || train->rows == NULL)
        return;
    out->chats = train->rows[0];
    out->valid_chats = valid->rows != NULL ? valid->rows[0] : train->rows[1];
    if (!train->counted)
        return;
    for (int64_t i = 0; train->parts != NULL && i < parts; i++)
        out->parts[i] = train->parts[i];
    out->train_packs = out->chats.rows;
    out->train_tokens = out->chats.row_tokens;
}

static dt_status check_data(dt_preflight *out, dt_recipe *here, const dt_recipe *recipe, bool make,
                            dt_arena *arena, dt_error *err)
{
    dt_prepared train, validation;
    dt_status st = DT_OK;

    DT_TRY(dt_fetch_recipe(here, recipe, arena, err));
    count_files(out, here, arena);
    DT_TRY(prepare_text(out, &train, &validation, here, make, arena, err));
    if (here->data.tokens == DT_TOKENS_PAIRS) /* their files have several formats */
        count_files(out, here, arena);
    DT_TRY(dt_dataset_check(&out->data, here, NULL, err));
    take_rows(&out->data, &train, &validation, here->data.mixture.count);
    if (make && out->chats != NULL)
        dt_report_say("%s", dt_preflight_chats_text(out, arena));
    if (make && out->data.too_long > 0)
        dt_report_say("%lld sentence pairs are longer than batch.tokens or batch.max_tokens: they "
                      "are left out",
                      (long long)out->data.too_long);
out:
    return st;
}

/* Reads the files of evaluation tasks as the ranks will, once the model's kind can have tasks. */
static dt_status check_tasks(const dt_recipe *recipe, dt_error *err)
{
    const dt_architecture *kind = dt_architecture_find(recipe->model.kind);
    const dt_string_list *files = &recipe->evaluate.tasks;
    dt_evaluation_task *tasks;
    dt_status st = DT_OK;
    dt_strbuf lines;
    dt_arena arena;

    dt_strbuf_init(&lines);
    dt_arena_init(&arena, 0);
    if (files->count > 0 && (kind->reads_rows || kind->reads_pairs))
        DT_THROW(err, DT_ERR_RECIPE, "tasks need a model that predicts the next token of a text");
    DT_TRY(dt_evaluation_read(&lines, &tasks, files->items, (size_t)files->count, &arena, err));
    for (int64_t i = 0; i < files->count; i++)
        DT_TRY(dt_evaluation_check_divided(&tasks[i], recipe->tensor.size, err));
out:
    dt_strbuf_release(&lines);
    dt_arena_release(&arena);
    if (st == DT_ERR_USAGE || st == DT_ERR_NOT_FOUND)
        st = DT_ERR_RECIPE;
    if (st != DT_OK && err != NULL)
        err->code = st;
    if (st != DT_OK)
        dt_error_prefix(err, "evaluate.tasks");
    return st;
}

/* Checks that ranks can divide the vocabulary of the data; the rule 'tensor' has checked the recipe's sizes. */
static dt_status check_division(const dt_recipe *recipe, int64_t vocab, dt_error *err)
{
    const dt_divided_size *size;
    dt_model_config config;

    if (recipe->task != DT_TASK_TRAIN || recipe->tensor.size == 1)
        return DT_OK;
    dt_model_config_make(&config, recipe, vocab);
    size = dt_model_undivided(&config);
    if (size == NULL)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "'%s' %lld (with padding) is not a multiple of 'tensor' %lld: use a 'tensor' "
                   "that divides it, such as 2 or 4",
                   size->path, (long long)size->of(&config), (long long)recipe->tensor.size);
}

/* Makes the plan and its memory needs, after the data, whose facts are in *out. gpus: per node;
 * 0: those that are found. */
static dt_status plan_recipe(dt_preflight *out, const dt_recipe *here, int64_t gpus,
                             dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_memory_ranks ranks;

    DT_TRY(check_division(here, out->data.vocab, err));
    DT_TRY(dt_nodes_plan(&out->plan, here, arena, err));
    out->plan.prompts = out->prompts;
    out->plan.prompt_count = out->prompt_count;
    DT_TRY(gpus > 0 ? dt_placement_imagine(&out->plan, gpus, arena, err)
                    : dt_placement_assign(&out->plan, NULL, arena, err));
    out->ranks_on_node = fullest_node(&out->plan);
    if (here->task == DT_TASK_COMMAND)
        return DT_OK; /* its memory and its data are not known */
    ranks = dt_plan_memory_ranks(&out->plan, 0);
    dt_memory_estimate(&out->memory, here, out->data.vocab, &ranks);
    out->tokens_per_step = dt_preflight_items(out);
out:
    return st;
}

static dt_status look_at_recipe(dt_preflight *out, const dt_recipe *recipe,
                                const dt_recipe_source *source, bool make, int64_t gpus,
                                dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_recipe here;

    *out = (dt_preflight){.recipe = *recipe, .origins = source != NULL ? source->origins : NULL};
    if (recipe->task == DT_TASK_COMMAND)
        return plan_recipe(out, recipe, gpus, arena, err);
    st = check_data(out, &here, recipe, make, arena, err);
    if (st == DT_OK)
        st = check_tasks(recipe, err);
    if (st == DT_ERR_RECIPE && source != NULL && err != NULL)
        dt_recipe_locate_data(err, source, arena);
    DT_TRY(st);
    DT_TRY(plan_recipe(out, &here, gpus, arena, err));
    DT_TRY(dt_preflight_check_steps(out, arena, err));
out:
    return st;
}

dt_status dt_preflight_recipe(dt_preflight *out, const dt_recipe *recipe,
                              const dt_recipe_source *source, dt_arena *arena, dt_error *err)
{
    return look_at_recipe(out, recipe, source, false, 0, arena, err);
}

dt_status dt_preflight_with_gpus(dt_preflight *out, const dt_recipe *recipe,
                                 const dt_recipe_source *source, int64_t gpus, dt_arena *arena,
                                 dt_error *err)
{
    if (recipe->gpus == 0)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "'gpus' is 0 in the recipe, so no GPU is used (--set gpus=%lld uses them)",
                       (long long)gpus);
    return look_at_recipe(out, recipe, source, false, recipe->gpus > gpus ? recipe->gpus : gpus,
                          arena, err);
}

dt_status dt_preflight_without_data(dt_preflight *out, const dt_recipe *recipe, dt_arena *arena,
                                    dt_error *err)
{
    *out = (dt_preflight){.recipe = *recipe};
    out->data.vocab = recipe->model.vocab;
    return plan_recipe(out, recipe, 0, arena, err);
}

bool dt_preflight_fits_here(dt_preflight *flight, const dt_recipe *recipe, dt_error *err)
{
    dt_memory_ranks ranks = dt_plan_memory_ranks(&flight->plan, 0);

    return recipe->task == DT_TASK_COMMAND || ranks_here(&flight->plan) == 0 ||
           dt_resources_memory(&flight->available_bytes, NULL) != DT_OK ||
           dt_memory_check(recipe, flight->data.vocab, &ranks, ranks_here(&flight->plan),
                           flight->available_bytes, "localhost", err) == DT_OK;
}

dt_status dt_preflight_check(dt_preflight *out, const dt_recipe *recipe,
                             const dt_recipe_source *source, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_memory_ranks ranks;
    const char *program;

    DT_TRY(look_at_recipe(out, recipe, source, true, 0, arena, err));
    DT_TRY(dt_resources_memory(&out->available_bytes, err));
    ranks = dt_plan_memory_ranks(&out->plan, 0);
    if (ranks_here(&out->plan) == 0) /* nodes.h checks other machines */
        out->available_bytes = 0;
    else if (recipe->task != DT_TASK_COMMAND)
        DT_TRY(dt_memory_check(recipe, out->data.vocab, &ranks, ranks_here(&out->plan),
                               out->available_bytes, "localhost", err));
    DT_TRY(check_webhook(recipe, err));
    DT_TRY(dt_program_agent(&program, arena, err));
    if (recipe->task != DT_TASK_COMMAND)
        DT_TRY(dt_program_engine(&program, arena, err));
    for (int64_t node = 0; node < out->plan.node_count; node++)
        if (!dt_node_is_here(out->plan.node_names[node]))
            DT_TRY(dt_dir_program(&program, "dtrun-reach", "DTRUN_REACH", arena, err));
    DT_TRY(check_disk(out, arena, err));
out:
    return st;
}
