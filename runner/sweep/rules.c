/* rules: decides on which GPUs and nodes a run of a sweep trains, and which run is stopped early. Pure
 * functions. */
#include <math.h>

#include "runner/sweep/sweep_int.h"

/* Returns the first of the lowest `needs` consecutive free GPUs, starting at `from`; -1 if there
 * are none. */
static int64_t find_row(const dt_room_machine *machine, int64_t from, int64_t needs)
{
    int64_t row = 0;

    for (int64_t i = from; i < machine->gpus && i < DT_ROOM_GPUS_MOST; i++) {
        row = machine->used[i] ? 0 : row + 1;
        if (row == needs)
            return i + 1 - needs;
    }
    return -1;
}

static void use(dt_room_machine *machine, int64_t first, int64_t count, bool used)
{
    for (int64_t i = 0; i < count; i++)
        machine->used[first + i] = used;
}

static bool take(dt_room_node *node, bool alone)
{
    if (node->needs == 0) {
        node->chosen = !alone || !node->machine->busy;
        return node->chosen;
    }
    node->first = find_row(node->machine, node->from, node->needs);
    node->chosen = node->first >= 0;
    if (node->chosen)
        use(node->machine, node->first, node->needs, true);
    return node->chosen;
}

bool dt_room_find(dt_room_node *nodes, int64_t count, int64_t wanted)
{
    int64_t chosen = 0;

    for (int64_t i = 0; i < count; i++) {
        nodes[i].chosen = false;
        nodes[i].first = 0;
    }
    for (int64_t i = 0; i < count && chosen < wanted; i++)
        chosen += take(&nodes[i], wanted < count);
    if (chosen == wanted)
        return true;
    for (int64_t i = 0; i < count; i++)
        if (nodes[i].chosen)
            use(nodes[i].machine, nodes[i].first, nodes[i].needs, false);
    return false;
}

static bool is_better(double a, double b)
{
    return !isnan(a) && (isnan(b) || a < b);
}

static bool competes(const dt_halving_run *run, int64_t rung)
{
    return run->there && (run->cut == 0 || run->cut >= rung);
}

bool dt_halving_cuts(const dt_halving_run *runs, int64_t count, int64_t which, int64_t rung,
                     double keep)
{
    int64_t reached = 0, ahead = 0, uncut_ahead = 0, places;

    if (!competes(&runs[which], rung))
        return false;
    for (int64_t i = 0; i < count; i++) {
        if (!competes(&runs[i], rung))
            continue;
        reached++;
        if (i != which && (is_better(runs[i].value, runs[which].value) ||
                           (i < which && !is_better(runs[which].value, runs[i].value)))) {
            ahead++;
            uncut_ahead += runs[i].cut == 0;
        }
    }
    places = (int64_t)ceil(keep * (double)reached - 1e-9);
    return uncut_ahead > 0 && ahead >= (places > 1 ? places : 1);
}
