/* template: finds the chat template of a model, and its special tokens. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "engine/chat/chat_int.h"

#define CONFIG_MAX ((size_t)64 << 20) /* of tokenizer_config.json, which may contain templates */

static const char config_name[] = "tokenizer_config.json";
static const char other_name[] = "tool_use"; /* for lines with tools */

void dt_chat_template_release(dt_chat_template *template)
{
    free(template->path);
    free(template->text);
    dt_jinja_free(template->jinja);
    *template = (dt_chat_template){0};
}

/* Takes a template. `name` NULL: it is the only one of the file. */
static dt_status take(dt_chat_template *out, const char *path, const char *name, const char *text,
                      size_t length, dt_error *err)
{
    dt_strbuf shown;

    dt_chat_template_release(out);
    dt_strbuf_init(&shown);
    dt_strbuf_add_str(&shown, path);
    if (name != NULL)
        dt_strbuf_add_fmt(&shown, ", template '%.80s'", name);
    out->path = dt_strbuf_detach(&shown);
    out->text = dt_malloc(length + 1);
    memcpy(out->text, text, length);
    out->text[length] = '\0';
    return dt_jinja_parse(&out->jinja, text, length, out->path, err);
}

/* Reads a template from a file of its own, if the file exists. */
static dt_status take_file(dt_chat_template *out, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (!dt_file_exists(path))
        goto out;
    DT_TRY(dt_file_read(&text, path, DT_JINJA_MAX_BYTES, err));
    DT_TRY(take(out, path, NULL, text.data != NULL ? text.data : "", text.length, err));
out:
    dt_strbuf_release(&text);
    return st;
}

/* Takes the template of a name from [{"name": ..., "template": ...}] or {"name": "template"}. */
static dt_status take_named(dt_chat_template *out, const char *path, const json_t *templates,
                            const char *name, dt_error *err)
{
    const json_t *item, *found = json_object_get(templates, name);
    size_t i;

    json_array_foreach((json_t *)templates, i, item) {
        const char *its = json_string_value(json_object_get(item, "name"));

        if (its != NULL && strcmp(its, name) == 0)
            found = json_object_get(item, "template");
    }
    if (!json_is_string(found))
        return DT_OK;
    return take(out, path, name, json_string_value(found), json_string_length(found), err);
}

static void add_names(dt_strbuf *out, const json_t *templates)
{
    const json_t *item;
    const char *key;
    size_t i;

    json_array_foreach((json_t *)templates, i, item) {
        key = json_string_value(json_object_get(item, "name"));
        dt_strbuf_add_fmt(out, "%s'%.80s'", out->length > 0 ? ", " : "", key != NULL ? key : "");
    }
    json_object_foreach((json_t *)templates, key, item)
        dt_strbuf_add_fmt(out, "%s'%.80s'", out->length > 0 ? ", " : "", key);
}

/* Takes 'chat_template' of a JSON file, if it has one: a string, or named templates. */
static dt_status take_json(dt_chat *chat, const char *path, const char *name, dt_error *err)
{
    json_t *file = NULL;
    const json_t *found;
    dt_status st = DT_OK;
    dt_strbuf names;

    dt_strbuf_init(&names);
    if (!dt_file_exists(path))
        goto out;
    DT_TRY(dt_json_read_foreign(&file, path, CONFIG_MAX, err));
    found = json_object_get(file, "chat_template");
    if (json_is_string(found)) {
        if (name != NULL)
            DT_THROW(err, DT_ERR_NOT_FOUND,
                     "'%s' has one chat template without a name, and none "
                     "named '%.80s'",
                     path, name);
        st =
            take(&chat->main, path, NULL, json_string_value(found), json_string_length(found), err);
    } else if (json_is_array(found) || json_is_object(found)) {
        DT_TRY(take_named(&chat->main, path, found, name != NULL ? name : "default", err));
        if (name == NULL)
            DT_TRY(take_named(&chat->tools, path, found, other_name, err));
        if (chat->main.jinja == NULL) {
            add_names(&names, found);
            DT_THROW(err, DT_ERR_NOT_FOUND, "'%s' has no chat template named '%.80s' (it has %s)",
                     path, name != NULL ? name : "default", names.data);
        }
    } else if (found != NULL && !json_is_null(found)) {
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': 'chat_template' is neither a string nor a list", path);
    }
out:
    dt_strbuf_release(&names);
    json_decref(file);
    return st;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), part = strlen(end);

    return length >= part && strcmp(text + length - part, end) == 0;
}

static dt_status take_given(dt_chat *chat, const char *file, const char *name, dt_error *err)
{
    dt_status st = DT_OK;

    if (!dt_file_exists(file))
        return DT_FAIL(err, DT_ERR_NOT_FOUND, "'%s': no such file", file);
    DT_TRY(ends_with(file, ".json") ? take_json(chat, file, name, err)
                                    : take_file(&chat->main, file, err));
    if (chat->main.jinja == NULL)
        return DT_FAIL(err, DT_ERR_NOT_FOUND, "'%s' has no 'chat_template'", file);
out:
    return st;
}

dt_status dt_chat_find_templates(dt_chat *chat, const dt_chat_source *source, dt_error *err)
{
    const char *name = source->name;
    dt_status st = DT_OK;
    dt_strbuf path;

    dt_strbuf_init(&path);
    if (source->file != NULL) {
        st = take_given(chat, source->file, name, err);
        goto out;
    }
    if (source->folder == NULL)
        DT_THROW(err, DT_ERR_NOT_FOUND, "no chat template: give a file with one");
    if (name == NULL || strcmp(name, "default") == 0) {
        dt_strbuf_add_fmt(&path, "%s/chat_template.jinja", source->folder);
        DT_TRY(take_file(&chat->main, path.data, err));
    }
    dt_strbuf_reset(&path);
    dt_strbuf_add_fmt(&path, "%s/additional_chat_templates/%s.jinja", source->folder,
                      name != NULL ? name : other_name);
    DT_TRY(take_file(name != NULL ? &chat->main : &chat->tools, path.data, err));
    if (chat->main.jinja != NULL)
        goto out;
    dt_strbuf_reset(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", source->folder, config_name);
    DT_TRY(take_json(chat, path.data, name, err));
    dt_strbuf_reset(&path);
    dt_strbuf_add_fmt(&path, "%s/chat_template.json", source->folder);
    if (chat->main.jinja == NULL)
        DT_TRY(take_json(chat, path.data, name, err));
    if (chat->main.jinja == NULL)
        DT_THROW(
            err, DT_ERR_NOT_FOUND,
            "'%s' has no chat template (chat_template.jinja, or 'chat_template' in %s): give a "
            "file with one",
            source->folder, config_name);
out:
    dt_strbuf_release(&path);
    return st;
}

/* --- special tokens */

static const char *const special_names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                            "pad_token", "cls_token", "mask_token"};

/* Adds the tokens of a file that are not known yet: "</s>", or {"content": "</s>", ...}. */
static dt_status add_special(json_t *out, const char *folder, const char *name, dt_error *err)
{
    json_t *file = NULL;
    dt_status st = DT_OK;
    dt_strbuf path;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", folder, name);
    if (!dt_file_exists(path.data))
        goto out;
    DT_TRY(dt_json_read_foreign(&file, path.data, CONFIG_MAX, err));
    for (size_t i = 0; i < sizeof(special_names) / sizeof(special_names[0]); i++) {
        json_t *token = json_object_get(file, special_names[i]);

        token = json_is_object(token) ? json_object_get(token, "content") : token;
        if (json_is_string(token) && json_object_get(out, special_names[i]) == NULL)
            json_object_set(out, special_names[i], token);
    }
out:
    dt_strbuf_release(&path);
    json_decref(file);
    return st;
}

dt_status dt_chat_read_special(json_t **out, const char *folder, dt_error *err)
{
    dt_status st = DT_OK;

    *out = json_object();
    DT_ASSERT(*out != NULL);
    if (folder == NULL)
        return DT_OK;
    DT_TRY(add_special(*out, folder, config_name, err));
    DT_TRY(add_special(*out, folder, "special_tokens_map.json", err));
out:
    return st;
}
