/* dataset_limits: checks that data are enough to train and to validate on, and that their vocabulary fits the model. */
#include "engine/data/data_int.h"

dt_status dt_dataset_split(int64_t *before_split, const dt_recipe *recipe, int64_t train_count,
                           int64_t valid_count, dt_error *err)
{
    int64_t need = recipe->batch.tokens + 1; /* a sequence and the target of its last token */
    const char *first = recipe->data.train.items[0];

    *before_split = train_count;
    if (valid_count < 0) {
        *before_split = (int64_t)((double)train_count * (1.0 - recipe->data.split));
        valid_count = train_count - *before_split;
        if (recipe->data.split > 0 && valid_count < 2)
            return DT_FAIL(
                err, DT_ERR_RECIPE,
                "data.train ('%s') has %lld tokens, of which data.split %g leaves %lld for "
                "validation, which needs at least 2: give more text, a larger split, or 0",
                first, (long long)train_count, recipe->data.split, (long long)valid_count);
    } else if (valid_count < 2) {
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "data.validation ('%s') has 1 token and needs at least 2: give more text",
                       recipe->data.validation.items[0]);
    }
    if (*before_split < need)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "data.train ('%s') has %lld tokens%s, fewer than the %lld that one sequence "
                       "takes (batch.tokens + 1); give more text, or fewer batch.tokens",
                       first, (long long)*before_split,
                       *before_split < train_count ? " after the split" : "", (long long)need);
    return DT_OK;
}

dt_status dt_dataset_check_vocab(const dt_recipe *recipe, int64_t vocab, dt_error *err)
{
    if (recipe->model.vocab > 0 && vocab > recipe->model.vocab && dt_tokenizer_is_file(recipe))
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "model.vocab is %lld, and data.tokenizer has %lld tokens; leave model.vocab "
                       "out, set it to %lld or more, or name the model's tokenizer",
                       (long long)recipe->model.vocab, (long long)vocab, (long long)vocab);
    if (recipe->model.vocab > 0 && vocab > recipe->model.vocab)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "model.vocab is %lld, and the data have %lld different tokens; leave "
                       "model.vocab out, or set it to %lld or more",
                       (long long)recipe->model.vocab, (long long)vocab, (long long)vocab);
    return DT_OK;
}
