/* fuzz_recipe: any bytes as a recipe. It is refused with a message, or it is good; a good one comes
 * back from its JSON, has a plan and an amount of memory. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/fields.h"
#include "recipes/memory.h"
#include "recipes/plan.h"
#include "recipes/reader.h"
#include "recipes/text.h"

#include "base/banned.h"

#define RANKS_PLANNED 64 /* larger plans only take time */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_good(const dt_recipe *recipe, dt_arena *arena)
{
    char hash[33], back_hash[33];
    const dt_memory_ranks ranks = {recipe->ranks, 1};
    dt_memory memory;
    dt_recipe back;
    dt_plan plan;
    json_t *json = dt_recipe_to_json(recipe);

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

static void check_read(const char *text, const char *set)
{
    const char *const sets[] = {set};
    const dt_recipe_source source = {"/r/fuzz.yaml", text, sets, set != NULL ? 1 : 0};
    dt_error err = DT_ERROR_INIT;
    dt_recipe recipe;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_recipe_read(&recipe, &source, &arena, &err) == DT_OK) {
        DT_ASSERT(err.code == DT_OK);
        check_good(&recipe, &arena);
    } else {
        DT_ASSERT(err.code == DT_ERR_RECIPE && err.message[0] != '\0');
        DT_ASSERT(dt_text_is_utf8(err.message));
    }
    dt_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char least[] = "model: gpt2-small\ndata: a.txt\nschedule: {steps: 100}\n";
    char *text = malloc(size + 1);

    DT_ASSERT(text != NULL);
    if (size != 0)
        memcpy(text, bytes, size);
    text[size] = '\0';
    check_read(text, NULL);
    text[strcspn(text, "\n")] = '\0'; /* its first line as an option */
    check_read(least, text);
    free(text);
    return 0;
}
