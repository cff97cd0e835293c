/* dataset_rows: opens rows, which are read into memory; each row is a sample. */
#include "engine/data/dataset_int.h"
#include "engine/data/tokenizer_int.h"

static dt_status refuse_empty(const char *field, const dt_data_files *files, dt_error *err)
{
    return DT_FAIL(err, DT_ERR_RECIPE,
                   "%s ('%s') has no row%s: give more rows, or another data.split", field,
                   files->items[0].path, files->count > 1 ? " in any of its files" : "");
}

int64_t dt_dataset_split_rows(const dt_recipe *recipe, int64_t count, bool has_validation)
{
    return has_validation ? count : (int64_t)((double)count * (1.0 - recipe->data.split));
}

dt_status dt_dataset_open_rows(dt_dataset *dataset, const dt_data_files *train,
                               const dt_data_files *validation, const dt_recipe *recipe,
                               dt_error *err)
{
    int64_t count;
    dt_status st = DT_OK;

    dataset->has_rows = true;
    dt_rows_init(&dataset->rows, recipe);
    dt_rows_init(&dataset->validation_rows, recipe);
    DT_TRY(dt_tokenizer_new_rows(&dataset->tokenizer, err));
    DT_TRY(dt_rows_read(&dataset->rows, train, err));
    DT_TRY(dt_rows_read(&dataset->validation_rows, validation, err));
    count = dataset->rows.count;
    dataset->train_count = dt_dataset_split_rows(recipe, count, validation->count > 0);
    if (validation->count > 0) {
        dataset->valid_rows = &dataset->validation_rows;
        dataset->valid_count = dataset->validation_rows.count;
        if (dataset->valid_count == 0)
            return refuse_empty("data.validation", validation, err);
    } else {
        dataset->valid_rows = &dataset->rows;
        dataset->valid_start = dataset->train_count;
        dataset->valid_count = count - dataset->train_count;
    }
    if (dataset->train_count == 0)
        return refuse_empty("data.train", train, err);
out:
    return st;
}
