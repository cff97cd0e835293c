/* dataset_text: opens text. Its bytes are the tokens, or it is scanned for its characters and
 * encoded. */
#include <stdlib.h>

#include "engine/data/dataset_int.h"
#include "engine/data/text.h"

static dt_status map_texts(dt_token_stream *out, const dt_data_files *files, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_token_stream_init(out, files->count, err));
    for (int64_t i = 0; i < files->count; i++) {
        dt_token_piece piece = {.path = files->items[i].path, .width_bytes = 1};

        DT_TRY(dt_mapping_open(&piece.mapping, piece.path, err));
        piece.tokens = piece.mapping.bytes;
        piece.count = (int64_t)piece.mapping.length;
        dt_token_stream_add(out, &piece);
    }
out:
    return st;
}

/* Collect the code points of all pieces, and count them per piece. */
static dt_status scan_texts(dt_char_set *set, dt_token_stream *stream, int64_t *counts,
                            dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < stream->piece_count; i++)
        DT_TRY(
            dt_text_scan(set, &counts[i], stream->pieces[i].path, &stream->pieces[i].mapping, err));
out:
    return st;
}

static dt_status encode_texts(dt_token_stream *out, const dt_token_stream *texts,
                              const int64_t *counts, const dt_tokenizer *tokenizer, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_token_stream_init(out, texts->piece_count, err));
    for (int64_t i = 0; i < texts->piece_count; i++) {
        dt_token_piece piece;

        DT_TRY(dt_text_encode(&piece, counts[i], texts->pieces[i].path, &texts->pieces[i].mapping,
                              tokenizer, err));
        dt_token_stream_add(out, &piece);
    }
out:
    return st;
}

dt_status dt_dataset_open_chars(dt_dataset *dataset, const dt_data_files *train,
                                const dt_data_files *validation, const dt_tokenizer *fixed,
                                dt_error *err)
{
    dt_status st = DT_OK;
    dt_char_set *set = calloc(1, sizeof(*set));
    int64_t *counts = calloc((size_t)(train->count + validation->count), sizeof(*counts));
    dt_token_stream train_text = {0}, validation_text = {0};

    if (set == NULL || counts == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a vocabulary");
    DT_TRY(map_texts(&train_text, train, err));
    DT_TRY(map_texts(&validation_text, validation, err));
    /* One vocabulary for both, so that validation has no unknown characters. */
    DT_TRY(scan_texts(set, &train_text, counts, err));
    DT_TRY(scan_texts(set, &validation_text, counts + train->count, err));
    DT_TRY(fixed != NULL ? dt_tokenizer_copy(&dataset->tokenizer, fixed, err)
                         : dt_tokenizer_new_char(&dataset->tokenizer, set, err));
    DT_TRY(encode_texts(&dataset->train, &train_text, counts, dataset->tokenizer, err));
    DT_TRY(encode_texts(&dataset->validation, &validation_text, counts + train->count,
                        dataset->tokenizer, err));
out:
    dt_token_stream_release(&train_text);
    dt_token_stream_release(&validation_text);
    free(counts);
    free(set);
    return st;
}

dt_status dt_dataset_open_bytes(dt_dataset *dataset, const dt_data_files *train,
                                const dt_data_files *validation, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(map_texts(&dataset->train, train, err));
    DT_TRY(map_texts(&dataset->validation, validation, err));
    DT_TRY(dt_tokenizer_new_byte(&dataset->tokenizer, err));
out:
    return st;
}
