#include "engine/weights/export.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/config.h"
#include "engine/data/data.h"
#include "engine/weights/export_int.h"
#include "recipes/fields/fields.h"

/* --- the checkpoint and its model */

/* Lock the checkpoint, so that the run does not prune it meanwhile. */
static dt_status hold(int *held, const char *path, dt_error *err)
{
    *held = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*held < 0 || flock(*held, LOCK_SH) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    return DT_OK;
}

static dt_status open_model(dt_weights_exporter *e, dt_error *err)
{
    const char *path = e->options->checkpoint;
    const dt_checkpoint_info *info;
    dt_model_config config;
    dt_status st = DT_OK;

    DT_TRY(hold(&e->held, path, err));
    DT_TRY(dt_checkpoint_open(&e->checkpoint, path, err));
    info = dt_checkpoint_get_info(e->checkpoint);
    DT_TRY(dt_recipe_from_json(&e->recipe, info->recipe, &e->arena, err));
    DT_TRY(dt_huggingface_family(&e->family, &e->recipe, err));
    DT_TRY(dt_tokenizer_from_json(&e->tokenizer, info->tokenizer, err));
    DT_TRY(dt_tokenizer_load(e->tokenizer, path, err));
    (void)dt_tokenizer_set_end_of_text(e->tokenizer, &e->recipe);
    e->vocab = e->recipe.model.vocab > 0 ? e->recipe.model.vocab : dt_tokenizer_vocab(e->tokenizer);
    DT_TRY(dt_config_train(&config, &e->recipe, e->vocab, err));
    DT_TRY(dt_model_describe(&e->model, &config, err));
    e->result->step = info->step;
    snprintf(e->result->model_type, sizeof(e->result->model_type), "%s", e->family->model_type);
out:
    return st;
}

/* --- the folder */

static bool is_empty(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    bool empty = folder != NULL;

    while (empty && (entry = readdir(folder)) != NULL)
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    if (folder != NULL)
        closedir(folder);
    return empty;
}

static dt_status begin(dt_weights_exporter *e, dt_error *err)
{
    const char *output = e->options->output;
    size_t length = strlen(output);
    dt_status st = DT_OK;

    while (length > 1 && output[length - 1] == '/')
        length--;
    if (dt_file_exists(output) && !is_empty(output))
        DT_THROW(err, DT_ERR_USAGE, "'%s' already exists and is not empty: name another folder",
                 output);
    dt_strbuf_add(&e->final, output, length);
    dt_strbuf_add_fmt(&e->folder, "%s.partial-%d", e->final.data, (int)getpid());
    if (mkdir(e->folder.data, 0777) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot make '%s': %s", e->folder.data, strerror(errno));
    e->begun = true;
out:
    return st;
}

dt_status dt_weights_export_open(int *fd, dt_weights_exporter *e, const char *name, dt_error *err)
{
    dt_strbuf_reset(&e->path);
    dt_strbuf_add_fmt(&e->path, "%s/%s", e->folder.data, name);
    *fd = open(e->path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot make '%s': %s", e->path.data, strerror(errno));
    return DT_OK;
}

dt_status dt_weights_export_close(int fd, const dt_weights_exporter *e, dt_error *err)
{
    int failed = fsync(fd);

    if (close(fd) != 0 || failed != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", e->path.data, strerror(errno));
    return DT_OK;
}

dt_status dt_weights_export_put(dt_weights_exporter *e, const char *name, const char *bytes,
                                size_t length, dt_error *err)
{
    int fd = -1;
    dt_status st = DT_OK, closed;

    DT_TRY(dt_weights_export_open(&fd, e, name, err));
    st = dt_file_write_all(fd, bytes, length, err);
    closed = dt_weights_export_close(fd, e, st == DT_OK ? err : NULL);
    st = st == DT_OK ? closed : st;
out:
    return st;
}

dt_status dt_weights_export_put_json(dt_weights_exporter *e, const char *name, const json_t *json,
                                     dt_error *err)
{
    dt_strbuf whole, text;
    dt_status st;

    dt_strbuf_init(&whole);
    dt_strbuf_init(&text);
    dt_json_write_pretty(&whole, json);
    dt_json_shorten(&text, whole.data);
    dt_strbuf_add_char(&text, '\n');
    st = dt_weights_export_put(e, name, text.data, text.length, err);
    dt_strbuf_release(&whole);
    dt_strbuf_release(&text);
    return st;
}

static dt_status finish(const dt_weights_exporter *e, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_file_sync_dir(e->folder.data, err));
    DT_TRY(dt_file_name(e->folder.data, e->final.data, true, err));
out:
    return st;
}

dt_status dt_weights_export(dt_weights_export_result *out, const dt_weights_export_options *options,
                            dt_error *err)
{
    dt_weights_exporter e = {.options = options, .result = out, .held = -1};
    dt_status st = DT_OK;

    *out = (dt_weights_export_result){0};
    dt_arena_init(&e.arena, 0);
    dt_strbuf_init(&e.final);
    dt_strbuf_init(&e.folder);
    dt_strbuf_init(&e.path);
    DT_TRY(open_model(&e, err));
    DT_TRY(begin(&e, err));
    DT_TRY(dt_weights_export_files(&e, err));
    DT_TRY(dt_weights_export_tensors(&e, err));
    DT_TRY(finish(&e, err));
    e.begun = false;
out:
    if (e.begun)
        (void)dt_file_remove_tree(e.folder.data, NULL);
    dt_model_description_free(e.model);
    dt_tokenizer_free(e.tokenizer);
    dt_checkpoint_close(e.checkpoint);
    if (e.held >= 0)
        close(e.held);
    dt_strbuf_release(&e.final);
    dt_strbuf_release(&e.folder);
    dt_strbuf_release(&e.path);
    dt_arena_release(&e.arena);
    return st;
}
