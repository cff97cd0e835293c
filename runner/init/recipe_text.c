/* recipe_text: writes the draft as a recipe with comments. */
#include <string.h>

#include "runner/init/recipe_int.h"
#include "runner/term/format.h"

enum { LINE = 100 };

bool dt_init_is_rows(const dt_init_draft *d)
{
    return d->wish->look->kind == DT_LOOK_ROWS;
}

static void add_quoted(dt_strbuf *out, const char *text)
{
    dt_strbuf_add_char(out, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            dt_strbuf_add_char(out, '\\');
        if (*text == '\n')
            dt_strbuf_add_str(out, "\\n");
        else if (*text == '\t')
            dt_strbuf_add_str(out, "\\t");
        else
            dt_strbuf_add_char(out, *text);
    }
    dt_strbuf_add_char(out, '"');
}

static void add_files(dt_strbuf *out, const char *key, const dt_string_list *files)
{
    dt_strbuf_add_fmt(out, "  %s:", key);
    for (int64_t i = 0; i < files->count; i++) {
        dt_strbuf_add_str(out, files->count == 1 ? " " : "\n    - ");
        add_quoted(out, files->items[i]);
    }
    dt_strbuf_add_char(out, '\n');
}

static void add_data(dt_strbuf *out, const dt_init_draft *d)
{
    const dt_look *look = d->wish->look;

    dt_strbuf_add_str(out, "data:\n");
    add_files(out, "train", &look->train);
    if (look->validation.count > 0)
        add_files(out, "validation", &look->validation);
    else
        dt_strbuf_add_str(out, "  split: 0.1            # the last tenth is for validation\n");
    if (look->kind == DT_LOOK_TEXT && d->wish->tokenizer == NULL)
        dt_strbuf_add_str(
            out, "  tokens: char          # or 'tokenizer: DIR' for the tokenizer of a model\n");
    if (d->wish->tokenizer != NULL && look->kind != DT_LOOK_ROWS) {
        dt_strbuf_add_str(out, "  tokenizer: ");
        add_quoted(out, d->wish->tokenizer);
        dt_strbuf_add_char(out, '\n');
    }
    if (look->field != NULL) {
        dt_strbuf_add_str(out, "  field: ");
        add_quoted(out, look->field);
        dt_strbuf_add_str(out, "        # the field that holds the text\n");
    }
}

static void add_model(dt_strbuf *out, const dt_init_draft *d)
{
    const dt_look *look = d->wish->look;

    dt_strbuf_add_str(out, "model:\n");
    if (dt_init_is_rows(d)) {
        dt_strbuf_add_fmt(
            out,
            "  kind: mlp\n  layers: 2\n  embed: %lld             # width of the layers\n"
            "  inputs: %lld            # columns except the last\n"
            "  outputs: %lld           # %s\n",
            (long long)d->of.embed, (long long)look->columns - 1,
            (long long)(look->classes > 0 ? look->classes : 1),
            look->classes > 0 ? "classes; the last column is the class"
                              : "the last column is predicted");
        if (look->classes == 0)
            dt_strbuf_add_str(out, "  loss: squared_error\n");
        return;
    }
    dt_strbuf_add_fmt(out,
                      "  kind: gpt2            # or llama, with 'ffn'\n"
                      "  layers: %lld\n  heads: %lld\n  embed: %lld\n",
                      (long long)d->of.layers, (long long)d->of.heads, (long long)d->of.embed);
}

static void add_batch(dt_strbuf *out, const dt_init_draft *d)
{
    if (dt_init_is_rows(d))
        dt_strbuf_add_fmt(out, "batch: %lld               # rows for each rank and step\n",
                          (long long)d->of.sequences);
    else
        dt_strbuf_add_fmt(
            out,
            "batch:\n  sequences: %lld         # for each rank and step\n"
            "  tokens: %lld            # of each sequence: the context of the model\n",
            (long long)d->of.sequences, (long long)d->of.tokens);
}

/* Writes "a,b" as a list; commas within brackets belong to ranges. */
static void add_nodes(dt_strbuf *out, const char *nodes)
{
    dt_strbuf one;
    int depth = 0;

    dt_strbuf_init(&one);
    dt_strbuf_add_str(out, "nodes: [");
    for (const char *at = nodes;; at++) {
        depth += (*at == '[') - (*at == ']');
        if (*at != '\0' && (*at != ',' || depth > 0)) {
            dt_strbuf_add_char(&one, *at);
            continue;
        }
        add_quoted(out, one.data);
        if (*at == '\0')
            break;
        dt_strbuf_add_str(out, ", ");
        dt_strbuf_reset(&one);
    }
    dt_strbuf_add_str(out, "] # ssh destinations; check them with 'dtrun doctor'\n");
    dt_strbuf_release(&one);
}

static void add_place(dt_strbuf *out, const dt_init_draft *d)
{
    if (d->wish->nodes != NULL)
        add_nodes(out, d->wish->nodes);
    if (d->gpus)
        dt_strbuf_add_str(out,
                          "strategy: fsdp          # on all GPUs of a node; 'gpus: N' uses fewer\n"
                          "precision: bf16\n");
    else if (d->wish->nodes == NULL)
        dt_strbuf_add_str(out, "ranks: 1                # 2 or more train with ddp\n");
}

void dt_init_add_recipe(dt_strbuf *out, const dt_init_draft *d)
{
    add_data(out, d);
    add_model(out, d);
    add_batch(out, d);
    dt_strbuf_add_fmt(out, "optimizer:\n  lr: %s\nschedule:\n  steps: %lld\n  warmup_steps: %lld\n",
                      dt_init_is_rows(d) ? "3e-3" : d->of.lr, (long long)d->steps,
                      (long long)(d->steps / 20));
    dt_strbuf_add_fmt(
        out,
        "evaluate:\n  every: %lld             # steps; 'every_epoch: 1' evaluates after each pass "
        "over the data\n",
        (long long)(d->steps / 10));
    if (d->steps > 5000)
        dt_strbuf_add_fmt(
            out, "checkpoint:\n  every: %lld           # steps; the best one is kept too\n",
            (long long)(d->steps / 20));
    add_place(out, d);
}

/* --- the head */

static void add_comment(dt_strbuf *out, const char *label, const char *text)
{
    dt_strbuf_add_fmt(out, "# %-8s  ", label);
    for (size_t column = 12; *text != '\0'; text++, column++) {
        if (*text == ' ' && column + strcspn(text + 1, " ") > LINE - 2) {
            dt_strbuf_add_str(out, "\n#           ");
            column = 12;
        }
        dt_strbuf_add_char(out, *text != '\n' ? *text : ' ');
    }
    dt_strbuf_add_char(out, '\n');
}

static const char *where(const dt_init_draft *d)
{
    const dt_plan *plan = &d->flight.plan;
    const char *nodes = d->wish->nodes != NULL ? d->wish->nodes : "this machine";

    if (d->fit.gpu != NULL)
        return dt_arena_printf(d->arena, "%s, as if it had %lld %s each", nodes,
                               (long long)d->flight.ranks_on_node, d->fit.gpu->name);
    if (d->wish->nodes != NULL)
        return dt_arena_printf(d->arena, "%s (not contacted)", nodes);
    return dt_arena_printf(
        d->arena, "%s: %s", nodes,
        strcmp(plan->ranks[0].device, "cpu") == 0
            ? dt_arena_printf(d->arena, "%lld CPU threads", (long long)plan->ranks[0].threads)
            : "its GPUs");
}

void dt_init_add_head(dt_strbuf *out, const dt_init_draft *d)
{
    char parameters[DT_FORMAT_SIZE], bytes[DT_FORMAT_SIZE], items[DT_FORMAT_SIZE];
    const char *data = dt_fit_data_text(&d->fit, d->arena);

    dt_strbuf_add_str(
        out, "# yaml-language-server: $schema=recipe.schema.json\n"
             "# Written by 'dtrun init'. With 'dtrun schema > recipe.schema.json' in this folder, "
             "editors check it;\n# docs/recipe.md describes every field.\n#\n");
    if (d->guessed)
        data = dt_arena_printf(d->arena, "%s, about %s to train on (from the file size)", data,
                               dt_format_count(items, sizeof(items), (double)d->items));
    add_comment(out, "data",
                dt_arena_printf(d->arena, "%s: %s", dt_look_kind_name(d->wish->look->kind), data));
    add_comment(out, "model",
                dt_arena_printf(
                    d->arena, "%s parameters, %s of memory a rank",
                    dt_format_count(parameters, sizeof(parameters),
                                    (double)d->flight.memory.parameter_count),
                    dt_format_bytes(bytes, sizeof(bytes), (double)d->flight.memory.total_bytes)));
    add_comment(out, "where", where(d));
    add_comment(
        out, "time",
        dt_arena_printf(d->arena, "%s (%s)", dt_fit_time_text(&d->fit, d->arena), d->fit.basis));
    add_comment(out, "next",
                "check with 'dtrun validate', test with 'dtrun smoke', run with 'dtrun launch'");
    dt_strbuf_add_str(out, "recipe: 1\n\n");
}
