/* launcher_carry: computes nodes and devices from what a launcher says, and writes them into the draft. */
#include <string.h>

#include "runner/convert/launcher.h"

#include "base/banned.h"

/* --- a job's numbers */

static void compare(dt_draft *draft, const char *from, bool equal)
{
    if (from == NULL)
        return;
    if (equal)
        dt_draft_same(draft, from, "the job has the same value");
    else
        dt_draft_left(draft, from, "the job has another number, which is used");
}

void dt_launcher_join(dt_launcher *l, const dt_launcher *job, dt_draft *draft)
{
    l->slurm = l->slurm || job->slurm;
    if (job->nodes > 0) {
        compare(draft, l->nodes_from, l->nodes == job->nodes && l->nodes_min == job->nodes_min);
        l->nodes = job->nodes;
        l->nodes_min = job->nodes_min;
        l->nodes_from = job->nodes_from;
        l->hosts = job->hosts;
        l->uneven = job->uneven;
        l->first_node = NULL;
    }
    if (job->per_node > 0 || job->total > 0) {
        if (l->per_node > 0 || l->total > 0)
            compare(draft, l->from, dt_launcher_devices(l) == dt_launcher_devices(job));
        l->per_node = job->per_node;
        l->total = job->total;
        l->from = job->from;
    }
    if (l->visible < 0)
        l->visible = job->visible;
}

/* --- the results */

int64_t dt_launcher_devices(const dt_launcher *l)
{
    int64_t nodes = l->nodes > 0 ? l->nodes : 1;

    if (l->uneven)
        return 0;
    if (l->per_node > 0)
        return l->per_node;
    if (l->total > 0 && l->total % nodes == 0)
        return l->total / nodes;
    return l->visible > 0 ? l->visible : 0;
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

void dt_launcher_carry(const dt_launcher *l, dt_draft *draft)
{
    int64_t devices = dt_launcher_devices(l);

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
    if (devices > 0)
        dt_draft_number(draft, "gpus", (double)devices, "%s", l->from != NULL ? l->from : "");
    else if (l->visible == 0)
        dt_draft_word(draft, "gpus", "none", "CUDA_VISIBLE_DEVICES= is empty");
}
