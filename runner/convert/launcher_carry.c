/* launcher_carry: collects what a launcher's command line says, computes nodes, processes and devices from
 * it, and writes them into the draft. */
#include <stdlib.h>
#include <string.h>

#include "runner/convert/launcher.h"

/* The words of a launcher's command line. */

const char *dt_launcher_name(const char *program)
{
    const char *slash = strrchr(program, '/');

    return slash != NULL ? slash + 1 : program;
}

const char *dt_launcher_path(const dt_launcher *l, const char *path, dt_arena *arena)
{
    if (l->workdir == NULL || path[0] == '/')
        return path;
    return dt_arena_printf(arena, "%s/%s", l->workdir, path);
}

void dt_launcher_drop(dt_launcher *l, size_t words)
{
    l->words += words;
    l->count -= words;
}

void dt_launcher_keep(dt_launcher *l, const dt_shell_word *word, dt_draft *draft)
{
    dt_shell_add_to(&l->before, word->text, strlen(word->text), word->line, draft->arena);
    l->before.items[l->before.count - 1].open = word->open;
}

void dt_launcher_keep_text(dt_launcher *l, const char *text, dt_draft *draft)
{
    dt_shell_add_to(&l->before, text, strlen(text), 0, draft->arena);
}

void dt_launcher_choose(dt_launcher *l, const char *list, const char *from, dt_draft *draft)
{
    bool first = true;
    int64_t count = 0;

    for (const char *at = list; *at != '\0'; at += strcspn(at, ",") + (strchr(at, ',') != NULL)) {
        first = first && strcspn(at, ",") > 0 && strtoll(at, NULL, 10) == count &&
                strspn(at, "0123456789") == strcspn(at, ",");
        count++;
    }
    l->gpus = count > 0 ? count : -1;
    l->devices = first ? NULL : list;
    l->gpus_from = from;
    if (!first && !l->keeps)
        dt_draft_note(draft, from,
                      "'gpus' is a number, and dtrun uses the first visible GPUs: to use others, "
                      "set CUDA_VISIBLE_DEVICES where dtrun is started");
}

void dt_launcher_variable(dt_launcher *l, const char *text, const char *open, dt_draft *draft)
{
    size_t length = strcspn(text, "=");

    for (size_t i = 0; i < l->env.count; i++)
        if (strncmp(l->env.items[i].text, text, length) == 0 &&
            strchr("=", l->env.items[i].text[length]) != NULL)
            l->env.items[i] = l->env.items[--l->env.count]; /* the last one counts */
    dt_shell_add_to(&l->env, text, strlen(text), 0, draft->arena);
    l->env.items[l->env.count - 1].open = open;
}

/* Nodes, processes and devices. */

int64_t dt_launcher_devices(const dt_launcher *l)
{
    if (l->uneven)
        return 0;
    if (l->slurm && l->gpus > 0)
        return l->gpus;
    if (l->per_node > 0)
        return l->per_node;
    return l->gpus > 0 ? l->gpus : 0;
}

int64_t dt_launcher_world(const dt_launcher *l)
{
    int64_t world = 0;

    for (int64_t i = 0; l->uneven && i < l->nodes; i++)
        world += l->hosts[i].processes;
    if (l->uneven)
        return world;
    return dt_launcher_devices(l) * (l->nodes > 0 ? l->nodes : 1);
}

static const char *or_nothing(const char *text)
{
    return text != NULL ? text : "";
}

static void carry_hosts(const dt_launcher *l, dt_draft *draft)
{
    dt_strbuf names;

    dt_strbuf_init(&names);
    for (int64_t i = 0; i < l->nodes; i++) {
        dt_strbuf_add_fmt(&names, "%s\"%s", i > 0 ? ", " : "[", l->hosts[i].name);
        if (l->uneven)
            dt_strbuf_add_fmt(&names, " gpus=%lld", (long long)l->hosts[i].processes);
        dt_strbuf_add_char(&names, '"');
    }
    dt_strbuf_add_char(&names, ']');
    dt_draft_word(draft, "nodes", names.data, "%s%s%s", l->nodes_from,
                  l->uneven && l->from != NULL ? ", " : "",
                  l->uneven && l->from != NULL ? l->from : "");
    dt_strbuf_release(&names);
}

/* Writes placeholder names of nodes, since a command line names at most the first one. */
static void carry_nodes(const dt_launcher *l, dt_draft *draft)
{
    dt_strbuf names;

    dt_strbuf_init(&names);
    for (int64_t i = 0; i < l->nodes; i++) {
        const char *first = i == 0 && l->first_node != NULL ? l->first_node : NULL;

        dt_strbuf_add_fmt(&names, "%s", i > 0 ? ", " : "[");
        if (first != NULL &&
            first[strspn(first, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789.-_")] == '\0')
            dt_strbuf_add_fmt(&names, "\"%s\"", first);
        else
            dt_strbuf_add_fmt(&names, "node%lld", (long long)i + 1);
    }
    dt_strbuf_add_char(&names, ']');
    dt_draft_word(draft, "nodes", names.data, "%s%s%s", l->nodes_from,
                  l->first_node != NULL ? ", " : "", l->first_node != NULL ? l->first_from : "");
    dt_draft_note(
        draft, l->nodes_from,
        "the command line does not name %s nodes: put their names into 'nodes', as in 'ssh NAME'",
        l->first_node != NULL ? "the other" : "the");
    dt_strbuf_release(&names);
}

static void carry_places(const dt_launcher *l, dt_draft *draft)
{
    if (l->slurm && l->nodes > 0)
        dt_draft_text(draft, "nodes",
                      dt_arena_printf(draft->arena, "slurm:%lld", (long long)l->nodes), "%s",
                      l->nodes_from);
    else if (l->hosts != NULL && l->nodes > 0)
        carry_hosts(l, draft);
    else if (l->nodes > 1)
        carry_nodes(l, draft);
    if (l->nodes_min > 0)
        dt_draft_number(draft, "nodes_min", (double)l->nodes_min, "%s", l->nodes_from);
}

/* Writes `processes` and `gpus` of a command: P processes on each node, which has D GPUs. */
static dt_status carry_processes(const dt_launcher *l, dt_draft *draft, dt_error *err)
{
    int64_t processes = l->per_node, gpus = l->gpus;
    const char *from = or_nothing(l->from), *gpus_from = or_nothing(l->gpus_from);
    const char *by_one = l->by == NULL ? "one program on each node" : from;
    bool one = l->by == NULL ? processes <= 1 : processes == 1;

    if (l->uneven && l->any)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "%s: the hosts have different numbers of processes: write 'nodes' yourself",
                       from);
    if (l->uneven) /* 'nodes' has the GPUs of each host */
        return DT_OK;
    if (gpus < 0)
        dt_draft_word(draft, "gpus", "none", "%s", gpus_from[0] != '\0' ? gpus_from : "--cpu");
    if (l->by_node || (one && !l->all)) {
        if (gpus > 0)
            dt_draft_number(draft, "gpus", (double)gpus, "%s", gpus_from);
        else if (gpus == 0 && processes > 0 && l->by_node)
            dt_draft_number(draft, "gpus", (double)processes, "%s", from);
        dt_draft_word(draft, "processes", "node", "%s",
                      l->by_node ? "it starts the processes of a node itself" : by_one);
        return DT_OK;
    }
    if (l->all || processes == 0) {
        if (gpus > 0)
            dt_draft_number(draft, "gpus", (double)gpus, "%s", gpus_from);
        return DT_OK;
    }
    if (gpus <= 0 && (l->any || gpus < 0)) {
        dt_draft_text(draft, "processes",
                      dt_arena_printf(draft->arena, "%lld", (long long)processes), "%s", from);
        return DT_OK;
    }
    if (gpus > 0 && gpus % processes != 0)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "%s with %s: %lld processes cannot share %lld GPUs equally", from, gpus_from,
                       (long long)processes, (long long)gpus);
    if (gpus > 0 && gpus != processes) {
        dt_draft_number(draft, "gpus", (double)gpus, "%s", gpus_from);
        dt_draft_text(draft, "processes",
                      dt_arena_printf(draft->arena, "%lld", (long long)processes), "%s", from);
        return DT_OK;
    }
    if (gpus <= 0 || strcmp(from, gpus_from) == 0)
        gpus_from = "";
    dt_draft_number(draft, "gpus", (double)processes, "%s%s%s", from,
                    from[0] != '\0' && gpus_from[0] != '\0' ? ", " : "", gpus_from);
    return DT_OK;
}

dt_status dt_launcher_carry(const dt_launcher *l, dt_draft *draft, dt_error *err)
{
    int64_t devices = dt_launcher_devices(l);

    carry_places(l, draft);
    if (l->task_threads > 0 && (l->by == NULL || !l->slurm))
        dt_draft_number(draft, "threads", (double)l->task_threads, "%s", l->threads_from);
    else if (l->task_threads > 0)
        dt_draft_left(draft, l->threads_from,
                      "the cores of a node are divided among its processes: set 'threads'");
    if (l->keeps)
        return carry_processes(l, draft, err);
    if (devices > 0)
        dt_draft_number(draft, "gpus", (double)devices, "%s",
                        or_nothing(l->slurm && l->gpus > 0 ? l->gpus_from
                                   : l->per_node > 0       ? l->from
                                                           : l->gpus_from));
    else if (l->gpus < 0)
        dt_draft_word(draft, "gpus", "none", "CUDA_VISIBLE_DEVICES= is empty");
    return DT_OK;
}
