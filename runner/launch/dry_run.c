/* dry_run: prints predictions, and what a launch would start without starting it, as text and as JSON. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "engine/data/files.h"
#include "recipes/architecture/architecture.h"
#include "recipes/fields/fields.h"
#include "runner/cli/report.h"
#include "runner/launch/estimate.h"
#include "runner/term/term.h"

/* Predictions (estimate.h). */

enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };

/* "4 ms", "12 s", "8 min", "3.2 h", "5.1 d" */
static const char *duration(dt_arena *arena, double seconds)
{
    if (seconds < 0.1)
        return dt_arena_printf(arena, "%.2g ms", 1e3 * seconds);
    if (seconds < 2 * MINUTE)
        return dt_arena_printf(arena, seconds < 10 ? "%.1f s" : "%.0f s", seconds);
    if (seconds < 2 * HOUR)
        return dt_arena_printf(arena, "%.0f min", seconds / MINUTE);
    if (seconds < 2 * DAY)
        return dt_arena_printf(arena, "%.1f h", seconds / HOUR);
    return dt_arena_printf(arena, "%.1f days", seconds / DAY);
}

const char *dt_run_estimate_time_text(const dt_run_estimate *estimate, dt_arena *arena)
{
    if (isnan(estimate->seconds_low))
        return "not known";
    return dt_arena_printf(arena, "%s to %s", duration(arena, estimate->seconds_low),
                           duration(arena, estimate->seconds_high));
}

static const char *tokenizer_of(const dt_recipe *recipe)
{
    if (dt_tokenizer_is_file(recipe))
        return recipe->data.tokenizer;
    if (dt_tokens_kind_of(recipe) == DT_TOKENS_BYTE)
        return "bytes";
    return NULL;
}

/* Adds the number of packed sequences, and their share of padding. */
static void add_packs(dt_strbuf *out, const dt_preflight *flight)
{
    int64_t packs = flight->data.train_packs;
    char count[DT_FORMAT_SIZE];

    if (packs > 0)
        dt_strbuf_add_fmt(out, " in %s sequences, %.1f %% of which is padding",
                          dt_format_whole(count, sizeof(count), packs),
                          100 * dt_preflight_padding(flight));
}

/* "65 characters", "50,257 ids", "vocabulary not known" */
static void add_vocab(dt_strbuf *out, const dt_preflight *flight)
{
    const dt_recipe *recipe = &flight->recipe;
    const char *tokenizer = tokenizer_of(recipe), *kind = flight->data_kind;
    char count[DT_FORMAT_SIZE];

    if (flight->data.vocab <= 0) {
        dt_strbuf_add_str(out, ", vocabulary size unknown until all data is read");
        return;
    }
    dt_format_whole(count, sizeof(count), flight->data.vocab);
    if (tokenizer != NULL && strcmp(tokenizer, "bytes") != 0)
        dt_strbuf_add_fmt(out, ", a vocabulary of %s by %s", count, tokenizer);
    else
        dt_strbuf_add_fmt(out, ", a vocabulary of %s %s", count,
                          kind != NULL && strcmp(kind, "char") == 0   ? "characters"
                          : kind != NULL && strcmp(kind, "byte") == 0 ? "bytes"
                                                                      : "ids");
}

const char *dt_run_estimate_data_text(const dt_run_estimate *estimate, dt_arena *arena)
{
    const dt_preflight *flight = estimate->flight;
    const dt_architecture *kind = dt_architecture_find(flight->recipe.model.kind);
    char bytes[DT_FORMAT_SIZE], tokens[DT_FORMAT_SIZE];
    const char *text;
    dt_strbuf out;

    if (flight->data_files == 0)
        return "not read";
    dt_strbuf_init(&out);
    dt_strbuf_add_fmt(&out, "%lld file%s of %s", (long long)flight->data_files,
                      flight->data_files == 1 ? "" : "s",
                      dt_format_bytes(bytes, sizeof(bytes), (double)flight->data_bytes));
    if (flight->data.train_tokens > 0)
        dt_strbuf_add_fmt(
            &out, ", %s %ss to train on",
            dt_format_count(tokens, sizeof(tokens), (double)flight->data.train_tokens), kind->item);
    add_packs(&out, flight);
    if (!kind->reads_rows)
        add_vocab(&out, flight);
    text = dt_arena_strdup(arena, out.data);
    dt_strbuf_release(&out);
    return text;
}

/* Returns what leaves a node: "; 12.1 MB by each node to others, 10.5 MB of which are sums within layers" */
static const char *across_text(const dt_run_estimate *estimate, dt_arena *arena)
{
    char all[DT_FORMAT_SIZE], sums[DT_FORMAT_SIZE];
    const char *text;

    if (isnan(estimate->sent_bytes) || estimate->across_bytes <= 0)
        return "";
    text = dt_arena_printf(arena, "; %s by each node to others",
                           dt_format_bytes(all, sizeof(all), estimate->across_bytes));
    if (estimate->across_sums_bytes <= 0)
        return text;
    return dt_arena_printf(arena, "%s, %s of which are sums within layers", text,
                           dt_format_bytes(sums, sizeof(sums), estimate->across_sums_bytes));
}

static void add_rates(dt_table *table, const dt_run_estimate *estimate)
{
    char bytes[DT_FORMAT_SIZE], flops[DT_FORMAT_SIZE], matrices[DT_FORMAT_SIZE];

    dt_table_add(table, DT_STYLE_DIM, "FLOP per step");
    dt_format_count(flops, sizeof(flops), estimate->flops);
    if (estimate->matrix_flops > 0)
        dt_table_add(table, DT_STYLE_PLAIN, "%s, plus %s for the optimizer", flops,
                     dt_format_count(matrices, sizeof(matrices), estimate->matrix_flops));
    else
        dt_table_add(table, DT_STYLE_PLAIN, "%s", flops);
    dt_table_add(table, DT_STYLE_DIM, "sent per step");
    dt_table_add(table, DT_STYLE_PLAIN, "%s%s%s",
                 dt_format_bytes(bytes, sizeof(bytes), estimate->sent_bytes),
                 estimate->sent_bytes > 0 ? " by each rank" : "",
                 across_text(estimate, table->arena));
}

void dt_run_estimate_add(dt_table *table, const dt_run_estimate *estimate)
{
    dt_table_add(table, DT_STYLE_DIM, "data");
    dt_table_add(table, DT_STYLE_PLAIN, "%s", dt_run_estimate_data_text(estimate, table->arena));
    if (estimate->flight->chats != NULL) {
        dt_table_add(table, DT_STYLE_DIM, "chats");
        dt_table_add(table, DT_STYLE_PLAIN, "%s",
                     dt_preflight_chats_text(estimate->flight, table->arena));
    }
    if (estimate->flight->plan.recipe.data.mixture.count > 0) {
        dt_table_add(table, DT_STYLE_DIM, "mixture");
        dt_table_add(table, DT_STYLE_PLAIN, "%s",
                     dt_preflight_mixture_text(estimate->flight, table->arena));
    }
    if (!isnan(estimate->epochs)) {
        dt_table_add(table, DT_STYLE_DIM, "epochs");
        dt_table_add(table, DT_STYLE_PLAIN, "%.3g", estimate->epochs);
    }
    add_rates(table, estimate);
    dt_table_add(table, DT_STYLE_DIM, "time");
    dt_table_add(table, DT_STYLE_PLAIN, "%s (%s)",
                 dt_run_estimate_time_text(estimate, table->arena), estimate->basis);
    if (estimate->flight->warning != NULL) {
        dt_table_add(table, DT_STYLE_WARN, "warning");
        dt_table_add(table, DT_STYLE_PLAIN, "%s", estimate->flight->warning);
    }
}

void dt_run_estimate_note(const dt_run_estimate *estimate, const dt_call *call)
{
    const dt_memory *memory = &estimate->flight->memory;
    char count[DT_FORMAT_SIZE], bytes[DT_FORMAT_SIZE];

    if (estimate->flight->warning != NULL)
        dt_report_note(call, "warning: %s", estimate->flight->warning);
    if (estimate->flight->plan.recipe.data.mixture.count > 0)
        dt_report_note(call, "mixture: %s",
                       dt_preflight_mixture_text(estimate->flight, call->arena));
    dt_report_note(call, "%s parameters, %s per rank; the steps take %s (%s)",
                   dt_format_count(count, sizeof(count), (double)memory->parameter_count),
                   dt_format_bytes(bytes, sizeof(bytes), (double)memory->total_bytes),
                   dt_run_estimate_time_text(estimate, call->arena), estimate->basis);
}

void dt_run_estimate_to_json(json_t *object, const dt_run_estimate *estimate)
{
    const dt_preflight *flight = estimate->flight;
    const char *tokenizer = tokenizer_of(&flight->recipe);
    json_t *data = json_pack("{s:I, s:I}", "files", (json_int_t)flight->data_files, "bytes",
                             (json_int_t)flight->data_bytes);
    json_t *time = json_object();

    json_object_set_new(data, "train_items",
                        flight->data.train_tokens > 0 ? json_integer(flight->data.train_tokens)
                                                      : json_null());
    if (flight->data.train_packs > 0) {
        json_object_set_new(data, "sequences", json_integer(flight->data.train_packs));
        json_object_set_new(data, "padding", dt_json_number(dt_preflight_padding(flight)));
    }
    if (flight->chats != NULL)
        json_object_set_new(data, "chats", dt_preflight_chats_to_json(flight));
    if (flight->plan.recipe.data.mixture.count > 0)
        json_object_set_new(data, "mixture", dt_preflight_mixture_to_json(flight));
    json_object_set_new(data, "kind",
                        flight->data_kind != NULL ? json_string(flight->data_kind) : json_null());
    json_object_set_new(data, "tokenizer",
                        tokenizer != NULL ? dt_json_text(tokenizer) : json_null());
    json_object_set_new(object, "data", data);
    json_object_set_new(object, "epochs", dt_json_number(estimate->epochs));
    json_object_set_new(object, "flops_per_step",
                        dt_json_number(estimate->flops + estimate->matrix_flops));
    json_object_set_new(object, "sent_bytes_per_step", dt_json_number(estimate->sent_bytes));
    json_object_set_new(object, "node_sent_bytes_per_step", dt_json_number(estimate->across_bytes));
    json_object_set_new(time, "low_seconds", dt_json_number(estimate->seconds_low));
    json_object_set_new(time, "high_seconds", dt_json_number(estimate->seconds_high));
    json_object_set_new(time, "basis", dt_json_text(estimate->basis));
    json_object_set_new(object, "time", time);
}

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

static dt_status print_json(const dt_run_estimate *estimate, dt_error *err)
{
    const dt_preflight *flight = estimate->flight;
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
                        estimate->gpu != NULL ? json_string(estimate->gpu->name) : json_null());
    dt_run_estimate_to_json(object, estimate);
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

static void add_summary(dt_strbuf *out, const dt_term *term, const dt_run_estimate *estimate,
                        dt_arena *arena)
{
    static const dt_table_column columns[] = {{NULL, false}, {NULL, false}};
    const dt_preflight *flight = estimate->flight;
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
    dt_run_estimate_add(&table, estimate);
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
    json_t *object = dt_report_object(), *command = json_array();

    for (int64_t i = 0; i < recipe->command.count; i++)
        json_array_append_new(command, dt_json_text(recipe->command.items[i]));
    json_object_set_new(object, "task", json_string(dt_task_name(recipe->task)));
    json_object_set_new(object, "command", command);
    json_object_set_new(object, "workdir", dt_json_text(recipe->workdir.folder));
    json_object_set_new(object, "plan", dt_plan_to_json(&flight->plan));
    return dt_report_json(object, err);
}

dt_status dt_dry_run_print_command(const dt_preflight *flight, const dt_call *call, dt_error *err)
{
    static const dt_table_column columns[] = {{NULL, false}, {NULL, false}};
    const dt_recipe *recipe = &flight->plan.recipe;
    dt_strbuf text, command;
    dt_table table;
    dt_status st;
    dt_term term;

    if (call->json)
        return print_command_json(flight, err);
    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    dt_strbuf_init(&command);
    add_title(&text, &term, flight);
    dt_command_words(&command, recipe);
    dt_table_init(&table, columns, 2, call->arena);
    dt_table_add(&table, DT_STYLE_DIM, "command");
    dt_table_add(&table, DT_STYLE_PLAIN, "%s", command.data);
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
    dt_strbuf_release(&command);
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_dry_run_print(const dt_run_estimate *estimate, const dt_call *call, dt_error *err)
{
    const dt_preflight *flight = estimate->flight;
    char available[DT_FORMAT_SIZE];
    dt_strbuf text;
    dt_status st;
    dt_term term;

    if (call->json)
        return print_json(estimate, err);
    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    add_title(&text, &term, flight);
    add_summary(&text, &term, estimate, call->arena);
    dt_strbuf_add_char(&text, '\n');
    add_ranks(&text, &term, &flight->plan, call->arena);
    dt_format_bytes(available, sizeof(available), (double)flight->available_bytes);
    if (estimate->gpu != NULL)
        dt_term_add(&text, &term, DT_STYLE_DIM, "\nmemory of one rank (%s has %s):\n",
                    estimate->gpu->name, available);
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
