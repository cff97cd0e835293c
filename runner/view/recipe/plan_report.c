#include "runner/view/recipe/recipe_report.h"

#include <unistd.h>

#include "recipes/architecture/architecture.h"
#include "recipes/cost/matrices.h"
#include "runner/cli/report.h"
#include "runner/term/term.h"

static const char *const kind_names[DT_TRAFFIC_KINDS] = {
    [DT_TRAFFIC_ALL_REDUCE] = "all-reduce",
    [DT_TRAFFIC_ALL_GATHER] = "all-gather",
    [DT_TRAFFIC_REDUCE_SCATTER] = "reduce-scatter",
    [DT_TRAFFIC_BROADCAST] = "broadcast",
};

static const char *precision_text(const dt_recipe *recipe)
{
    static const char *const names[] = {
        [DT_PRECISION_FP32] = "fp32", [DT_PRECISION_BF16] = "bf16", [DT_PRECISION_FP16] = "fp16"};

    return names[recipe->precision.kind];
}

static const char *strategy_text(const dt_recipe *recipe, dt_arena *arena)
{
    static const char *const shards[] = {
        [DT_SHARD_FULL] = "fsdp, shard: full",
        [DT_SHARD_GRADIENTS] = "fsdp, shard: gradients (ZeRO-2)",
        [DT_SHARD_OPTIMIZER] = "fsdp, shard: optimizer (ZeRO-1)",
    };

    if (recipe->strategy.kind == DT_STRATEGY_FSDP)
        return dt_arena_printf(arena, "%s%s", shards[recipe->strategy.shard],
                               recipe->strategy.within == DT_WITHIN_NODE ? ", within: node" : "");
    return recipe->strategy.kind == DT_STRATEGY_DDP ? "ddp" : "dp";
}

/* --- text */

/* Describes the inputs and outputs of the model. */
static const char *data_text(const dt_planned *p, dt_arena *arena)
{
    const dt_recipe *recipe = &p->recipe;

    if (dt_architecture_find(recipe->model.kind)->reads_rows)
        return dt_arena_printf(arena, "%lld inputs, %lld %s", (long long)recipe->model.inputs,
                               (long long)recipe->model.outputs,
                               recipe->model.loss == DT_LOSS_CROSS_ENTROPY ? "classes" : "outputs");
    return dt_arena_printf(arena, "vocabulary %lld%s",
                           (long long)(p->vocab > 0 ? p->vocab : DT_VOCAB_UNKNOWN),
                           p->vocab > 0 ? "" : " (assumed; set 'model.vocab')");
}

static const char *batch_text(const dt_recipe *recipe, dt_arena *arena)
{
    if (dt_architecture_find(recipe->model.kind)->reads_rows)
        return dt_arena_printf(arena, "%lld rows", (long long)recipe->batch.sequences);
    if (recipe->batch.max_tokens > 0)
        return dt_arena_printf(arena, "pairs of at most %lld tokens",
                               (long long)recipe->batch.max_tokens);
    return dt_arena_printf(arena, "%lld x %lld tokens", (long long)recipe->batch.sequences,
                           (long long)recipe->batch.tokens);
}

/* Describes the cost of an optimizer that updates whole matrices; "" for others. */
static const char *update_text(const dt_planned *p, dt_arena *arena)
{
    dt_matrices matrices;

    dt_matrices_count(&matrices, &p->recipe);
    if (matrices.flops == 0)
        return "";
    return dt_arena_printf(arena, "; %.3g GFLOP of whole matrices at %.4g TFLOP/s x %.3g %%",
                           1e-9 * matrices.flops, p->machine.matrix_tflops,
                           100 * p->machine.efficiency);
}

static void add_assumptions(dt_strbuf *out, const dt_term *term, const dt_planned *p,
                            dt_arena *arena)
{
    static const dt_table_column columns[] = {{NULL, false}, {NULL, false}};
    const dt_prediction *any = &p->sizes[0].prediction;
    const dt_machine *machine = &p->machine;
    char count[DT_FORMAT_SIZE];
    const dt_recipe *recipe = &p->recipe;
    const dt_architecture *kind = dt_architecture_find(recipe->model.kind);
    dt_model_config config;
    dt_table table;

    dt_model_config_make(&config, recipe, 0);
    dt_table_init(&table, columns, 2, arena);
    dt_table_add(&table, DT_STYLE_DIM, "model");
    dt_table_add(&table, DT_STYLE_PLAIN, "%s parameters, %s, %.3g GFLOP a %s (%s)",
                 dt_format_count(count, sizeof(count), (double)any->memory.parameter_count),
                 data_text(p, arena), 1e-9 * any->token_flops, kind->item,
                 dt_model_flops_formula(&config));
    dt_table_add(&table, DT_STYLE_DIM, "each GPU");
    dt_table_add(&table, DT_STYLE_PLAIN, "%s; %s x %lld accumulated; %s",
                 strategy_text(recipe, arena), batch_text(recipe, arena),
                 (long long)recipe->batch.accumulate, precision_text(recipe));
    dt_table_add(&table, DT_STYLE_DIM, "passes");
    dt_table_add(&table, DT_STYLE_PLAIN, "%.4g TFLOP/s (%s) x %.3g %% efficiency (assumed)",
                 machine->tflops, p->given_peak ? "given" : p->gpu->name,
                 100 * machine->efficiency);
    dt_table_add(&table, DT_STYLE_DIM, "update");
    dt_table_add(&table, DT_STYLE_PLAIN, "%.4g GB/s of memory (%s) x %.3g %% (assumed)%s",
                 machine->memory_gbs, p->gpu->name, 100 * DT_PLAN_MEMORY_SHARE,
                 update_text(p, arena));
    dt_table_add(&table, DT_STYLE_DIM, "in a node");
    dt_table_add(&table, DT_STYLE_PLAIN, "%.4g GB/s: %s", machine->fabric.node_gbs,
                 p->given_node ? "given" : p->gpu->node_source);
    dt_table_add(&table, DT_STYLE_DIM, "between nodes");
    dt_table_add(&table, DT_STYLE_PLAIN, "%.4g GB/s a node: %s", machine->fabric.network_gbs,
                 p->given_network ? "given" : p->network->source);
    dt_table_write(out, &table, term, 2);
}

static void add_times(dt_strbuf *out, const dt_term *term, const dt_planned *p, dt_arena *arena)
{
    const char *item = dt_architecture_find(p->recipe.model.kind)->item;
    const dt_table_column columns[] = {
        {"GPUs", true},   {"nodes", true},    {dt_arena_printf(arena, "%ss/step", item), true},
        {"passes", true}, {"messages", true}, {"exposed", true},
        {"update", true}, {"step", true},     {dt_arena_printf(arena, "%ss/s", item), true},
        {"MFU", true},    {"of linear", true}};
    char whole[DT_FORMAT_SIZE], rate[DT_FORMAT_SIZE];
    dt_table table;

    dt_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]), arena);
    for (int i = 0; i < p->sizes_count; i++) {
        const dt_prediction *at = &p->sizes[i].prediction;

        dt_table_add(&table, DT_STYLE_BOLD, "%lld", (long long)at->world_size);
        dt_table_add(&table, DT_STYLE_PLAIN, "%lld", (long long)p->sizes[i].nodes);
        dt_table_add(&table, DT_STYLE_PLAIN, "%s",
                     dt_format_whole(whole, sizeof(whole), (int64_t)at->step_tokens));
        dt_table_add(&table, DT_STYLE_PLAIN, "%.1f ms", 1e3 * at->pass_seconds);
        dt_table_add(&table, DT_STYLE_PLAIN, "%.1f ms", 1e3 * at->message_seconds);
        dt_table_add(&table, DT_STYLE_PLAIN, "%.1f ms", 1e3 * at->exposed_seconds);
        dt_table_add(&table, DT_STYLE_PLAIN, "%.1f ms", 1e3 * at->update_seconds);
        dt_table_add(&table, DT_STYLE_PLAIN, "%.1f ms", 1e3 * at->step_seconds);
        dt_table_add(&table, DT_STYLE_PLAIN, "%s",
                     dt_format_count(rate, sizeof(rate), at->tokens_per_second));
        dt_table_add(&table, DT_STYLE_PLAIN, "%.1f %%", 100 * at->mfu);
        dt_table_add(&table, DT_STYLE_PLAIN, "%.1f %%", 100 * at->efficiency);
    }
    dt_table_write(out, &table, term, 2);
}

static void add_messages(dt_strbuf *out, const dt_term *term, const dt_planned *p, dt_arena *arena)
{
    static const dt_table_column columns[] = {
        {"GPUs", true},   {"message", false},         {"a step", true},    {"largest", true},
        {"in all", true}, {"a node to others", true}, {"mean time", true}, {"in all", true}};
    char one[DT_FORMAT_SIZE], all[DT_FORMAT_SIZE], across[DT_FORMAT_SIZE];
    dt_table table;

    dt_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]), arena);
    for (int i = 0; i < p->sizes_count; i++) {
        for (int kind = 0; kind < DT_TRAFFIC_KINDS; kind++) {
            const dt_prediction_messages *sum = &p->sizes[i].prediction.messages[kind];

            if (sum->count == 0)
                continue;
            dt_table_add(&table, DT_STYLE_BOLD, "%lld",
                         (long long)p->sizes[i].prediction.world_size);
            dt_table_add(&table, DT_STYLE_PLAIN, "%s", kind_names[kind]);
            dt_table_add(&table, DT_STYLE_PLAIN, "%lld", (long long)sum->count);
            dt_table_add(&table, DT_STYLE_PLAIN, "%s",
                         dt_format_bytes(one, sizeof(one), sum->largest_bytes));
            dt_table_add(&table, DT_STYLE_PLAIN, "%s",
                         dt_format_bytes(all, sizeof(all), sum->bytes));
            dt_table_add(&table, DT_STYLE_PLAIN, "%s",
                         dt_format_bytes(across, sizeof(across), sum->across_bytes));
            dt_table_add(&table, DT_STYLE_PLAIN, "%.2f ms",
                         1e3 * sum->seconds / (double)sum->count);
            dt_table_add(&table, DT_STYLE_PLAIN, "%.1f ms", 1e3 * sum->seconds);
        }
    }
    dt_table_write(out, &table, term, 2);
}

static void add_memory(dt_strbuf *out, const dt_term *term, const dt_planned *p, dt_arena *arena)
{
    static const dt_table_column columns[] = {
        {"GPUs", true},        {"parameters", true}, {"gradients", true}, {"optimizer", true},
        {"activations", true}, {"buffers", true},    {"a GPU", true},     {"", false}};
    char text[DT_FORMAT_SIZE];
    dt_table table;

    dt_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]), arena);
    for (int i = 0; i < p->sizes_count; i++) {
        const dt_memory *memory = &p->sizes[i].prediction.memory;
        const int64_t bytes[] = {memory->parameters_bytes, memory->gradients_bytes,
                                 memory->optimizer_bytes,  memory->activations_bytes,
                                 memory->buffers_bytes,    memory->total_bytes};
        bool fits = (double)memory->total_bytes <= p->machine.memory_bytes;

        dt_table_add(&table, DT_STYLE_BOLD, "%lld", (long long)p->sizes[i].prediction.world_size);
        for (size_t part = 0; part < sizeof(bytes) / sizeof(bytes[0]); part++)
            dt_table_add(&table, DT_STYLE_PLAIN, "%s",
                         dt_format_bytes(text, sizeof(text), (double)bytes[part]));
        dt_table_add(&table, fits ? DT_STYLE_GOOD : DT_STYLE_BAD, "%s %.0f GB",
                     fits ? "fits" : "does not fit", p->gpu->memory_gb);
    }
    dt_table_write(out, &table, term, 2);
}

static void add_overlap(dt_strbuf *out, const dt_planned *p)
{
    if (p->overlap_end > 0)
        dt_strbuf_add_fmt(
            out,
            "\nOverlap ends at %lld GPUs: from there on a GPU waits for messages for more "
            "than %.0f %% of a step.\n",
            (long long)p->overlap_end, 100 * DT_PLAN_EXPOSED_SHARE);
    else
        dt_strbuf_add_fmt(out,
                          "\nMessages overlap with the passes: up to %d GPUs, a GPU waits for less "
                          "than %.0f %% of a step.\n",
                          DT_PLAN_GPUS_MAX, 100 * DT_PLAN_EXPOSED_SHARE);
}

dt_status dt_plan_report_text(const dt_planned *planned, dt_arena *arena, dt_error *err)
{
    dt_strbuf text;
    dt_status st;
    dt_term term;

    dt_term_init(&term, STDOUT_FILENO);
    dt_strbuf_init(&text);
    dt_term_add(&text, &term, DT_STYLE_BOLD, "%s", planned->recipe.name);
    dt_term_add(&text, &term, DT_STYLE_DIM,
                " on %lld %s a node: a prediction, not a measurement\n\n",
                (long long)planned->machine.fabric.node_gpus, planned->gpu->name);
    add_assumptions(&text, &term, planned, arena);
    dt_strbuf_add_char(&text, '\n');
    add_times(&text, &term, planned, arena);
    dt_strbuf_add_char(&text, '\n');
    add_messages(&text, &term, planned, arena);
    dt_strbuf_add_char(&text, '\n');
    add_memory(&text, &term, planned, arena);
    add_overlap(&text, planned);
    st = dt_report_styled(&text, err);
    dt_strbuf_release(&text);
    return st;
}

/* --- JSON */

static json_t *messages_to_json(const dt_prediction *at)
{
    json_t *array = json_array();

    for (int kind = 0; kind < DT_TRAFFIC_KINDS; kind++) {
        const dt_prediction_messages *sum = &at->messages[kind];

        if (sum->count > 0)
            json_array_append_new(
                array, json_pack("{s:s, s:I, s:f, s:f, s:f, s:f}", "kind", kind_names[kind],
                                 "count", (json_int_t)sum->count, "largest_bytes",
                                 sum->largest_bytes, "bytes", sum->bytes, "node_sent_bytes",
                                 sum->across_bytes, "seconds", sum->seconds));
    }
    return array;
}

static json_t *size_to_json(const dt_planned *p, const dt_planned_size *size)
{
    const dt_prediction *at = &size->prediction;
    const dt_memory *memory = &at->memory;

    return json_pack(
        "{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:o,"
        " s:{s:I, s:I, s:I, s:I, s:I, s:I}}",
        "gpus", (json_int_t)at->world_size, "nodes", (json_int_t)size->nodes, "tokens_per_step",
        at->step_tokens, "pass_seconds", at->pass_seconds, "message_seconds", at->message_seconds,
        "exposed_seconds", at->exposed_seconds, "update_seconds", at->update_seconds,
        "matrix_flops", at->matrix_flops, "step_seconds", at->step_seconds, "tokens_per_second",
        at->tokens_per_second, "mfu", at->mfu, "efficiency", at->efficiency, "fits",
        (double)memory->total_bytes <= p->machine.memory_bytes, "messages", messages_to_json(at),
        "memory", "parameters_bytes", (json_int_t)memory->parameters_bytes, "gradients_bytes",
        (json_int_t)memory->gradients_bytes, "optimizer_bytes", (json_int_t)memory->optimizer_bytes,
        "activations_bytes", (json_int_t)memory->activations_bytes, "buffers_bytes",
        (json_int_t)memory->buffers_bytes, "rank_bytes", (json_int_t)memory->total_bytes);
}

dt_status dt_plan_report_json(const dt_planned *planned, dt_error *err)
{
    const dt_prediction *any = &planned->sizes[0].prediction;
    const dt_machine *machine = &planned->machine;
    const dt_architecture *kind = dt_architecture_find(planned->recipe.model.kind);
    json_t *object = dt_report_object(), *sizes = json_array();

    json_object_set_new(object, "name", json_string(planned->recipe.name));
    json_object_set_new(object, "model",
                        json_pack("{s:I, s:o, s:f, s:s}", "parameters",
                                  (json_int_t)any->memory.parameter_count, "vocab",
                                  planned->vocab > 0 && !kind->reads_rows
                                      ? json_integer((json_int_t)planned->vocab)
                                      : json_null(),
                                  "flops_per_token", any->token_flops, "item", kind->item));
    json_object_set_new(
        object, "machine",
        json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "card", planned->gpu->name,
                  "gpus_per_node", (json_int_t)machine->fabric.node_gpus, "tflops", machine->tflops,
                  "efficiency", machine->efficiency, "memory_gbs", machine->memory_gbs,
                  "memory_bytes", machine->memory_bytes, "node_gbs", machine->fabric.node_gbs,
                  "network_gbs", machine->fabric.network_gbs));
    for (int i = 0; i < planned->sizes_count; i++)
        json_array_append_new(sizes, size_to_json(planned, &planned->sizes[i]));
    json_object_set_new(object, "sizes", sizes);
    json_object_set_new(object, "overlap_end_gpus",
                        planned->overlap_end > 0 ? json_integer((json_int_t)planned->overlap_end)
                                                 : json_null());
    return dt_report_json(object, err);
}
