#include "engine/checkpoint/fit.h"

#include <string.h>

#include "engine/checkpoint/checkpoint_int.h"
#include "engine/config.h"
#include "engine/data/data.h"

#include "base/banned.h"

/* Moments of one kind are not those of the other; without any, all may be gone on from. */
static dt_status check_optimizer(const dt_checkpoint *checkpoint, const dt_recipe *recipe,
                                 int moments, dt_error *err)
{
    const char *was = checkpoint->index.info.optimizer;
    bool is_sgd = recipe->optimizer.kind == DT_OPTIMIZER_SGD, was_sgd = strcmp(was, "sgd") == 0;

    if (moments > 0 && is_sgd != was_sgd)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s' was trained with optimizer '%s', whose moments are not those of this "
                       "recipe's (resume with 'optimizer.kind=%s')",
                       checkpoint->path, was, was);
    for (int64_t i = 0; i < checkpoint->index.tensor_count; i++) {
        const dt_checkpoint_tensor *tensor = &checkpoint->index.tensors[i];

        if ((moments > 0 && tensor->pieces[DT_CHECKPOINT_M].count == 0) ||
            (moments > 1 && tensor->pieces[DT_CHECKPOINT_V].count == 0))
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "'%s' has no moments for this recipe's optimizer: it was trained with "
                           "'%s' without (resume with 'optimizer.kind=%s'%s)",
                           checkpoint->path, was, was,
                           was_sgd ? " and 'optimizer.momentum=0'" : "");
    }
    return DT_OK;
}

dt_status dt_checkpoint_fits(const dt_checkpoint *checkpoint, const dt_recipe *recipe,
                             dt_error *err)
{
    dt_strategy_options options = dt_config_strategy(recipe, 1);
    dt_tokenizer *tokenizer = NULL;
    dt_model *model = NULL;
    dt_model_config config;
    dt_status st = DT_OK;

    DT_TRY(dt_tokenizer_from_json(&tokenizer, checkpoint->index.info.tokenizer, err));
    DT_TRY(dt_config_train(&config, recipe, dt_tokenizer_vocab(tokenizer), err));
    DT_TRY(dt_model_describe(&model, &config, err));
    DT_TRY(dt_checkpoint_check_model(checkpoint, model, err));
    DT_TRY(check_optimizer(checkpoint, recipe, options.moments, err));
out:
    dt_model_description_free(model);
    dt_tokenizer_free(tokenizer);
    return st;
}
