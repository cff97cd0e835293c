/* memory_table: formats a memory forecast as a table, and checks it against the available memory. */
#include <stdio.h>

#include "recipes/cost/memory_int.h"

#define SIZE_TEXT 32

/* Formats bytes as "1.2 GB", decimal; returns out. */
static const char *size_text(char *out, int64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 999.95 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1000;
        unit++;
    }
    snprintf(out, SIZE_TEXT, "%.*f %s", unit == 0 ? 0 : 1, value, units[unit]);
    return out;
}

static void add_line(dt_strbuf *out, const char *part, int64_t bytes)
{
    char size[SIZE_TEXT];

    dt_strbuf_add_fmt(out, "  %-12s %10s  ", part, size_text(size, bytes));
}

/* Adds a line like "124475904 x 4 bytes, divided among 8\n". */
static void add_elements(dt_strbuf *out, int64_t count, const char *each, int64_t ways)
{
    dt_strbuf_add_fmt(out, "%lld x %s", (long long)count, each);
    if (ways > 1)
        dt_strbuf_add_fmt(out, ", divided among %lld", (long long)ways);
    dt_strbuf_add_str(out, "\n");
}

static void add_states(dt_strbuf *out, const dt_memory *memory, const dt_recipe *recipe,
                       int64_t ways)
{
    static const char *const fp32[] = {"0 bytes", "4 bytes, one moment", "8 bytes, two moments"};
    static const char *const bf16[] = {"0 bytes", "2 bytes, one moment", "4 bytes, two moments"};
    const char *const *moments =
        dt_optimizer_state_dtype(&recipe->optimizer) == DT_F32 ? fp32 : bf16;
    const char *usual = moments[dt_memory_states_of(recipe, false)];
    int64_t matrices = dt_memory_matrices(recipe).elems;

    if (dt_memory_states_of(recipe, true) == dt_memory_states_of(recipe, false)) {
        add_elements(out, memory->held_count, usual, ways);
        return;
    }
    dt_strbuf_add_fmt(out, "%lld x %s, and ", (long long)matrices,
                      moments[dt_memory_states_of(recipe, true)]);
    add_elements(out, memory->held_count - matrices, usual, ways);
}

static const char *parameter_text(const dt_recipe *recipe, int64_t masters)
{
    if (recipe->precision.kind == DT_PRECISION_FP32 || dt_memory_is_full_shard(recipe))
        return "4 bytes";
    if (masters > 1)
        return "2 bytes, and 4 for fp32";
    return recipe->precision.kind == DT_PRECISION_BF16 ? "(4 fp32 + 2 bf16) bytes"
                                                       : "(4 fp32 + 2 fp16) bytes";
}

/* Adds "134515008 x 2 bytes that are not trained, and ". */
static void add_frozen(dt_strbuf *out, const dt_memory *memory, const dt_recipe *recipe,
                       const dt_memory_shares *part)
{
    if (memory->frozen_count == 0)
        return;
    dt_strbuf_add_fmt(out, "%lld x %d bytes", (long long)memory->frozen_count,
                      recipe->precision.kind == DT_PRECISION_FP32 ? 4 : 2);
    if (part->frozen > 1)
        dt_strbuf_add_fmt(out, ", divided among %lld", (long long)part->frozen);
    dt_strbuf_add_str(out, ", not trained, and ");
}

void dt_memory_table(dt_strbuf *out, const dt_memory *memory, const dt_recipe *recipe)
{
    static const char *const recomputes[] = {
        [DT_RECOMPUTE_NONE] = "",
        [DT_RECOMPUTE_SELECTIVE] = ", some computed again",
        [DT_RECOMPUTE_FULL] = ", computed again",
        [DT_RECOMPUTE_NOTHING] = ", all kept",
    };
    dt_memory_shares part = dt_memory_shares_of(recipe, &memory->ranks);
    const dt_architecture *kind = dt_architecture_find(recipe->model.kind);

    add_line(out, "parameters", memory->parameters_bytes);
    add_frozen(out, memory, recipe, &part);
    add_elements(out, memory->held_count, parameter_text(recipe, part.masters), part.masters);
    add_line(out, "gradients", memory->gradients_bytes);
    add_elements(out, memory->held_count, "4 bytes", part.gradients);
    add_line(out, "optimizer", memory->optimizer_bytes);
    add_states(out, memory, recipe, part.states);
    add_line(out, "activations", memory->activations_bytes);
    dt_strbuf_add_fmt(out, "batch %lld ", (long long)recipe->batch.sequences);
    if (!kind->reads_rows)
        dt_strbuf_add_fmt(out, "x %lld ", (long long)recipe->batch.tokens);
    dt_strbuf_add_fmt(out, "%ss x %lld layer%s%s\n", kind->item, (long long)recipe->model.layers,
                      recipe->model.layers == 1 ? "" : "s",
                      recomputes[recipe->activation_checkpointing]);
    add_line(out, "buffers", memory->buffers_bytes);
    dt_strbuf_add_fmt(out, "%ss, %sgradients being sent, %s%sthe program\n", kind->item,
                      dt_memory_is_full_shard(recipe) ? "gathered weights, " : "",
                      memory->translator_bytes == 0 ? ""
                      : kind->reads_pairs           ? "a model that translates, "
                                                    : "a model for tasks and samples, ",
                      memory->copy_bytes > 0 ? "a copy for saves, " : "");
    add_line(out, "a rank", memory->total_bytes);
    dt_strbuf_add_str(out, "in all");
    if (memory->ranks.replicas > 1)
        dt_strbuf_add_fmt(out, ", of %lld replicas", (long long)memory->ranks.replicas);
    dt_strbuf_add_str(out, "\n");
}

/* Returns the bytes of all ranks of a node. */
static int64_t node_bytes(const dt_memory *memory, const dt_recipe *recipe, int64_t ranks)
{
    int64_t copies = recipe->strategy.kind == DT_STRATEGY_FSDP ? ranks : 1;

    return dt_size_plus(dt_size_times(memory->total_bytes - memory->copy_bytes, ranks),
                        dt_size_times(memory->copy_bytes, copies));
}

dt_status dt_memory_check(const dt_recipe *recipe, int64_t vocab, const dt_memory_ranks *ranks,
                          int64_t ranks_on_node, int64_t available_bytes, const char *node,
                          dt_error *err)
{
    char need[SIZE_TEXT], have[SIZE_TEXT];
    dt_memory memory;
    dt_strbuf table;

    dt_memory_estimate(&memory, recipe, vocab, ranks);
    if (node_bytes(&memory, recipe, ranks_on_node) <= available_bytes)
        return DT_OK;
    dt_strbuf_init(&table);
    dt_memory_table(&table, &memory, recipe);
    DT_FAIL(err, DT_ERR_RECIPE,
            "the run does not fit into the memory of '%s': %lld rank%s need%s %s, %s available\n%s"
            "lower 'batch.sequences'%s%s%s",
            node, (long long)ranks_on_node, ranks_on_node == 1 ? "" : "s",
            ranks_on_node == 1 ? "s" : "",
            size_text(need, node_bytes(&memory, recipe, ranks_on_node)),
            size_text(have, available_bytes), table.data,
            dt_architecture_find(recipe->model.kind)->reads_rows ? "" : " or 'batch.tokens'",
            recipe->activation_checkpointing == DT_RECOMPUTE_FULL
                ? ""
                : ", take 'activation_checkpointing: full'",
            ranks_on_node == 1 ? ", or the model's size" : ", the model's size, or 'ranks'");
    dt_strbuf_release(&table);
    return DT_ERR_RECIPE;
}
