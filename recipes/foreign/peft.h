/* peft: reads the description of an adapter in a folder of PEFT.
 *
 *   adapter_config.json          rank, scale and targets
 *   adapter_model.safetensors    A and B of each target, which the engine reads (engine/weights)
 *
 * Errors  DT_ERR_RECIPE naming the file and what dtrun does not compute: another kind of adapter, trained biases, ranks
 *         that differ, targets that are not matrices of a block. Nothing that changes the computation is ignored
 */
#ifndef DT_RECIPES_FOREIGN_PEFT_H
#define DT_RECIPES_FOREIGN_PEFT_H

#include "base/json.h"
#include "base/memory.h"
#include "recipes/architecture/architecture.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_PEFT_CONFIG "adapter_config.json"
#define DT_PEFT_MODEL  "adapter_model.safetensors"

typedef struct dt_peft {
    const char *path; /* of adapter_config.json */
    const char *base; /* base_model_name_or_path; "": not named */
    int64_t rank;
    double alpha, dropout;
    bool rslora;
    dt_string_list modules;
} dt_peft;

/* Everything is in the arena. */
dt_status dt_peft_read(dt_peft *out, const char *folder, dt_arena *arena, dt_error *err);
/* The names of the targets of the recipe's kind that the modules are, by the names of its family: a module can consist
 * of several (qkv_proj). */
dt_status dt_peft_targets(dt_string_list *out, const dt_peft *peft, const dt_recipe *recipe,
                          dt_arena *arena, dt_error *err);

#ifdef __cplusplus
}
#endif

#endif
