#include "runner/launch/dry_run.h"

#include <string.h>
#include <unistd.h>

#include "recipes/architecture/architecture.h"
#include "recipes/fields/task_fields.h"
#include "runner/cli/report.h"
#include "runner/term/format.h"
#include "runner/term/table.h"

static json_t *memory_to_json(const dt_preflight *flight)
{
    const dt_memory *memory = &flight->memory;

    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "parameters_bytes",
        (json_int_t)memory->parameters_bytes, "gradients_bytes",
        (json_int_t)memory->gradients_bytes, "optimizer_bytes", (json_int_t)memory->optimizer_bytes,
        "activations_bytes", (json_int_t)memory->activations_bytes, "buffers_bytes",
        (json_int_t)memory->buffers_bytes, "rank_bytes", (json_int_t)memory->total_bytes,
        "available_bytes",
        flight->available_bytes > 0 ? json_integer(flight->available_bytes) : json_null());
}

static dt_status print_json(const dt_fit *fit, dt_error *err)
{
    const dt_preflight *flight = fit->flight;
    const dt_architecture *kind = dt_architecture_find(flight->plan.recipe.model.kind);
    int64_t steps = dt_preflight_steps(flight, NULL);
    json_t *object = dt_report_object();

    json_object_set_new(object, "parameters", json_integer(flight->memory.parameter_count));
    json_object_set_new(object, "vocab",
                        flight->data.vocab > 0 && !kind->reads_rows
                            ? json_integer(flight->data.vocab)
                            : json_null());
    json_object_set_new(object, "item", json_string(kind->item));
    json_object_set_new(object, "steps", steps > 0 ? json_integer(steps) : json_null());
    json_object_set_new(object, "tokens_per_step", json_integer(flight->tokens_per_step));
    json_object_set_new(object, "memory", memory_to_json(flight));
    json_object_set_new(object, "card",
                        fit->gpu != NULL ? json_string(fit->gpu->name) : json_null());
    dt_fit_to_json(object, fit);
    json_object_set_new(object, "plan", dt_plan_to_json(&flight->plan));
    return dt_report_json(object, err);
}

/* "4 sequences x 32 tokens", "64 rows" */
static const char *batch_text(dt_arena *arena, const dt_recipe *recipe)
{
    if (dt_architecture_find(recipe->model.kind)->reads_rows)
        return dt_arena_printf(arena, "%lld rows", (long long)recipe->batch.sequences);
    if (recipe->batch.max_tokens > 0)
        return dt_arena_printf(arena, "pairs of at most %lld tokens",
                               (long long)recipe->batch.max_tokens);
    return dt_arena_printf(arena, "%lld sequences x %lld tokens",
                           (long long)recipe->batch.sequences, (long long)recipe->batch.tokens);
}

static void add_summary(dt_strbuf *out, const dt_term *term, const dt_fit *fit, dt_arena *arena)
{
    static const dt_table_column columns[] = {{NULL, false}, {NULL, false}};
    const dt_preflight *flight = fit->flight;
    const dt_recipe *recipe = &flight->plan.recipe;
    const dt_architecture *kind = dt_architecture_find(recipe->model.kind);
    int64_t steps = dt_preflight_steps(flight, NULL);
    int64_t ranks = dt_preflight_replicas(flight);
    char text[DT_FORMAT_SIZE], whole[DT_FORMAT_SIZE];
    dt_table table;

    dt_table_init(&table, columns, 2, arena);
    dt_table_add(&table, DT_STYLE_DIM, "parameters");
    dt_table_add(&table, DT_STYLE_PLAIN, "%s",
                 dt_format_count(text, sizeof(text), (double)flight->memory.parameter_count));
    dt_table_add(&table, DT_STYLE_DIM, "steps");
    if (steps > 0)
        dt_table_add(&table, DT_STYLE_PLAIN, "%s", dt_format_whole(text, sizeof(text), steps));
    else
        dt_table_add(&table, DT_STYLE_PLAIN, "%s epochs (the data determine the number of steps)",
                     dt_format_whole(text, sizeof(text), recipe->schedule.epochs));
    dt_table_add(&table, DT_STYLE_DIM, "%ss per step", kind->item);
    dt_table_add(&table, DT_STYLE_PLAIN,
                 recipe->batch.max_tokens > 0 ? "about %s: %s x %lld accumulated x %lld rank%s"
                                              : "%s = %s x %lld accumulated x %lld rank%s",
                 dt_format_whole(text, sizeof(text), flight->tokens_per_step),
                 batch_text(arena, recipe), (long long)recipe->batch.accumulate, (long long)ranks,
                 ranks == 1 ? "" : "s");
    if (steps > 0) {
        dt_table_add(&table, DT_STYLE_DIM, "total %ss", kind->item);
        dt_table_add(
            &table, DT_STYLE_PLAIN, "%s",
            dt_format_count(whole, sizeof(whole), (double)flight->tokens_per_step * (double)steps));
    }
    dt_fit_add(&table, fit);
    dt_table_write(out, &table, term, 2);
}

static void add_ranks(dt_strbuf *out, const dt_term *term, const dt_plan *plan, dt_arena *arena)
{
    static const dt_table_column columns[] = {
        {"rank", true}, {"node", false}, {"device", false}, {"threads", true}};
    dt_table table;

    dt_table_init(&table, columns, 4, arena);
    for (int64_t r = 0; r < plan->world_size; r++) {
        const dt_plan_rank *rank = &plan->ranks[r];
        dt_table_add(&table, DT_STYLE_PLAIN, "%lld", (long long)r);
        dt_table_add(&table, DT_STYLE_PLAIN, "%s", plan->node_names[rank->node]);
        dt_table_add(&table, DT_STYLE_PLAIN, "%s", rank->device);
        dt_table_add(&table, DT_STYLE_PLAIN, "%lld", (long long)rank->threads);
    }
    dt_table_write(out, &table, term, 2);
}

static void add_title(dt_strbuf *out, const dt_term *term, const dt_preflight *flight)
{
    dt_term_add(out, term, DT_STYLE_BOLD, "%s", flight->plan.recipe.name);
    dt_term_add(out, term, DT_STYLE_DIM, " would be launched as follows; nothing was started\n\n");
}

static dt_status print_task_json(const dt_preflight *flight, dt_error *err)
{
    const dt_recipe *recipe = &flight->plan.recipe;
    json_t *object = dt_report_object();

    json_object_set_new(object, "task", json_string(dt_task_name(recipe->task)));
    json_object_set_new(object, "run", json_string(flight->plan.task.run));
    json_object_set_new(object, "lines", json_integer(flight->plan.task.lines));
    json_object_set_new(object, "parameters", json_integer(flight->memory.parameter_count));
    json_object_set_new(object, "ranks", json_integer(flight->plan.world_size));
    json_object_set_new(object, "recipe", dt_recipe_to_json(recipe));
    return dt_report_json(object, err);
}

dt_status dt_dry_run_print_task(const dt_preflight *flight, const dt_call *call, dt_error *err)
{
    static const dt_table_column columns[] = {{NULL, false}, {NULL, false}};
    const dt_plan_task *task = &flight->plan.task;
    char number[DT_FORMAT_SIZE];
    dt_table table;
    dt_strbuf text;
    dt_status st;
    dt_term term;

    if (call->json)
        return print_task_json(flight, err);
    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    add_title(&text, &term, flight);
    dt_table_init(&table, columns, 2, call->arena);
    dt_table_add(&table, DT_STYLE_DIM, "task");
    dt_table_add(&table, DT_STYLE_PLAIN, "%s", dt_task_name(flight->plan.recipe.task));
    dt_table_add(&table, DT_STYLE_DIM, "with a checkpoint of");
    dt_table_add(&table, DT_STYLE_PLAIN, "run %s", task->run);
    dt_table_add(&table, DT_STYLE_DIM, "parameters");
    dt_table_add(&table, DT_STYLE_PLAIN, "%s",
                 dt_format_count(number, sizeof(number), (double)flight->memory.parameter_count));
    dt_table_add(&table, DT_STYLE_DIM, "lines");
    dt_table_add(&table, DT_STYLE_PLAIN, "%s",
                 dt_format_whole(number, sizeof(number), task->lines));
    dt_table_write(&text, &table, &term, 2);
    dt_strbuf_add_char(&text, '\n');
    add_ranks(&text, &term, &flight->plan, call->arena);
    st = dt_report_styled(&text, err);
    dt_strbuf_release(&text);
    return st;
}

/* --- a command */

static dt_status print_command_json(const dt_preflight *flight, dt_error *err)
{
    const dt_recipe *recipe = &flight->plan.recipe;
    json_t *object = dt_report_object(), *words = json_array();

    for (int64_t i = 0; i < recipe->command.count; i++)
        json_array_append_new(words, dt_json_text(recipe->command.items[i]));
    json_object_set_new(object, "task", json_string(dt_task_name(recipe->task)));
    json_object_set_new(object, "command", words);
    json_object_set_new(object, "workdir", dt_json_text(recipe->workdir.folder));
    json_object_set_new(object, "plan", dt_plan_to_json(&flight->plan));
    return dt_report_json(object, err);
}

dt_status dt_dry_run_print_command(const dt_preflight *flight, const dt_call *call, dt_error *err)
{
    static const dt_table_column columns[] = {{NULL, false}, {NULL, false}};
    const dt_recipe *recipe = &flight->plan.recipe;
    dt_strbuf text, words;
    dt_table table;
    dt_status st;
    dt_term term;

    if (call->json)
        return print_command_json(flight, err);
    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    dt_strbuf_init(&words);
    add_title(&text, &term, flight);
    dt_command_words(&words, recipe);
    dt_table_init(&table, columns, 2, call->arena);
    dt_table_add(&table, DT_STYLE_DIM, "command");
    dt_table_add(&table, DT_STYLE_PLAIN, "%s", words.data);
    dt_table_add(&table, DT_STYLE_DIM, "folder");
    dt_table_add(&table, DT_STYLE_PLAIN, "%s", recipe->workdir.folder);
    for (int64_t i = 0; i < recipe->env.count; i++) { /* the value may be a secret */
        dt_table_add(&table, DT_STYLE_DIM, i == 0 ? "variables" : "");
        dt_table_add(&table, DT_STYLE_PLAIN, "%.*s", (int)strcspn(recipe->env.items[i], "="),
                     recipe->env.items[i]);
    }
    dt_table_write(&text, &table, &term, 2);
    dt_strbuf_add_char(&text, '\n');
    add_ranks(&text, &term, &flight->plan, call->arena);
    st = dt_report_styled(&text, err);
    dt_strbuf_release(&words);
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_dry_run_print(const dt_fit *fit, const dt_call *call, dt_error *err)
{
    const dt_preflight *flight = fit->flight;
    char available[DT_FORMAT_SIZE];
    dt_strbuf text;
    dt_status st;
    dt_term term;

    if (call->json)
        return print_json(fit, err);
    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    add_title(&text, &term, flight);
    add_summary(&text, &term, fit, call->arena);
    dt_strbuf_add_char(&text, '\n');
    add_ranks(&text, &term, &flight->plan, call->arena);
    dt_format_bytes(available, sizeof(available), (double)flight->available_bytes);
    if (fit->gpu != NULL)
        dt_term_add(&text, &term, DT_STYLE_DIM, "\nmemory of one rank (%s has %s):\n",
                    fit->gpu->name, available);
    else if (flight->available_bytes > 0)
        dt_term_add(&text, &term, DT_STYLE_DIM, "\nmemory of one rank (%s free here for %lld):\n",
                    available, (long long)flight->ranks_on_node);
    else
        dt_term_add(&text, &term, DT_STYLE_DIM, "\nmemory of one rank:\n");
    dt_memory_table(&text, &flight->memory, &flight->plan.recipe);
    dt_strbuf_add_char(&text, '\n');
    st = dt_report_styled(&text, err);
    dt_strbuf_release(&text);
    return st;
}
