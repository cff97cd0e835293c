/* base: the small weights next to which a smoke test trains an adapter (`lora`). */
#include "base/file.h"
#include "recipes/fields/fields.h"
#include "runner/smoke/smoke_int.h"

enum { CHATS = 512 };

/* Conversations that any template and vocabulary can write: pairs of answers are none. */
static dt_status write_chats(const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (int i = 0; i < CHATS; i++)
        dt_strbuf_add_str(&text, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, "
                                 "{\"role\": \"assistant\", \"content\": \"a\"}]}\n");
    DT_TRY(dt_file_write_atomic(path, text.data, text.length, 0600, err));
out:
    dt_strbuf_release(&text);
    return st;
}

/* One step of the shrunk model on one rank, without the adapter. */
static dt_status train_base(dt_smoke_run *run, dt_smoke *smoke, dt_error *err)
{
    const char **train = dt_arena_alloc_array(smoke->arena, 1, sizeof(*train));
    dt_recipe recipe, plain;
    dt_status st = DT_OK;

    dt_recipe_init(&plain);
    dt_shrink_to_one(&recipe, &smoke->recipe);
    recipe.lora = plain.lora;
    recipe.dpo = plain.dpo;
    recipe.batch.sequences = recipe.batch.accumulate = 1;
    recipe.schedule.steps = 1;
    recipe.schedule.warmup_steps = recipe.schedule.period_steps = recipe.schedule.decay_steps = 0;
    recipe.evaluate.every = 0;
    if (recipe.data.format == DT_DATA_CHAT) {
        train[0] = dt_arena_printf(smoke->arena, "%s/base.jsonl", smoke->place.folder);
        DT_TRY(write_chats(train[0], err));
        recipe.data.train = (dt_string_list){train, 1};
        recipe.data.validation = (dt_string_list){NULL, 0};
        recipe.data.mixture.count = 0;
        recipe.data.split = 0;
    }
    DT_TRY(dt_smoke_train(run, &smoke->place, "base", &recipe, NULL, err));
out:
    return st;
}

dt_status dt_smoke_base(dt_smoke *smoke, dt_error *err)
{
    const char *words[] = {"export", NULL, "--to", "hf", NULL, NULL};
    json_t *answer = NULL;
    dt_smoke_run run;
    dt_status st = DT_OK;
    int exit_code = 0;

    if (smoke->command || smoke->recipe.lora.rank == 0 || smoke->wish->how.full)
        return DT_OK;
    DT_TRY(train_base(&run, smoke, err));
    smoke->recipe.model.from = dt_arena_printf(smoke->arena, "%s/base", smoke->place.folder);
    words[1] = run.row.id;
    words[4] = smoke->recipe.model.from;
    DT_TRY(dt_smoke_place_call(&answer, &exit_code, &smoke->place, words, err));
    if (exit_code != 0)
        DT_THROW(err, DT_ERR_IO, "cannot write the weights next to which the adapter is trained");
out:
    json_decref(answer);
    if (st != DT_OK)
        dt_error_prefix(err, "the small base of the adapter");
    return st;
}
