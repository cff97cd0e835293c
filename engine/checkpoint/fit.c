#include "engine/checkpoint/fit.h"

#include <string.h>

#include "engine/checkpoint/checkpoint_int.h"
#include "engine/config.h"
#include "engine/data/data.h"

#include "base/banned.h"

/* States of one family are not those of another; without any, a run may resume from any. The model
 * is the checkpoint's. */
static dt_status check_optimizer(const dt_checkpoint *checkpoint, const dt_model *model,
                                 const dt_recipe *recipe, dt_error *err)
{
    const char *was = checkpoint->index.info.optimizer;
    const char *family = dt_optimizers[recipe->optimizer.kind].family;
    const dt_optimizer_facts *facts = dt_optimizer_find(was);
    bool moments = dt_optimizer_states(&recipe->optimizer, false) > 0;

    if (moments && (facts == NULL || strcmp(facts->family, family) != 0))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "'%s' was trained with optimizer '%s', whose moments are not those of this "
                       "recipe's (resume with 'optimizer.kind=%s')",
                       checkpoint->path, was, was);
    for (int i = 0; i < model->param_count; i++) {
        const dt_param *param = &model->params[i];
        int states = dt_optimizer_states(&recipe->optimizer, dt_param_is_matrix(param));
        const dt_checkpoint_tensor *tensor =
            dt_checkpoint_index_find(&checkpoint->index, param->name);

        for (int s = 0; s < states; s++)
            if (tensor->pieces[DT_CHECKPOINT_STATE + s].count == 0)
                return DT_FAIL(err, DT_ERR_RECIPE,
                               "'%s' has no moments for this recipe's optimizer: it was trained "
                               "with '%s' without (resume with 'optimizer.kind=%s'%s)",
                               checkpoint->path, was, was,
                               facts->needs_momentum ? " and 'optimizer.momentum=0'" : "");
    }
    return DT_OK;
}

dt_status dt_checkpoint_fits(const dt_checkpoint *checkpoint, const dt_recipe *recipe,
                             dt_error *err)
{
    dt_tokenizer *tokenizer = NULL;
    dt_model *model = NULL;
    dt_model_config config;
    dt_status st = DT_OK;

    DT_TRY(dt_tokenizer_from_json(&tokenizer, checkpoint->index.info.tokenizer, err));
    DT_TRY(dt_config_train(&config, recipe, dt_tokenizer_vocab(tokenizer), err));
    DT_TRY(dt_model_describe(&model, &config, err));
    DT_TRY(dt_checkpoint_check_model(checkpoint, model, err));
    DT_TRY(check_optimizer(checkpoint, model, recipe, err));
out:
    dt_model_description_free(model);
    dt_tokenizer_free(tokenizer);
    return st;
}
