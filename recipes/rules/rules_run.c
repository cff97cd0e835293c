/* rules_run: checks rules about the run: name, nodes, batch, failures and notifications (recipes/rules/rules.h). */
#include <string.h>

#include "base/names.h"
#include "recipes/fields/nodes.h"
#include "recipes/fields/values.h"
#include "recipes/plan/plan.h"
#include "recipes/read/reading.h"
#include "recipes/rules/rules.h"

void dt_rule_name(const dt_rule_case *c)
{
    const char *name = c->recipe->name;
    dt_strbuf shown;

    if (dt_run_name_is_valid(name))
        return;
    dt_strbuf_init(&shown);
    dt_text_show_word(&shown, name);
    dt_rule_broken(c, "name", "'name' is %s%s: expected %s", shown.data,
                   name == c->reading->stem ? " (from the file's name)" : "",
                   dt_run_name_expected(name));
    dt_strbuf_release(&shown);
}

void dt_rule_early_stop(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;

    if (recipe->early_stop.metric[0] != '\0' && recipe->early_stop.after == 0)
        dt_rule_broken(c, "early_stop.after",
                       "'early_stop.after' is missing (step of the first comparison of runs)");
    else if (recipe->early_stop.metric[0] == '\0' && recipe->early_stop.after > 0)
        dt_rule_broken(
            c, "early_stop.metric",
            "'early_stop.metric' is missing (metric to compare runs by, such as valid_loss)");
}

void dt_rule_search_nodes(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;

    if (recipe->search.nodes > recipe->nodes.count)
        dt_rule_broken(c, "search.nodes", "'search.nodes' is %lld, but 'nodes' has only %lld",
                       (long long)recipe->search.nodes, (long long)recipe->nodes.count);
}

void dt_rule_nodes(const dt_rule_case *c)
{
    int64_t here = 0;

    for (int64_t i = 0; i < c->recipe->nodes.count; i++) {
        dt_node_spec spec;
        dt_status st = dt_node_spec_parse(&spec, c->recipe->nodes.items[i], c->reading->arena,
                                          c->reading->err);

        if (st != DT_OK) {
            dt_rule_fault(c, st);
            return;
        }
        if (dt_node_is_here(spec.destination) && strchr(spec.destination, '#') == NULL)
            here++;
    }
    if (here > 1)
        dt_rule_broken(c, "nodes",
                       "'nodes' names this machine twice: set 'ranks' for more processes on it");
}

/* Returns the number of nodes; 0: Slurm decides. */
static int64_t count_nodes(const dt_recipe *recipe)
{
    int64_t slurm = dt_node_slurm_count(recipe->nodes.items[0]);

    if (slurm > 0)
        return slurm;
    return dt_node_is_slurm(recipe->nodes.items[0]) ? 0 : recipe->nodes.count;
}

void dt_rule_nodes_min(const dt_rule_case *c)
{
    int64_t count = count_nodes(c->recipe);

    if (count > 0 && c->recipe->nodes_min > count)
        dt_rule_broken(c, "nodes_min", "'nodes_min' is %lld, but there are only %lld nodes",
                       (long long)c->recipe->nodes_min, (long long)count);
}

void dt_rule_batch_total(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;

    if (recipe->batch.total > 0 && recipe->batch.accumulate > 1 &&
        dt_reading_written(c->reading, "batch.accumulate"))
        dt_rule_broken(c, "batch.accumulate",
                       "'batch.accumulate' %lld and 'batch.total' %lld cannot be combined: both "
                       "set the micro-steps",
                       (long long)recipe->batch.accumulate, (long long)recipe->batch.total);
}

/* Returns the ranks of every node if the recipe alone sets their number, else 0. */
static int64_t ranks_of_each_node(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;

    for (int64_t i = 0; i < recipe->nodes.count; i++) {
        dt_node_spec spec;

        if (dt_node_is_slurm(recipe->nodes.items[i]) ||
            dt_node_spec_parse(&spec, recipe->nodes.items[i], c->reading->arena, NULL) != DT_OK ||
            spec.gpus >= 0 || spec.ranks > 0)
            return 0;
    }
    return recipe->gpus > 0 ? recipe->gpus : recipe->ranks;
}

void dt_rule_batch_nodes(const dt_rule_case *c)
{
    const dt_recipe *recipe = c->recipe;
    int64_t count = count_nodes(recipe), least = recipe->nodes_min, each = ranks_of_each_node(c);

    if (least == 0 || (count > 0 && least >= count))
        return;
    if (recipe->batch.total == 0)
        dt_rule_broken(c, "nodes_min",
                       "'nodes_min' is %lld: a restart with fewer nodes trains with fewer tokens "
                       "per step at the same learning rate: set 'batch.total' to keep the batch",
                       (long long)least);
    for (int64_t nodes = least; recipe->batch.total > 0 && each > 0 && nodes < count; nodes++) {
        int64_t pass = dt_recipe_pass(recipe, dt_recipe_data_ranks(recipe, nodes * each));

        if (recipe->batch.total % pass == 0)
            continue;
        dt_rule_broken(
            c, "batch.total",
            "'batch.total' %lld is not a multiple of the %lld that %lld of the %lld nodes "
            "take at once: a restart on these nodes uses the nearest multiple",
            (long long)recipe->batch.total, (long long)pass, (long long)nodes, (long long)count);
        return;
    }
}

void dt_rule_dp_nodes(const dt_rule_case *c)
{
    if (c->recipe->strategy.kind == DT_STRATEGY_DP && count_nodes(c->recipe) > 1)
        dt_rule_broken(c, "strategy.kind",
                       "'strategy' is 'dp', which trains in one process on one node");
}

/* Checks one option of sbatch, which is passed on unchanged; options that change the kind of job are refused. */
static void look_at_option(const dt_rule_case *c, int64_t index)
{
    const char *option = c->recipe->slurm.options.items[index];
    static const char *const taken[] = {"--array",    "--nodes",     "--ntasks-per-node",
                                        "--parsable", "--test-only", "--output",
                                        "--chdir",    "--wait",      "--wrap",
                                        "--requeue"};
    size_t name = strcspn(option, "=");

    if (strncmp(option, "--", 2) != 0 || name < 3) {
        dt_rule_broken_item(c, "slurm.options", index,
                            "'slurm.options' takes options of sbatch in their long form, as in "
                            "'--partition=gpu'");
        return;
    }
    for (size_t k = 0; k < sizeof(taken) / sizeof(taken[0]); k++)
        if (strlen(taken[k]) == name && strncmp(taken[k], option, name) == 0)
            dt_rule_broken_item(c, "slurm.options", index,
                                "'slurm.options': dtrun sets '%s' itself, from nodes, ranks and "
                                "threads of the recipe",
                                taken[k]);
}

void dt_rule_slurm_options(const dt_rule_case *c)
{
    for (int64_t i = 0; i < c->recipe->slurm.options.count; i++)
        look_at_option(c, i);
}

void dt_rule_launcher_lost(const dt_rule_case *c)
{
    double seconds;

    if (!dt_launcher_lost_seconds(&seconds, c->recipe->failure.launcher_lost))
        dt_rule_broken(
            c, "failure.launcher_lost",
            "'failure.launcher_lost' is neither 'continue' nor a time of at most 3650 days, "
            "as in 'stop_after 10m'");
}

/* Checks the webhook's address, without repeating it, since it may be a secret. A run that was
 * started with one continues, because its history already contains it. */
void dt_rule_webhook(const dt_rule_case *c)
{
    static const char *const good[] = {"http://", "https://", "${env:"};
    const char *webhook = c->recipe->notify.webhook;
    const char *secret = dt_url_secret(webhook, DT_URL_WEBHOOK);
    bool known = webhook[0] == '\0';

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        known = known || strncmp(webhook, good[i], strlen(good[i])) == 0;
    if (!known)
        dt_rule_broken(c, "notify.webhook",
                       "'notify.webhook' is not a URL: expected one that begins with 'https://', "
                       "'http://' or '${env:NAME}'");
    else if (secret != NULL && !dt_reading_resolved(c->reading, "notify.webhook"))
        dt_rule_broken(c, "notify.webhook",
                       "'notify.webhook' contains %s, which would be stored and shown with the "
                       "recipe: 'export HOOK=...' this part or the whole address before 'dtrun "
                       "launch', and write '${env:HOOK}' instead",
                       secret);
}
