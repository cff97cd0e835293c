#include "runner/launch/preflight.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/data/files.h"
#include "engine/data/fingerprint.h"
#include "engine/weights/weights.h"

#define FILE_MOST  ((size_t)256 << 20)
#define SHOWN_MOST 200

dt_status dt_weights_preflight(dt_preflight *flight, dt_arena *arena, dt_error *err)
{
    const dt_recipe *recipe = &flight->plan.recipe;
    dt_status st = DT_OK;

    if (recipe->model.from[0] == '\0')
        return DT_OK;
    DT_TRY(dt_weights_find(&flight->plan.weights, recipe->model.from, arena, err));
    st = dt_weights_fit(&flight->plan.weights, recipe, flight->data.vocab, err);
    if (st == DT_ERR_CORRUPT) { /* the recipe names the file, so it is an error of the recipe */
        st = DT_ERR_RECIPE;
        if (err != NULL)
            err->code = st;
    }
out:
    return st;
}

dt_status dt_weights_preflight_base(dt_preflight *flight, const char *checkpoint, dt_arena *arena,
                                    dt_error *err)
{
    dt_checkpoint *adapter = NULL;
    dt_status st = DT_OK;

    if (flight->plan.recipe.lora.rank == 0)
        return DT_OK;
    DT_TRY(dt_checkpoint_open(&adapter, checkpoint, err));
    DT_TRY(dt_weights_preflight(flight, arena, err));
    DT_TRY(dt_weights_base_check(&flight->plan.weights, dt_checkpoint_get_info(adapter)->base,
                                 checkpoint, err));
out:
    dt_checkpoint_close(adapter);
    return st;
}

/* --- files that came with the weights */

static dt_status copy_file(const char *from, const char *to, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_file_read(&text, from, FILE_MOST, err));
    DT_TRY(dt_file_write_atomic(to, text.data, text.length, 0600, err));
out:
    dt_strbuf_release(&text);
    return st;
}

/* Names of files, ends with NULL. */
static const char *const of_model[] = {"config.json", "generation_config.json", NULL};
static const char *const of_tokenizer[] = {"tokenizer.json",
                                           "tokenizer.model",
                                           "tokenizer_config.json",
                                           "vocab.json",
                                           "merges.txt",
                                           "special_tokens_map.json",
                                           "added_tokens.json",
                                           "chat_template.jinja",
                                           "chat_template.json",
                                           NULL};

/* Copies those files that the folder has. */
static dt_status copy_named(const char *const *names, const char *from, const char *into,
                            dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    for (; *names != NULL; names++) {
        const char *source = dt_arena_printf(arena, "%s/%s", from, *names);
        const char *target = dt_arena_printf(arena, "%s/%s", into, *names);

        if (!dt_file_exists(source))
            continue;
        DT_TRY(dt_file_make_dirs(into, 0700, err));
        DT_TRY(copy_file(source, target, err));
    }
out:
    return st;
}

/* Copies the files of a tokenizer. */
static dt_status copy_tokenizer(const char *from, const char *into, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(copy_named(of_tokenizer, from, into, arena, err));
    DT_TRY(dt_weights_copy_templates(from, into, 0700, 0600, err));
out:
    return st;
}

/* Puts data.chat_template in the place of the folder's own: a text, or a JSON file with 'chat_template'. */
static dt_status put_template(const dt_recipe *recipe, const char *into, dt_arena *arena,
                              dt_error *err)
{
    const char *path = recipe->data.chat_template;
    const char *target = dt_arena_printf(arena, "%s/chat_template.jinja", into);
    size_t length = path != NULL ? strlen(path) : 0;
    const json_t *template;
    json_t *json = NULL;
    dt_status st = DT_OK;

    if (length == 0)
        return DT_OK;
    DT_TRY(dt_file_make_dirs(into, 0700, err));
    if (length < 6 || strcmp(path + length - 5, ".json") != 0) {
        DT_TRY(copy_file(path, target, err));
        goto out;
    }
    DT_TRY(dt_json_read_foreign(&json, path, FILE_MOST, err));
    template = json_object_get(json, "chat_template");
    if (json_is_string(template)) {
        DT_TRY(dt_file_write_atomic(target, json_string_value(template),
                                    json_string_length(template), 0600, err));
    } else { /* named ones: the file is read if there is no chat_template.jinja */
        (void)unlink(target);
        DT_TRY(copy_file(path, dt_arena_printf(arena, "%s/chat_template.json", into), err));
    }
out:
    json_decref(json);
    return st;
}

dt_status dt_weights_copy_origin(const char *from_run_folder, const dt_recipe *recipe,
                                 const char *run_folder, dt_arena *arena, dt_error *err)
{
    const char *from = dt_arena_printf(arena, "%s/" DT_WEIGHTS_ORIGIN, from_run_folder);
    const char *into = dt_arena_printf(arena, "%s/" DT_WEIGHTS_ORIGIN, run_folder);
    dt_status st = DT_OK;

    DT_TRY(copy_named(of_model, from, into, arena, err));
    DT_TRY(copy_tokenizer(from, into, arena, err));
    DT_TRY(put_template(recipe, into, arena, err));
out:
    return st;
}

/* Returns the folder of the recipe's tokenizer.json; NULL: it has no such file. */
static const char *tokenizer_folder(const dt_recipe *recipe, dt_arena *arena)
{
    const char *path = recipe->data.tokenizer, *slash;

    if (!dt_tokenizer_is_file(recipe))
        return NULL;
    if (dt_file_exists(dt_arena_printf(arena, "%s/tokenizer.json", path)))
        return path;
    slash = strrchr(path, '/');
    if (strcmp(slash != NULL ? slash + 1 : path, "tokenizer.json") != 0)
        return NULL;
    return slash != NULL ? dt_arena_printf(arena, "%.*s", (int)(slash - path), path) : ".";
}

dt_status dt_weights_keep_origin(const dt_weights_files *files, const dt_recipe *recipe,
                                 const char *run_folder, dt_arena *arena, dt_error *err)
{
    const char *into = dt_arena_printf(arena, "%s/" DT_WEIGHTS_ORIGIN, run_folder);
    const char *folder = tokenizer_folder(recipe, arena), *above;
    dt_status st = DT_OK;

    if (files->kind == DT_WEIGHTS_CHECKPOINT) {
        above =
            dt_arena_printf(arena, "%s/../..", files->folder); /* RUN/checkpoints/step-00000100 */
        DT_TRY(dt_weights_copy_origin(above, recipe, run_folder, arena, err));
        if (recipe->data.format != DT_DATA_CHAT)
            goto out;
    }
    if (files->kind == DT_WEIGHTS_HUGGINGFACE) { /* a .bin file has no other files */
        DT_TRY(copy_named(of_model, files->folder, into, arena, err));
        folder = folder == NULL && !dt_tokenizer_is_file(recipe) ? files->folder : folder;
    }
    if (folder != NULL)
        DT_TRY(copy_tokenizer(folder, into, arena, err));
    DT_TRY(put_template(recipe, into, arena, err));
out:
    return st;
}

/* --- provenance */

json_t *dt_weights_provenance(const dt_plan *plan)
{
    const dt_string_list *files = &plan->weights.files;
    json_t *digests = NULL, *list, *one;

    if (plan->weights.kind == DT_WEIGHTS_NONE)
        return NULL;
    list = json_array();
    (void)dt_fingerprint_files(&digests, files, NULL);
    for (int64_t i = 0; i < files->count && i < SHOWN_MOST; i++) {
        const json_t *digest = json_array_get(digests, (size_t)i);

        one = json_object();
        json_object_set_new(one, "path", dt_json_text(files->items[i]));
        json_object_set(one, "bytes", json_object_get(digest, "bytes"));
        json_object_set(one, "xxh3_128", json_object_get(digest, "xxh3_128"));
        json_array_append_new(list, one);
    }
    json_decref(digests);
    return json_pack("{s:o, s:s, s:o}", "from", dt_json_text(plan->recipe.model.from), "kind",
                     dt_weights_kind_name(plan->weights.kind), "files", list);
}
