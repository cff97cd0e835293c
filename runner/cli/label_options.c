#include "runner/cli/label_options.h"

#include "runner/cli/tags.h"

dt_status dt_label_options_read(dt_labels *out, const dt_call *call, dt_error *err)
{
    const dt_value *tags = dt_arguments_get(call->args, "tag");
    dt_status st = DT_OK;

    *out = (dt_labels){.note = dt_arguments_get(call->args, "note")->text,
                       .group = dt_arguments_get(call->args, "group")->text};
    if (out->group != NULL)
        DT_TRY(dt_tag_check("group", out->group, err));
    for (size_t i = 0; i < tags->items_count; i++)
        DT_TRY(dt_tag_check("tag", tags->items[i], err));
    DT_TRY(dt_tags_change(&out->tags, "", tags->items, tags->items_count, call->arena, err));
out:
    return st;
}
