/* fuzz_recipe: any bytes as a recipe, as a layer on another, as two layers, or as an option (ways.h). It
 * is refused with a message, or accepted; an accepted recipe that trains is read back from its
 * JSON, has a plan and a memory forecast. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/cost/memory.h"
#include "recipes/fields/fields.h"
#include "recipes/fields/text.h"
#include "recipes/plan/plan.h"
#include "recipes/read/reader.h"
#include "tests/fuzz/ways.h"

#define RANKS_PLANNED 64 /* larger plans only take time */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_good(const dt_recipe *recipe, dt_arena *arena)
{
    char hash[33], back_hash[33];
    const dt_memory_ranks ranks = {.world_size = recipe->ranks, .replicas = 1};
    dt_memory memory;
    dt_recipe back;
    dt_plan plan;
    json_t *json = dt_recipe_to_json(recipe);

    if (recipe->task != DT_TASK_TRAIN) { /* complete only with the recipe of a checkpoint */
        json_decref(json);
        return;
    }
    DT_ASSERT(dt_recipe_from_json(&back, json, arena, NULL) == DT_OK);
    json_decref(json);
    dt_recipe_hash(hash, recipe);
    dt_recipe_hash(back_hash, &back);
    DT_ASSERT(strcmp(hash, back_hash) == 0);
    dt_memory_estimate(&memory, recipe, 0, &ranks);
    DT_ASSERT(memory.total_bytes > 0);
    if (recipe->ranks > RANKS_PLANNED)
        return;
    DT_ASSERT(dt_plan_make(&plan, recipe, 2, arena, NULL) == DT_OK);
    plan.run = "k3v9x2";
    plan.attempt = 1;
    plan.directory = "/runs";
    json = dt_plan_to_json(&plan);
    DT_ASSERT(dt_plan_from_json(&plan, json, arena, NULL) == DT_OK);
    json_decref(json);
}

/* Origins can be shown, and their chains end. */
static void check_told(const dt_problems *problems, const dt_origins *origins)
{
    json_t *json = dt_problems_to_json(problems), *document;
    dt_strbuf place;

    dt_strbuf_init(&place);
    DT_ASSERT(json_array_size(json) == problems->count);
    for (size_t i = 0; i < problems->count; i++) {
        dt_problem_write_place(&place, &problems->items[i]);
        DT_ASSERT(dt_text_is_utf8(problems->items[i].message));
    }
    DT_ASSERT(dt_text_is_utf8(place.data));
    dt_strbuf_release(&place);
    document = dt_origins_document(origins, NULL);
    DT_ASSERT(document != NULL);
    json_decref(document);
    json_decref(json);
}

/* `set` and `layer` may be NULL. */
static void check_read(const char *text, const char *set, const char *layer)
{
    const char *const sets[] = {set};
    const dt_problem_source layers[] = {{"/r/layer.yaml", layer}};
    dt_origins origins;
    const dt_recipe_source source = {.path = "/r/fuzz.yaml",
                                     .text = text,
                                     .sets = sets,
                                     .sets_count = set != NULL ? 1 : 0,
                                     .layers = layers,
                                     .layers_count = layer != NULL ? 1 : 0,
                                     .origins = &origins};
    dt_error err = DT_ERROR_INIT;
    dt_problems problems;
    dt_recipe recipe;
    dt_arena arena;
    dt_status st;

    dt_arena_init(&arena, 0);
    dt_problems_init(&problems, &arena);
    st = dt_recipe_read_all(&recipe, &source, &problems, &arena, &err);
    DT_ASSERT((st == DT_OK) == (problems.errors == 0));
    check_told(&problems, &origins);
    if (st == DT_OK) {
        DT_ASSERT(err.code == DT_OK);
        check_good(&recipe, &arena);
    } else {
        DT_ASSERT(err.code == DT_ERR_RECIPE && err.message[0] != '\0');
        DT_ASSERT(dt_text_is_utf8(err.message));
    }
    dt_arena_release(&arena);
}

static const char least[] = "model: gpt2-small\ndata: a.txt\nschedule: {steps: 100}\n";

static void as_recipe(char *text)
{
    check_read(text, NULL, NULL);
}

static void as_layer(char *text)
{
    check_read(least, NULL, text);
}

/* Writes both with an empty line between them. */
static void as_two_layers(char *text)
{
    char *rest = strstr(text, "\n\n");

    if (rest == NULL) {
        check_read(text, NULL, text);
        return;
    }
    *rest = '\0';
    check_read(text, NULL, rest + 2);
    *rest = '\n';
}

/* Returns its first line. */
static void as_option(char *text)
{
    char *end = text + strcspn(text, "\n"), was = *end;

    *end = '\0';
    check_read(least, text, NULL);
    *end = was;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static void (*const ways[])(char *) = {as_recipe, as_layer, as_two_layers, as_option};
    fuzz_ways taken = fuzz_ways_of(bytes, size, sizeof(ways) / sizeof(ways[0]));
    char *text = malloc(size + 1);

    DT_ASSERT(text != NULL);
    DT_ASSERT(setenv("LR", "1e-4", 1) == 0 && setenv("NAME", "${env:LR}\n[", 1) == 0);
    if (size != 0)
        memcpy(text, bytes, size);
    text[size] = '\0';
    for (size_t i = taken.first; i < taken.end; i++)
        ways[i](text);
    free(text);
    return 0;
}
