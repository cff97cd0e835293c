#include "recipes/foreign/peft.h"

#include <string.h>

#include "base/file.h"
#include "recipes/architecture/decoder.h"
#include "recipes/architecture/published.h"
#include "recipes/foreign/huggingface.h"

#define CONFIG_MOST ((size_t)4 << 20)

/* Fields that must be empty (false, null, an empty list or object), and what else they mean. */
static const struct {
    const char *key, *means;
} unsupported[] = {
    {"use_dora", "DoRA"},
    {"use_qalora", "QALoRA"},
    {"rank_pattern", "ranks that differ between modules"},
    {"alpha_pattern", "scales that differ between modules"},
    {"modules_to_save", "modules that are trained as a whole"},
    {"exclude_modules", "excluded modules"},
    {"layers_to_transform", "adapters in some layers alone"},
    {"layer_replication", "repeated layers"},
    {"target_parameters", "targets that are not modules"},
    {"trainable_token_indices", "trained tokens"},
    {"lora_bias", "biases of B"},
    {"megatron_config", "Megatron's layers"},
};

static bool is_empty(const json_t *value)
{
    return value == NULL || json_is_null(value) || json_is_false(value) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

static dt_status check_supported(const json_t *config, const char *path, dt_error *err)
{
    const char *kind = json_string_value(json_object_get(config, "peft_type"));
    const char *bias = json_string_value(json_object_get(config, "bias"));

    if (kind == NULL || strcmp(kind, "LORA") != 0)
        return DT_FAIL(err, DT_ERR_RECIPE, "'%s': 'peft_type' is '%s'; expected LORA", path,
                       kind != NULL ? kind : "");
    if (bias != NULL && strcmp(bias, "none") != 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s': 'bias' is '%s': trained biases are not supported; expected none",
                       path, bias);
    for (size_t i = 0; i < sizeof(unsupported) / sizeof(unsupported[0]); i++)
        if (!is_empty(json_object_get(config, unsupported[i].key)))
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "'%s': '%s' is set, which dtrun does not support: %s", path,
                           unsupported[i].key, unsupported[i].means);
    return DT_OK;
}

static dt_status read_modules(dt_string_list *out, const json_t *modules, const char *path,
                              dt_arena *arena, dt_error *err)
{
    size_t count = json_array_size(modules);
    const char **items = dt_arena_alloc_array(arena, count + 1, sizeof(items[0]));

    if (count == 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s': 'target_modules' is not a list of names, such as [\"q_proj\", "
                       "\"v_proj\"]",
                       path);
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(modules, i));

        if (name == NULL)
            return DT_FAIL(err, DT_ERR_RECIPE, "'%s': 'target_modules' is not a list of names",
                           path);
        items[i] = dt_arena_strdup(arena, name);
    }
    *out = (dt_string_list){items, (int64_t)count};
    return DT_OK;
}

dt_status dt_peft_read(dt_peft *out, const char *folder, dt_arena *arena, dt_error *err)
{
    const char *path = dt_arena_printf(arena, "%s/" DT_PEFT_CONFIG, folder), *base;
    json_t *config = NULL;
    dt_error problem = DT_ERROR_INIT;
    dt_status st = dt_json_read_foreign(&config, path, CONFIG_MOST, &problem);

    *out = (dt_peft){.path = path};
    if (st != DT_OK) {
        DT_FAIL(err, DT_ERR_RECIPE, "'%s' is not a folder of PEFT: %s", folder, problem.message);
        return DT_ERR_RECIPE;
    }
    DT_TRY(check_supported(config, path, err));
    base = json_string_value(json_object_get(config, "base_model_name_or_path"));
    out->base = dt_arena_strdup(arena, base != NULL ? base : "");
    out->rank = json_integer_value(json_object_get(config, "r"));
    out->alpha = json_number_value(json_object_get(config, "lora_alpha"));
    out->dropout = json_number_value(json_object_get(config, "lora_dropout"));
    out->rslora = json_is_true(json_object_get(config, "use_rslora"));
    if (out->rank < 1 || out->rank > DT_LORA_RANK_MAX || !(out->alpha > 0))
        DT_THROW(err, DT_ERR_RECIPE, "'%s': 'r' is %lld and 'lora_alpha' %g; expected 1 or more",
                 path, (long long)out->rank, out->alpha);
    DT_TRY(
        read_modules(&out->modules, json_object_get(config, "target_modules"), path, arena, err));
out:
    json_decref(config);
    return st;
}

/* As PEFT compares: the module's name is the whole name, or its end after a dot. */
static bool is_module(const char *weight, const char *module)
{
    size_t length = strlen(weight) - strlen(".weight"), end = strlen(module);

    return end <= length && strncmp(weight + length - end, module, end) == 0 &&
           (end == length || weight[length - end - 1] == '.');
}

/* The family's name of a target's weight. */
static const char *name_in(const dt_published *family, const dt_architecture *kind,
                           const dt_lora_target *target, dt_arena *arena)
{
    const char *ours = dt_arena_printf(arena, "%s*.%s", kind->rows->block_prefix, target->weight);

    for (const dt_published_tensor *row = family->tensors; row->ours != NULL; row++)
        if (strcmp(row->ours, ours) == 0)
            return row->theirs;
    return target->weight;
}

dt_status dt_peft_targets(dt_string_list *out, const dt_peft *peft, const dt_recipe *recipe,
                          dt_arena *arena, dt_error *err)
{
    const dt_architecture *kind = dt_architecture_find(recipe->model.kind);
    const char **items = dt_arena_alloc_array(arena, 32, sizeof(items[0]));
    const dt_published *family;
    uint32_t bits = 0;
    dt_status st = DT_OK;

    *out = (dt_string_list){items, 0};
    DT_TRY(dt_huggingface_family(&family, recipe, err));
    for (int64_t i = 0; i < peft->modules.count; i++) {
        uint32_t before = bits;

        for (int t = 0; kind->targets != NULL && kind->targets[t].name != NULL; t++)
            if (is_module(name_in(family, kind, &kind->targets[t], arena), peft->modules.items[i]))
                bits |= UINT32_C(1) << t;
        if (bits == before)
            DT_THROW(err, DT_ERR_RECIPE,
                     "'%s': 'target_modules' has '%s', which is not a matrix of a block of a "
                     "model of type '%s', or is there twice",
                     peft->path, peft->modules.items[i], family->model_type);
    }
    for (int t = 0; kind->targets != NULL && kind->targets[t].name != NULL; t++)
        if (bits >> t & 1)
            items[out->count++] = kind->targets[t].name;
out:
    return st;
}
