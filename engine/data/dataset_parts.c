/* dataset_parts: opens the parts of a mixture, each divided by data.split on its own (mixture.h). */
#include <stdio.h>

#include "engine/data/data_int.h"

/* "data.mixture 'wiki'", for messages. */
typedef struct part_field {
    char text[128];
} part_field;

static part_field field_of(const dt_mixture *mixture, int64_t part, const char *then)
{
    part_field field;

    snprintf(field.text, sizeof(field.text), "data.mixture '%.60s'%s", mixture->parts[part].name,
             then);
    return field;
}

/* --- text and token ids */

dt_status dt_dataset_divide_text(dt_dataset *dataset, const dt_data_files *train,
                                 const dt_recipe *recipe, bool has_validation, dt_error *err)
{
    int64_t files[DT_MIXTURE_MOST], kept[DT_MIXTURE_MOST], piece = 0, first = 0;
    int64_t valid = has_validation ? dataset->validation.count : -1;
    dt_token_stream head = {0}, tail = {0};
    dt_mixture *mixture = &dataset->mixture;
    dt_status st = DT_OK;

    dt_mixture_init(mixture, recipe);
    DT_TRY(dt_mixture_files(files, recipe, train->items[0].kind, &dataset->arena, err));
    for (int64_t i = 0; i < mixture->count; i++) {
        dt_recipe own = dt_mixture_recipe_of(recipe, i);
        int64_t tokens = 0;

        for (int64_t f = 0; f < files[i]; f++)
            tokens += dataset->train.pieces[piece++].count;
        st = dt_dataset_split(&kept[i], &own, tokens, valid, err);
        DT_TRY(dt_mixture_in_part(st, recipe, i, err));
        mixture->parts[i].first = mixture->parts[i].token_first = first;
        mixture->parts[i].count = kept[i];
        mixture->parts[i].token_end = first += kept[i];
    }
    dataset->train_count = first;
    if (has_validation)
        goto out;
    DT_TRY(dt_token_stream_divide(&head, &tail, &dataset->train, files, kept, mixture->count, err));
    dataset->train = head;
    dt_token_stream_release(&dataset->validation); /* of no file */
    dataset->validation = tail;
out:
    return st;
}

dt_status dt_dataset_pack_parts(dt_dataset *dataset, int64_t tokens, dt_error *err)
{
    dt_packs more = {0};
    dt_status st = DT_OK;

    for (int64_t i = 0; i < dataset->mixture.count; i++) {
        dt_data_part *part = &dataset->mixture.parts[i];

        DT_TRY(dt_packs_make(&more, &dataset->train, part->token_first,
                             part->token_end - part->token_first, tokens, dataset->document_end,
                             err));
        part->first = dataset->packs.count;
        part->count = more.count;
        DT_TRY(dt_packs_join(&dataset->packs, &more, err));
    }
out:
    dt_packs_release(&more);
    return st;
}

int64_t dt_dataset_train_end(const dt_dataset *dataset, int64_t token)
{
    return dataset->mixture.count > 0 ? dt_mixture_end(&dataset->mixture, token)
                                      : dataset->train_count;
}

/* --- conversations */

/* Place the conversations first .. first+count of a part, the ones from `kept` on for validation. */
static dt_status place_part(dt_dataset *dataset, int64_t index, int64_t first, int64_t count,
                            int64_t kept, const dt_chat_limits *limits, dt_error *err)
{
    dt_data_part *part = &dataset->mixture.parts[index];
    part_field field = field_of(&dataset->mixture, index, "");
    dt_chat_rows more = {0};
    dt_status st = DT_OK;

    DT_TRY(dt_chat_rows_make(&more, &dataset->chats, first, kept, limits, field.text, err));
    part->first = dataset->chat_rows.count;
    part->count = more.count;
    DT_TRY(dt_chat_rows_join(&dataset->chat_rows, &more, err));
    if (kept == count)
        goto out;
    field = field_of(&dataset->mixture, index, ", after data.split");
    DT_TRY(dt_chat_rows_make(&more, &dataset->chats, first + kept, count - kept, limits, field.text,
                             err));
    DT_TRY(dt_chat_rows_join(&dataset->valid_chat_rows, &more, err));
out:
    dt_chat_rows_release(&more);
    return st;
}

dt_status dt_dataset_place_parts(dt_dataset *dataset, const dt_data_files *train,
                                 const dt_recipe *recipe, bool has_validation, dt_error *err)
{
    dt_chat_limits limits = dt_chat_limits_of(recipe);
    int64_t files[DT_MIXTURE_MOST], piece = 0, first = 0;
    dt_mixture *mixture = &dataset->mixture;
    dt_status st = DT_OK;

    dt_mixture_init(mixture, recipe);
    DT_TRY(dt_mixture_files(files, recipe, train->items[0].kind, &dataset->arena, err));
    for (int64_t i = 0; i < mixture->count; i++) {
        dt_recipe own = dt_mixture_recipe_of(recipe, i);
        int64_t count = 0, kept;

        for (int64_t f = 0; f < files[i]; f++)
            count += dataset->chats.pieces[piece++].count;
        st = dt_chats_split(&kept, &own, count,
                            has_validation ? dataset->validation_chats.count : -1, err);
        DT_TRY(dt_mixture_in_part(st, recipe, i, err));
        DT_TRY(place_part(dataset, i, first, count, kept, &limits, err));
        first += count;
    }
    if (dataset->valid_chat_rows.chats == NULL) /* data.split is 0 */
        DT_TRY(dt_chat_rows_make(&dataset->valid_chat_rows, &dataset->chats, 0, 0, &limits,
                                 "data.mixture", err));
    DT_TRY(dt_mixture_divide(mixture, 1, 0, err));
out:
    return st;
}
