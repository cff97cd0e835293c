/* tags: checks and changes the tags of runs, and reads --tag, --group and --note. */
#include "runner/cli/tags.h"

#include <ctype.h>
#include <string.h>

#include "base/names.h"
#include "base/strbuf.h"

enum { NAME_MOST = 64 };

static bool is_made_of(const char *text, const char *others)
{
    size_t length = strlen(text);

    if (length == 0 || length > NAME_MOST)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!((unsigned char)text[i] < 128 && isalnum((unsigned char)text[i])) &&
            strchr(others, text[i]) == NULL)
            return false;
    return true;
}

/* DT_ERR_USAGE if `text` is not a valid tag or group; `what` is "tag" or "group". */
static dt_status tag_check(const char *what, const char *text, dt_error *err)
{
    if (is_made_of(text, "._:/@-") && isalnum((unsigned char)text[0]))
        return DT_OK;
    return DT_FAIL(
        err, DT_ERR_USAGE,
        "%s '%s': expected 1 to 64 letters, digits or any of '._:/@-', the first a letter"
        " or a digit",
        what, text);
}

dt_status dt_run_name_check(const char *name, dt_error *err)
{
    return dt_run_name_is_valid(name) ? DT_OK
                                      : DT_FAIL(err, DT_ERR_USAGE, "the name '%s': expected %s",
                                                name, dt_run_name_expected(name));
}

/* Returns the next tag at *at and advances it; NULL after the last. */
static const char *next_tag(const char **at, size_t *length)
{
    const char *tag = *at + strspn(*at, " ");

    *length = strcspn(tag, " ");
    *at = tag + *length;
    return *length > 0 ? tag : NULL;
}

bool dt_tags_have(const char *tags, const char *tag)
{
    const char *one;
    size_t length;

    while ((one = next_tag(&tags, &length)) != NULL)
        if (strlen(tag) == length && strncmp(one, tag, length) == 0)
            return true;
    return false;
}

/* Writes `tags` with `tag` inserted in order, or with add false, without it. */
static void change_one(dt_strbuf *out, const char *tags, const char *tag, bool add)
{
    const char *one;
    size_t length;

    dt_strbuf_reset(out);
    while ((one = next_tag(&tags, &length)) != NULL) {
        int order = strncmp(one, tag, length);

        if (order == 0)
            order = strlen(tag) > length ? -1 : 0;
        if (order == 0)
            continue;
        if (order > 0 && add) {
            dt_strbuf_add_fmt(out, "%s%s", out->length > 0 ? " " : "", tag);
            add = false;
        }
        dt_strbuf_add_fmt(out, "%s%.*s", out->length > 0 ? " " : "", (int)length, one);
    }
    if (add)
        dt_strbuf_add_fmt(out, "%s%s", out->length > 0 ? " " : "", tag);
}

dt_status dt_tags_change(const char **out, const char *tags, const char *const *words, size_t count,
                         dt_arena *arena, dt_error *err)
{
    dt_strbuf next;
    dt_status st = DT_OK;

    dt_strbuf_init(&next);
    *out = tags;
    for (size_t i = 0; i < count; i++) {
        const char *tag = words[i] + (words[i][0] == '+' || words[i][0] == '-');

        DT_TRY(tag_check("tag", tag, err));
        change_one(&next, *out, tag, words[i][0] != '-');
        if (next.length > DT_TAGS_BYTES)
            DT_THROW(err, DT_ERR_USAGE, "a run can have at most %d bytes of tags", DT_TAGS_BYTES);
        *out = dt_arena_strdup(arena, next.data);
    }
out:
    dt_strbuf_release(&next);
    return st;
}

dt_status dt_label_options_read(dt_labels *out, const dt_call *call, dt_error *err)
{
    const dt_value *tags = dt_arguments_get(call->args, "tag");
    dt_status st = DT_OK;

    *out = (dt_labels){.note = dt_arguments_get(call->args, "note")->text,
                       .group = dt_arguments_get(call->args, "group")->text};
    if (out->group != NULL)
        DT_TRY(tag_check("group", out->group, err));
    for (size_t i = 0; i < tags->items_count; i++)
        DT_TRY(tag_check("tag", tags->items[i], err));
    DT_TRY(dt_tags_change(&out->tags, "", tags->items, tags->items_count, call->arena, err));
out:
    return st;
}
