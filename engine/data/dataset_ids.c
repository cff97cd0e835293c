/* dataset_ids: opens token files, which are used in place in the mapping. */
#include "engine/data/bin.h"
#include "engine/data/dataset_int.h"
#include "engine/data/tokenizer_int.h"

static dt_status map_bins(dt_token_stream *out, const dt_data_files *files, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_token_stream_init(out, files->count, err));
    for (int64_t i = 0; i < files->count; i++) {
        dt_token_piece piece = {.path = files->items[i].path};
        dt_data_file file = files->items[i];
        dt_bin_layout layout;

        DT_TRY(dt_mapping_open(&piece.mapping, file.path, err));
        file.bytes = (int64_t)piece.mapping.length; /* check the size that was mapped */
        if ((st = dt_bin_layout_read(&layout, &file, err)) != DT_OK) {
            dt_mapping_close(&piece.mapping);
            goto out;
        }
        piece.tokens = piece.mapping.bytes + layout.header_bytes;
        piece.width_bytes = layout.width_bytes;
        piece.count = layout.count;
        dt_token_stream_add(out, &piece);
    }
out:
    return st;
}

dt_status dt_dataset_open_ids(dt_dataset *dataset, const dt_data_files *train,
                              const dt_data_files *validation, const dt_recipe *recipe,
                              const dt_tokenizer *fixed, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t vocab = recipe->model.vocab;

    DT_TRY(map_bins(&dataset->train, train, err));
    DT_TRY(map_bins(&dataset->validation, validation, err));
    if (dt_tokenizer_is_file(recipe)) {
        DT_TRY(dt_tokenizer_read(&dataset->tokenizer, recipe, err));
        if (fixed != NULL)
            DT_TRY(dt_tokenizer_bpe_same(fixed, dataset->tokenizer, err));
        goto out;
    }
    if (fixed != NULL) {
        DT_TRY(dt_tokenizer_copy(&dataset->tokenizer, fixed, err));
        goto out;
    }
    if (vocab == 0) {
        int64_t a = dt_token_stream_max(&dataset->train);
        int64_t b = dt_token_stream_max(&dataset->validation);
        vocab = (a > b ? a : b) + 1;
    }
    if (vocab > INT32_MAX)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' or another data file contains the token %lld, too large for any vocabulary; "
                 "set data.tokens to the format of the file",
                 train->items[0].path, (long long)vocab - 1);
    DT_TRY(dt_tokenizer_new_ids(&dataset->tokenizer, vocab, err));
out:
    return st;
}
