/* Rules across fields, and what this version cannot do yet: recipes/reading.h. */
#include <string.h>

#include "recipes/architecture/architecture.h"
#include "recipes/durations.h"
#include "recipes/nodes.h"
#include "recipes/reading.h"
#include "recipes/secret.h"

#include "base/banned.h"

#define NAME_MAX_LENGTH 64

/* Fails at the mark of `path`. */
#define REFUSE(reading, path, ...)                        \
    (DT_FAIL((reading)->err, DT_ERR_RECIPE, __VA_ARGS__), \
     dt_text_mark_prefix((reading)->err, dt_reading_mark((reading), (path))), DT_ERR_RECIPE)

/* It names folders and is typed in commands. */
static dt_status check_name(const dt_reading *reading)
{
    static const char taken[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const char *name = reading->recipe->name;
    size_t length = strlen(name);
    dt_strbuf shown;
    dt_status st;

    if (length >= 1 && length <= NAME_MAX_LENGTH && strspn(name, taken) == length &&
        name[0] != '-' && name[0] != '.')
        return DT_OK;
    dt_strbuf_init(&shown);
    dt_text_show_word(&shown, name);
    st = REFUSE(reading, "name",
                "'name' is %s%s: expected 1 to 64 letters, digits, '.', '_' or '-', the first "
                "neither '.' nor '-'",
                shown.data, name == reading->stem ? " (from the file's name)" : "");
    dt_strbuf_release(&shown);
    return st;
}

static dt_status check_nodes(const dt_reading *reading)
{
    const dt_recipe *recipe = reading->recipe;
    int64_t here = 0, count = recipe->nodes.count,
            slurm = dt_node_slurm_count(recipe->nodes.items[0]);
    dt_status st = DT_OK;

    for (int64_t i = 0; i < recipe->nodes.count; i++) {
        dt_node_spec spec;

        DT_TRY(dt_node_spec_parse(&spec, recipe->nodes.items[i], reading->arena, reading->err));
        if (dt_node_is_here(spec.destination) && strchr(spec.destination, '#') == NULL)
            here++;
    }
    if (here > 1)
        return REFUSE(reading, "nodes",
                      "'nodes' names this machine twice: set 'ranks' for more "
                      "processes on it");
    if (slurm > 0)
        count = slurm;
    if (recipe->nodes_min > count && (slurm > 0 || !dt_node_is_slurm(recipe->nodes.items[0])))
        return REFUSE(reading, "nodes_min", "'nodes_min' is %lld, and there are only %lld nodes",
                      (long long)recipe->nodes_min, (long long)count);
    if (recipe->strategy.kind == DT_STRATEGY_DP && count > 1)
        return REFUSE(reading, "strategy.kind",
                      "'strategy' is 'dp', which trains in one process on one node: with several "
                      "nodes take 'ddp'");
out:
    return st;
}

static dt_status check_tensor(const dt_reading *reading)
{
    if (reading->recipe->tensor == 1)
        return DT_OK;
    return REFUSE(reading, "tensor",
                  "'tensor' is %lld: tensor parallel comes with a later dtrun (leave it at 1; "
                  "'strategy: fsdp' divides the model among the ranks)",
                  (long long)reading->recipe->tensor);
}

/* They go to sbatch as they are; what would make it another kind of job is refused. */
static dt_status check_slurm(const dt_reading *reading)
{
    static const char *const taken[] = {"--array",    "--nodes",     "--ntasks-per-node",
                                        "--parsable", "--test-only", "--output",
                                        "--chdir",    "--wait",      "--wrap",
                                        "--requeue"};
    const dt_string_list *options = &reading->recipe->slurm.options;

    for (int64_t i = 0; i < options->count; i++) {
        const char *option = options->items[i];
        size_t name = strcspn(option, "=");

        if (strncmp(option, "--", 2) != 0 || name < 3)
            return REFUSE(reading, "slurm.options",
                          "'slurm.options' takes options of sbatch in their long form, as in "
                          "'--partition=gpu'");
        for (size_t k = 0; k < sizeof(taken) / sizeof(taken[0]); k++)
            if (strlen(taken[k]) == name && strncmp(taken[k], option, name) == 0)
                return REFUSE(reading, "slurm.options",
                              "'slurm.options': '%s' is dtrun's own to set (nodes, ranks and "
                              "threads of the recipe say what is asked for)",
                              taken[k]);
    }
    return DT_OK;
}

static dt_status check_failure(const dt_reading *reading)
{
    double seconds;

    if (dt_launcher_lost_seconds(&seconds, reading->recipe->failure.launcher_lost))
        return DT_OK;
    return REFUSE(reading, "failure.launcher_lost",
                  "'failure.launcher_lost' is neither 'continue' nor a time of at most 3650 days, "
                  "as in 'stop_after 10m'");
}

/* Whether a field is as it was in the earlier recipe that this one resumes from. */
static bool is_resolved(const dt_reading *reading, const char *path)
{
    return reading->resolved != NULL && dt_reading_mark(reading, path)->source == reading->resolved;
}

/* The address may be a secret: no message repeats it. */
static dt_status check_notify(const dt_reading *reading)
{
    static const char *const good[] = {"http://", "https://", "${env:"};
    const char *webhook = reading->recipe->notify.webhook;

    const char *secret = dt_url_secret(webhook, DT_URL_WEBHOOK);
    bool known = webhook[0] == '\0';

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        known = known || strncmp(webhook, good[i], strlen(good[i])) == 0;
    if (!known)
        return REFUSE(reading, "notify.webhook",
                      "'notify.webhook' is no URL: expected one that begins with 'https://', "
                      "'http://' or '${env:NAME}'");
    /* a run that began with one continues: it is in its history already */
    if (secret == NULL || is_resolved(reading, "notify.webhook"))
        return DT_OK;
    return REFUSE(reading, "notify.webhook",
                  "'notify.webhook' holds %s, and a recipe is kept and shown in many places: "
                  "'export HOOK=...' that part or the whole address before 'dtrun launch', and "
                  "write '${env:HOOK}' instead",
                  secret);
}

static dt_status check_optimizer(const dt_reading *reading)
{
    const dt_recipe *recipe = reading->recipe;

    if (recipe->optimizer.nesterov && recipe->optimizer.momentum == 0)
        return REFUSE(reading, "optimizer.nesterov",
                      "'optimizer.nesterov' needs 'optimizer.momentum' above 0");
    if (recipe->optimizer.adamw_lr > 0 && !dt_optimizers[recipe->optimizer.kind].whole_matrices)
        return REFUSE(reading, "optimizer.adamw_lr",
                      "'optimizer.adamw_lr' is for an optimizer that leaves some parameters to "
                      "AdamW, and '%s' steps them all: set 'optimizer.lr'",
                      dt_optimizers[recipe->optimizer.kind].name);
    return DT_OK;
}

/* What one kind of model has and another lacks is refused where it is given, and not left without
 * effect. */
static dt_status check_model_fields(const dt_reading *reading)
{
    static const struct {
        const char *path;
        bool rows; /* of models on rows, else of those on tokens */
    } fields[] = {
        {"model.preset", false},
        {"model.heads", false},
        {"model.vocab", false},
        {"model.dropout", false},
        {"model.attention_dropout", false},
        {"model.positions", false},
        {"model.scale_embedding", false},
        {"model.tied", false},
        {"batch.tokens", false},
        {"data.tokens", false},
        {"model.inputs", true},
        {"model.outputs", true},
        {"model.loss", true},
    };
    const dt_architecture *architecture = dt_architecture_find(reading->recipe->model.kind);

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        const char *source = reading->field[dt_reading_row(fields[i].path)].source;

        if (fields[i].rows != architecture->reads_rows && source != NULL &&
            source != reading->resolved && reading->node[dt_reading_row(fields[i].path)] != NULL)
            return REFUSE(reading, fields[i].path, "'%s' has no effect on a model of kind '%s'",
                          fields[i].path, architecture->name);
    }
    return DT_OK;
}

static dt_status check_rows(const dt_reading *reading)
{
    const dt_recipe *recipe = reading->recipe;

    if (!dt_architecture_find(recipe->model.kind)->reads_rows)
        return DT_OK;
    if (recipe->model.inputs == 0)
        return REFUSE(reading, "model.inputs",
                      "'model.inputs' is missing: how many columns of a row go in");
    if (recipe->model.outputs == 0)
        return REFUSE(reading, "model.outputs",
                      "'model.outputs' is missing: how many classes there are, or how many numbers "
                      "are predicted");
    return DT_OK;
}

static dt_status check_heads(const dt_reading *reading)
{
    long long heads = reading->recipe->model.heads, embed = reading->recipe->model.embed;
    long long below = heads, above = heads;

    if (embed % heads == 0)
        return DT_OK;
    while (below > 1 && embed % below != 0)
        below--;
    while (above < embed && embed % above != 0)
        above++;
    if (heads > embed)
        above = embed;
    if (below < above)
        return REFUSE(reading, "model.heads",
                      "'model.heads' %lld does not divide 'model.embed' %lld: the nearest that do "
                      "are %lld and %lld",
                      heads, embed, below, above);
    return REFUSE(reading, "model.heads",
                  "'model.heads' %lld does not divide 'model.embed' %lld: the nearest that does is "
                  "%lld",
                  heads, embed, above);
}

static dt_status check_schedule(const dt_reading *reading)
{
    const dt_recipe *recipe = reading->recipe;

    if (recipe->schedule.steps == 0 && recipe->schedule.epochs == 0)
        return REFUSE(reading, "schedule.steps",
                      "'schedule.steps' is missing (length of the whole run): give it, or "
                      "'schedule.epochs'");
    if (recipe->schedule.steps > 0 && recipe->schedule.warmup_steps > recipe->schedule.steps)
        return REFUSE(reading, "schedule.warmup_steps",
                      "'schedule.warmup_steps' %lld is over 'schedule.steps' %lld",
                      (long long)recipe->schedule.warmup_steps, (long long)recipe->schedule.steps);
    if (recipe->schedule.min_lr > recipe->optimizer.lr)
        return REFUSE(reading, "schedule.min_lr", "'schedule.min_lr' %g is over 'optimizer.lr' %g",
                      recipe->schedule.min_lr, recipe->optimizer.lr);
    return DT_OK;
}

/* Data by URL: what comes is only trusted for its digest (runner/fetch/fetch.h reads the rest). */
static dt_status check_urls(const dt_reading *reading, const char *path, const dt_string_list *list)
{
    static const char key[] = "#sha256=";

    for (int64_t i = 0; i < list->count; i++) {
        const char *url = list->items[i], *digest = strstr(url, key), *secret;

        if (strstr(url, "://") == NULL)
            continue;
        secret = dt_url_secret(url, DT_URL_DATA);
        if (secret != NULL && !is_resolved(reading, path))
            return REFUSE(reading, path,
                          "'%s' has a URL that holds %s, and a recipe is kept and shown in many "
                          "places: put a name and password into ~/.netrc, or fetch the file first "
                          "and name that",
                          path, secret);
        if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
            return REFUSE(reading, path, "'%s' has a URL that is neither https:// nor http://",
                          path);
        if (digest == NULL || strspn(digest + sizeof(key) - 1, "0123456789abcdefABCDEF") != 64 ||
            digest[sizeof(key) - 1 + 64] != '\0')
            return REFUSE(reading, path,
                          "'%s' has a URL without a digest: end it with '#sha256=' and the 64 "
                          "digits that its publisher names, or 'sha256sum' gives of a copy that "
                          "you trust",
                          path);
    }
    return DT_OK;
}

/* `data.split` has no effect beside validation files; on an earlier recipe every field is given. */
static dt_status check_data(const dt_reading *reading)
{
    dt_status st;

    DT_TRY(check_urls(reading, "data.train", &reading->recipe->data.train));
    DT_TRY(check_urls(reading, "data.validation", &reading->recipe->data.validation));
    if (reading->recipe->data.validation.count > 0 && reading->resolved == NULL &&
        dt_reading_given(reading, "data.split"))
        return REFUSE(reading, "data.split",
                      "'data.split' has no effect beside files in 'data.validation': keep one");
out:
    return st;
}

dt_status dt_reading_check(const dt_reading *reading)
{
    dt_status st = DT_OK;

    DT_TRY(check_name(reading));
    DT_TRY(check_nodes(reading));
    DT_TRY(check_tensor(reading));
    DT_TRY(check_slurm(reading));
    DT_TRY(check_model_fields(reading));
    DT_TRY(check_rows(reading));
    DT_TRY(check_heads(reading));
    DT_TRY(check_schedule(reading));
    DT_TRY(check_optimizer(reading));
    DT_TRY(check_failure(reading));
    DT_TRY(check_notify(reading));
    DT_TRY(check_data(reading));
out:
    return st;
}
