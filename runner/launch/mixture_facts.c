/* mixture_facts: describes the parts of data.mixture: their shares, and how often each is read. */
#include <math.h>
#include <string.h>

#include "engine/data/mixture.h"
#include "runner/launch/preflight.h"
#include "runner/term/term.h"

/* Epochs of a part over the whole run; NAN: not known. */
static double epochs_of(const dt_preflight *flight, int64_t part)
{
    const dt_recipe *recipe = &flight->plan.recipe;
    int64_t steps = dt_preflight_steps(flight, NULL), samples = flight->data.parts[part].samples;

    if (steps <= 0 || samples <= 0)
        return NAN;
    return (double)steps * (double)dt_preflight_samples(flight) *
           dt_recipe_part_share(recipe, part) / (double)samples;
}

const char *dt_preflight_mixture_text(const dt_preflight *flight, dt_arena *arena)
{
    const dt_recipe *recipe = &flight->plan.recipe;
    char count[DT_FORMAT_SIZE];
    const char *text;
    dt_strbuf out;

    dt_strbuf_init(&out);
    for (int64_t i = 0; i < recipe->data.mixture.count; i++) {
        int64_t samples = flight->data.parts[i].samples;
        double epochs = epochs_of(flight, i);

        dt_strbuf_add_fmt(&out, "%s%s %.3g %%", i > 0 ? ", " : "", dt_recipe_part(recipe, i)->name,
                          100 * dt_recipe_part_share(recipe, i));
        if (!isnan(epochs))
            dt_strbuf_add_fmt(&out, " (%.3g epochs of %s sequences)", epochs,
                              dt_format_whole(count, sizeof(count), samples));
    }
    text = dt_arena_strdup(arena, out.data);
    dt_strbuf_release(&out);
    return text;
}

json_t *dt_preflight_mixture_to_json(const dt_preflight *flight)
{
    const dt_recipe *recipe = &flight->plan.recipe;
    json_t *list = json_array();

    for (int64_t i = 0; i < recipe->data.mixture.count; i++) {
        const dt_part_facts *facts = &flight->data.parts[i];
        json_t *part = json_object();

        json_object_set_new(part, "name", dt_json_text(dt_recipe_part(recipe, i)->name));
        json_object_set_new(part, "share", dt_json_number(dt_recipe_part_share(recipe, i)));
        json_object_set_new(part, "tokens",
                            facts->tokens > 0 ? json_integer(facts->tokens) : json_null());
        json_object_set_new(part, "sequences",
                            facts->samples > 0 ? json_integer(facts->samples) : json_null());
        json_object_set_new(part, "epochs", dt_json_number(epochs_of(flight, i)));
        json_array_append_new(list, part);
    }
    return list;
}
