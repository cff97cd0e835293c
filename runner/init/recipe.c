#include "runner/init/recipe.h"

#include <math.h>

#include "recipes/read/reader.h"
#include "runner/init/recipe_int.h"
#include "runner/launch/placement.h"

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

static dt_status look_at_recipe(dt_init_draft *d, const char *text, dt_error *err)
{
    const dt_gpu_spec *gpu = NULL;
    dt_recipe *recipe = dt_arena_alloc(d->arena, sizeof(*recipe));
    dt_recipe_source source = {.path = d->wish->path, .text = text, .unwritten = true};
    dt_status st = DT_OK;

    DT_TRY(dt_recipe_read(recipe, &source, d->arena, err));
    if (d->wish->gpus_as != NULL)
        DT_TRY(dt_fit_preflight(&d->flight, &gpu, recipe, NULL, d->wish->gpus_as, d->arena, err));
    else
        DT_TRY(dt_preflight_recipe(&d->flight, recipe, NULL, d->arena, err));
    DT_TRY(dt_fit_make(&d->fit, &d->flight, gpu, d->arena, err));
out:
    return st;
}

static dt_status look(dt_init_draft *d, dt_error *err)
{
    dt_status st;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_init_add_recipe(&text, d);
    st = look_at_recipe(d, dt_arena_strdup(d->arena, text.data), err);
    dt_strbuf_release(&text);
    return st;
}

/* --- the size */

static bool fits(dt_init_draft *d)
{
    dt_error tight = DT_ERROR_INIT;

    if (d->fit.gpu != NULL)
        return dt_fit_check_gpu(&d->flight, d->fit.gpu, &tight) == DT_OK;
    return dt_preflight_fits_here(&d->flight, &d->flight.recipe, &tight);
}

/* On CPUs, avoids sizes that train for more than an hour. */
static bool is_soon(const dt_init_draft *d)
{
    return d->gpus || !(d->fit.seconds_low > SOON_SECONDS);
}

/* Sets the number of steps from the items of a step on all ranks. */
static void set_length(dt_init_draft *d)
{
    double step = (double)(d->of.sequences * (dt_init_is_rows(d) ? 1 : d->of.tokens));
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
           d->of.sequences * (dt_init_is_rows(d) ? 1 : d->of.tokens) * 4 > d->items)
        d->of.sequences /= 2;
}

static void take_size(dt_init_draft *d, int index)
{
    d->of = sizes[index];
    if (dt_init_is_rows(d)) {
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
    if (d->items < TOKENS_LEAST && !dt_init_is_rows(d))
        DT_THROW(err, DT_ERR_USAGE, "too little data: about %lld tokens", (long long)d->items);
    take_size(d, index);
    DT_TRY(look(d, err));
    if (d->flight.data.train_tokens > 0) {
        d->items = d->flight.data.train_tokens;
        d->guessed = false;
    }
    while (!dt_init_is_rows(d) && index + 1 < SIZES && d->items >= sizes[index + 1].least_tokens &&
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
    return look->kind == DT_LOOK_JSONL || look->kind == DT_LOOK_RECORDS;
}

dt_status dt_init_recipe(dt_strbuf *out, const dt_init_wish *wish, dt_arena *arena, dt_error *err)
{
    dt_init_draft d = {.wish = wish, .arena = arena};
    dt_status st = DT_OK;

    if (needs_tokenizer(wish->look) && wish->tokenizer == NULL)
        DT_THROW(err, DT_ERR_USAGE,
                 "'%s' is %s, with the text in '%s': documents need a tokenizer "
                 "(--tokenizer DIR, a folder with a tokenizer.json)",
                 wish->look->train.items[0], dt_look_kind_name(wish->look->kind),
                 wish->look->field);
    d.gpus = wish->gpus_as != NULL || (wish->nodes == NULL && dt_placement_gpus_here() > 0);
    DT_TRY(choose(&d, err));
    dt_init_add_head(out, &d);
    dt_init_add_recipe(out, &d);
out:
    return st;
}
