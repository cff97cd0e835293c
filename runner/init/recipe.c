/* recipe: sizes a model for the data and the machine, and writes its recipe with comments. */
#include <math.h>
#include <string.h>

#include "base/names.h"
#include "recipes/read/reader.h"
#include "runner/init/init.h"
#include "runner/launch/nodes.h"
#include "runner/term/term.h"

/* The draft of a recipe. */

/* least_tokens: with fewer, the model memorises the data. */
typedef struct dt_init_size {
    int64_t layers, heads, embed, tokens, sequences;
    const char *lr;
    int64_t least_tokens, steps_most;
    bool gpus; /* would take days on a CPU */
} dt_init_size;

/* A draft of the recipe. */
typedef struct dt_init_draft {
    const dt_init_wish *wish;
    dt_arena *arena;
    dt_init_size of;
    int64_t items; /* tokens or rows of all training files; estimated if `guessed` */
    bool guessed, gpus;
    int64_t steps;
    dt_run_estimate estimate;
    dt_preflight flight;
} dt_init_draft;

/* Writing the draft with comments. */

static bool init_is_rows(const dt_init_draft *d)
{
    return d->wish->look->kind == DT_LOOK_ROWS;
}

static void add_data(dt_strbuf *out, const dt_init_draft *d)
{
    const dt_look *look = d->wish->look;

    dt_strbuf_add_str(out, "data:\n");
    if (look->kind == DT_LOOK_CHATS)
        dt_strbuf_add_str(out, "  format: chat\n"
                               "  pack: true            # several conversations share a sequence\n"
                               "  too_long: cut         # or drop, or refuse\n");
    dt_init_add_train(out, d->wish);
    if (look->validation.count > 0)
        dt_init_add_files(out, "validation", &look->validation);
    else
        dt_strbuf_add_str(out, "  split: 0.1            # the last tenth is for validation\n");
    if (look->kind == DT_LOOK_TEXT && d->wish->tokenizer == NULL)
        dt_strbuf_add_str(
            out, "  tokens: char          # or 'tokenizer: DIR' for the tokenizer of a model\n");
    if (d->wish->tokenizer != NULL && look->kind != DT_LOOK_ROWS) {
        dt_strbuf_add_str(out, "  tokenizer: ");
        dt_init_add_quoted(out, d->wish->tokenizer);
        dt_strbuf_add_char(out, '\n');
    }
    if (look->field != NULL) {
        dt_strbuf_add_str(out, "  field: ");
        dt_init_add_quoted(out, look->field);
        dt_strbuf_add_str(out, "        # the field that holds the text\n");
    }
}

static void add_model(dt_strbuf *out, const dt_init_draft *d)
{
    const dt_look *look = d->wish->look;

    dt_strbuf_add_str(out, "model:\n");
    if (init_is_rows(d)) {
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
    if (init_is_rows(d))
        dt_strbuf_add_fmt(out, "batch: %lld               # rows for each rank and step\n",
                          (long long)d->of.sequences);
    else
        dt_strbuf_add_fmt(
            out,
            "batch:\n  sequences: %lld         # for each rank and step\n"
            "  tokens: %lld            # of each sequence: the context of the model\n",
            (long long)d->of.sequences, (long long)d->of.tokens);
}

/* Writes the recipe without its head: the comments of the head are known after it was checked. */
static void init_add_recipe(dt_strbuf *out, const dt_init_draft *d)
{
    add_data(out, d);
    add_model(out, d);
    add_batch(out, d);
    dt_strbuf_add_fmt(out, "optimizer:\n  lr: %s\nschedule:\n  steps: %lld\n  warmup_steps: %lld\n",
                      init_is_rows(d) ? "3e-3" : d->of.lr, (long long)d->steps,
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
    dt_init_add_place(out, d->wish, d->gpus);
}

/* --- the head */

static const char *where(const dt_init_draft *d)
{
    const dt_plan *plan = &d->flight.plan;
    const char *nodes = d->wish->nodes != NULL ? d->wish->nodes : "this machine";

    if (d->estimate.gpu != NULL)
        return dt_arena_printf(d->arena, "%s, as if it had %lld %s each", nodes,
                               (long long)d->flight.ranks_on_node, d->estimate.gpu->name);
    if (d->wish->nodes != NULL)
        return dt_arena_printf(d->arena, "%s (not contacted)", nodes);
    return dt_arena_printf(
        d->arena, "%s: %s", nodes,
        strcmp(plan->ranks[0].device, DT_DEVICE_CPU) == 0
            ? dt_arena_printf(d->arena, "%lld CPU threads", (long long)plan->ranks[0].threads)
            : "its GPUs");
}

static void init_add_head(dt_strbuf *out, const dt_init_draft *d)
{
    char parameters[DT_FORMAT_SIZE], bytes[DT_FORMAT_SIZE], items[DT_FORMAT_SIZE];
    const char *data = dt_run_estimate_data_text(&d->estimate, d->arena);

    dt_init_add_schema(out);
    if (d->guessed)
        data = dt_arena_printf(d->arena, "%s, about %s to train on (from the file size)", data,
                               dt_format_count(items, sizeof(items), (double)d->items));
    dt_init_add_comment(
        out, "data",
        dt_arena_printf(d->arena, "%s: %s", dt_look_kind_name(d->wish->look->kind), data));
    dt_init_add_comment(out, "model",
                        dt_arena_printf(d->arena, "%s parameters, %s of memory a rank",
                                        dt_format_count(parameters, sizeof(parameters),
                                                        (double)d->flight.memory.parameter_count),
                                        dt_format_bytes(bytes, sizeof(bytes),
                                                        (double)d->flight.memory.total_bytes)));
    dt_init_add_comment(out, "where", where(d));
    dt_init_add_comment(out, "time",
                        dt_arena_printf(d->arena, "%s (%s)",
                                        dt_run_estimate_time_text(&d->estimate, d->arena),
                                        d->estimate.basis));
    dt_init_add_comment(
        out, "next",
        "check with 'dtrun validate', test with 'dtrun smoke', run with 'dtrun launch'");
    dt_strbuf_add_str(out, "recipe: 1\n\n");
}

/* From small to large. */
static const dt_init_size sizes[] = {
    {2, 2, 64, 32, 16, "1e-3", 0, 1000, false},
    {4, 4, 128, 64, 16, "1e-3", 200000, 2000, false},
    {6, 6, 384, 128, 16, "1e-3", 5000000, 5000, false},
    {12, 12, 768, 1024, 8, "6e-4", 50000000, 50000, true},
    {24, 16, 1024, 1024, 8, "3e-4", 1000000000, 100000, true},
    {36, 20, 1280, 1024, 8, "2.5e-4", 4000000000, 200000, true},
    {48, 25, 1600, 1024, 8, "2e-4", 8000000000, 400000, true},
};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

enum { PASSES = 10, STEPS_LEAST = 100, TOKENS_LEAST = 64, SOON_SECONDS = 3600 };

/* --- checks, as by validate */

static dt_status look(dt_init_draft *d, dt_error *err)
{
    dt_status st;
    dt_strbuf text;

    dt_strbuf_init(&text);
    init_add_recipe(&text, d);
    st = dt_init_look_at(&d->flight, &d->estimate, d->wish, dt_arena_strdup(d->arena, text.data),
                         d->arena, err);
    dt_strbuf_release(&text);
    return st;
}

/* --- the size */

static bool fits(dt_init_draft *d)
{
    dt_error tight = DT_ERROR_INIT;

    if (d->estimate.gpu != NULL)
        return dt_run_estimate_check_gpu(&d->flight, d->estimate.gpu, &tight) == DT_OK;
    return dt_preflight_fits_here(&d->flight, &d->flight.recipe, &tight);
}

/* On CPUs, avoids sizes that train for more than an hour. */
static bool is_soon(const dt_init_draft *d)
{
    return d->gpus || !(d->estimate.seconds_low > SOON_SECONDS);
}

/* Sets the number of steps from the items of a step on all ranks. */
static void set_length(dt_init_draft *d)
{
    double step = (double)(d->of.sequences * (init_is_rows(d) ? 1 : d->of.tokens));
    double steps = PASSES * (double)d->items / step;

    if (d->flight.tokens_per_step > 0)
        step = (double)d->flight.tokens_per_step;
    steps = PASSES * (double)d->items / step;
    d->steps = (int64_t)fmin(fmax(steps, STEPS_LEAST), (double)d->of.steps_most);
    for (int64_t round = 1000; round >= 10; round /= 10)
        if (d->steps > 5 * round)
            d->steps -= d->steps % round;
}

/* Shortens sequences and batches for small data. */
static void shorten(dt_init_draft *d)
{
    while (d->of.tokens > 8 && d->of.tokens * 20 > d->items)
        d->of.tokens /= 2;
    while (d->of.sequences > 1 &&
           d->of.sequences * (init_is_rows(d) ? 1 : d->of.tokens) * 4 > d->items)
        d->of.sequences /= 2;
}

static void take_size(dt_init_draft *d, int index)
{
    d->of = sizes[index];
    if (init_is_rows(d)) {
        d->of.embed = 64;
        d->of.sequences = 64;
        d->of.tokens = 1;
        d->of.steps_most = 2000;
    }
    shorten(d);
    set_length(d);
}

static int64_t guess_items(const dt_init_draft *d)
{
    const dt_look *look = d->wish->look;

    switch (look->kind) {
    case DT_LOOK_IDS:
        return look->train_bytes / 2;
    case DT_LOOK_ROWS:
        return look->train_bytes / (4 * look->columns);
    default:
        return d->wish->tokenizer != NULL ? look->train_bytes / 4 : look->train_bytes;
    }
}

/* Counts the data with the smallest size, then chooses the largest size that suits the data and fits. */
static dt_status choose(dt_init_draft *d, dt_error *err)
{
    int index = 0;
    dt_status st = DT_OK;

    d->items = guess_items(d);
    d->guessed = true;
    if (d->items < TOKENS_LEAST && !init_is_rows(d))
        DT_THROW(err, DT_ERR_USAGE, "too little data: about %lld tokens", (long long)d->items);
    take_size(d, index);
    DT_TRY(look(d, err));
    if (d->flight.data.train_tokens > 0) {
        d->items = d->flight.data.train_tokens;
        d->guessed = false;
    }
    while (!init_is_rows(d) && index + 1 < SIZES && d->items >= sizes[index + 1].least_tokens &&
           (d->gpus || !sizes[index + 1].gpus))
        index++;
    for (; index >= 0; index--) {
        take_size(d, index);
        DT_TRY(look(d, err));
        if (index == 0 || (fits(d) && is_soon(d)))
            break;
    }
    set_length(d); /* with the number of ranks */
    DT_TRY(look(d, err));
out:
    return st;
}

static bool needs_tokenizer(const dt_look *look)
{
    return look->kind == DT_LOOK_JSONL || look->kind == DT_LOOK_RECORDS ||
           look->kind == DT_LOOK_CHATS;
}

dt_status dt_init_recipe(dt_strbuf *out, const dt_init_wish *wish, dt_arena *arena, dt_error *err)
{
    dt_init_draft d = {.wish = wish, .arena = arena};
    dt_status st = DT_OK;

    if (wish->weights != NULL && wish->look->kind == DT_LOOK_CHATS)
        return dt_init_chat_recipe(out, wish, arena, err);
    if (wish->weights != NULL)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "'%s' has weights, and '%s' is %s: 'dtrun init' tunes weights on "
                       "conversations; for other data set 'model.from' in a recipe "
                       "(docs/weights.md)",
                       wish->weights, wish->look->train.items[0],
                       dt_look_kind_name(wish->look->kind));
    if (needs_tokenizer(wish->look) && wish->tokenizer == NULL)
        DT_THROW(err, DT_ERR_USAGE,
                 "'%s' is %s%s%s%s: %s need a tokenizer (--tokenizer DIR, a folder with a "
                 "tokenizer.json)%s",
                 wish->look->train.items[0], dt_look_kind_name(wish->look->kind),
                 wish->look->field != NULL ? ", with the text in '" : "",
                 wish->look->field != NULL ? wish->look->field : "",
                 wish->look->field != NULL ? "'" : "",
                 wish->look->kind == DT_LOOK_CHATS ? "they" : "documents",
                 wish->look->kind == DT_LOOK_CHATS
                     ? ", or a folder of weights to tune: dtrun init WEIGHTS CHATS"
                     : "");
    d.gpus = wish->gpus_as != NULL || (wish->nodes == NULL && dt_placement_gpus_here() > 0);
    DT_TRY(choose(&d, err));
    init_add_head(out, &d);
    init_add_recipe(out, &d);
out:
    return st;
}
