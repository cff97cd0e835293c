/* fit_report: prints a prediction for people, and as JSON (runner/launch/fit.h). */
#include <math.h>
#include <string.h>

#include "engine/data/files.h"
#include "recipes/architecture/architecture.h"
#include "runner/cli/report.h"
#include "runner/launch/fit.h"
#include "runner/term/format.h"

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

const char *dt_fit_time_text(const dt_fit *fit, dt_arena *arena)
{
    if (isnan(fit->seconds_low))
        return "not known";
    return dt_arena_printf(arena, "%s to %s", duration(arena, fit->seconds_low),
                           duration(arena, fit->seconds_high));
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

const char *dt_fit_data_text(const dt_fit *fit, dt_arena *arena)
{
    const dt_preflight *flight = fit->flight;
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
static const char *across_text(const dt_fit *fit, dt_arena *arena)
{
    char all[DT_FORMAT_SIZE], sums[DT_FORMAT_SIZE];
    const char *text;

    if (isnan(fit->sent_bytes) || fit->across_bytes <= 0)
        return "";
    text = dt_arena_printf(arena, "; %s by each node to others",
                           dt_format_bytes(all, sizeof(all), fit->across_bytes));
    if (fit->across_sums_bytes <= 0)
        return text;
    return dt_arena_printf(arena, "%s, %s of which are sums within layers", text,
                           dt_format_bytes(sums, sizeof(sums), fit->across_sums_bytes));
}

static void add_rates(dt_table *table, const dt_fit *fit)
{
    char bytes[DT_FORMAT_SIZE], flops[DT_FORMAT_SIZE], matrices[DT_FORMAT_SIZE];

    dt_table_add(table, DT_STYLE_DIM, "FLOP per step");
    dt_format_count(flops, sizeof(flops), fit->flops);
    if (fit->matrix_flops > 0)
        dt_table_add(table, DT_STYLE_PLAIN, "%s, plus %s for the optimizer", flops,
                     dt_format_count(matrices, sizeof(matrices), fit->matrix_flops));
    else
        dt_table_add(table, DT_STYLE_PLAIN, "%s", flops);
    dt_table_add(table, DT_STYLE_DIM, "sent per step");
    dt_table_add(table, DT_STYLE_PLAIN, "%s%s%s",
                 dt_format_bytes(bytes, sizeof(bytes), fit->sent_bytes),
                 fit->sent_bytes > 0 ? " by each rank" : "", across_text(fit, table->arena));
}

void dt_fit_add(dt_table *table, const dt_fit *fit)
{
    dt_table_add(table, DT_STYLE_DIM, "data");
    dt_table_add(table, DT_STYLE_PLAIN, "%s", dt_fit_data_text(fit, table->arena));
    if (!isnan(fit->epochs)) {
        dt_table_add(table, DT_STYLE_DIM, "epochs");
        dt_table_add(table, DT_STYLE_PLAIN, "%.3g", fit->epochs);
    }
    add_rates(table, fit);
    dt_table_add(table, DT_STYLE_DIM, "time");
    dt_table_add(table, DT_STYLE_PLAIN, "%s (%s)", dt_fit_time_text(fit, table->arena), fit->basis);
    if (fit->flight->warning != NULL) {
        dt_table_add(table, DT_STYLE_WARN, "warning");
        dt_table_add(table, DT_STYLE_PLAIN, "%s", fit->flight->warning);
    }
}

void dt_fit_note(const dt_fit *fit, const dt_call *call)
{
    const dt_memory *memory = &fit->flight->memory;
    char count[DT_FORMAT_SIZE], bytes[DT_FORMAT_SIZE];

    if (fit->flight->warning != NULL)
        dt_report_note(call, "warning: %s", fit->flight->warning);
    dt_report_note(call, "%s parameters, %s per rank; the steps take %s (%s)",
                   dt_format_count(count, sizeof(count), (double)memory->parameter_count),
                   dt_format_bytes(bytes, sizeof(bytes), (double)memory->total_bytes),
                   dt_fit_time_text(fit, call->arena), fit->basis);
}

void dt_fit_to_json(json_t *object, const dt_fit *fit)
{
    const dt_preflight *flight = fit->flight;
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
    json_object_set_new(data, "kind",
                        flight->data_kind != NULL ? json_string(flight->data_kind) : json_null());
    json_object_set_new(data, "tokenizer",
                        tokenizer != NULL ? dt_json_text(tokenizer) : json_null());
    json_object_set_new(object, "data", data);
    json_object_set_new(object, "epochs", dt_json_number(fit->epochs));
    json_object_set_new(object, "flops_per_step", dt_json_number(fit->flops + fit->matrix_flops));
    json_object_set_new(object, "sent_bytes_per_step", dt_json_number(fit->sent_bytes));
    json_object_set_new(object, "node_sent_bytes_per_step", dt_json_number(fit->across_bytes));
    json_object_set_new(time, "low_seconds", dt_json_number(fit->seconds_low));
    json_object_set_new(time, "high_seconds", dt_json_number(fit->seconds_high));
    json_object_set_new(time, "basis", dt_json_text(fit->basis));
    json_object_set_new(object, "time", time);
}
